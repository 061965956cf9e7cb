import { createReadStream } from 'node:fs'
import { open } from 'node:fs/promises'
import type { Readable } from 'node:stream'
import { createGunzip } from 'node:zlib'
import { BadBundleError } from '../errors.ts'

/** The text of a file in pieces; gzip, which its first bytes show, is unpacked. */
async function openText(path: string): Promise<Readable> {
  if (!(await isGzip(path))) return createReadStream(path, 'utf8')
  const file = createReadStream(path)
  const text = createGunzip().setEncoding('utf8')
  file.on('error', (error) => text.destroy(error)).pipe(text)
  // Whoever leaves early destroys only this end of the pipe.
  text.on('close', () => file.destroy())
  return text
}

/**
 * The lines of a file, unpacked where it is gzip. Lines end at \n alone. Node's readline also ends them at U+2028 from
 * version 24, which JSON text may hold: https://github.com/nodejs/node/pull/57591
 *
 * @throws BadBundleError for gzip that is cut off or damaged.
 */
export async function* readLines(path: string): AsyncGenerator<string> {
  let parts: string[] = []
  try {
    for await (const chunk of await openText(path)) {
      const [end = '', ...next] = String(chunk).split('\n')
      parts.push(end)
      for (const start of next) {
        yield parts.join('')
        parts = [start]
      }
    }
  } catch (error) {
    if (!(error instanceof Error && 'code' in error && String(error.code).startsWith('Z_'))) throw error
    throw new BadBundleError(
      `'${path}' is packed with gzip, and cut off or damaged. Nothing was imported: get the file again.`,
      { cause: error },
    )
  }
  yield parts.join('')
}

/** Every gzip file begins with these two bytes: https://www.rfc-editor.org/rfc/rfc1952#page-6 */
async function isGzip(path: string): Promise<boolean> {
  const file = await open(path)
  try {
    const { bytesRead, buffer } = await file.read(Buffer.alloc(2), 0, 2, 0)
    return bytesRead === 2 && buffer.readUInt16BE() === 0x1f8b
  } finally {
    await file.close()
  }
}
