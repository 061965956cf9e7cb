import { randomUUID } from 'node:crypto'
import { readSync, rmSync } from 'node:fs'
import { type FileHandle, open } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { StringDecoder } from 'node:string_decoder'

/** Where something lies in a spool, in bytes. */
export interface Place {
  offset: number
  length: number
}

const BUFFER = 1024 * 1024

/**
 * A temporary file of JSON lines, which are written once and read back in any order: an import is checked to its end
 * before the first row is written, and need not fit into memory. Only its owner can read it, and a process that is
 * killed leaves nothing of it behind (on Windows, where a file that is open cannot be removed, it does).
 */
export class Spool {
  readonly #path: string
  readonly #handle: FileHandle
  #waiting = ''
  /** Where the next line goes. */
  position = 0

  private constructor(path: string, handle: FileHandle) {
    this.#path = path
    this.#handle = handle
  }

  static async create(): Promise<Spool> {
    const path = join(tmpdir(), `hermes-state-${randomUUID()}.jsonl`)
    const handle = await open(path, 'wx+', 0o600)
    if (process.platform !== 'win32') rmSync(path)
    return new Spool(path, handle)
  }

  async write(value: unknown): Promise<void> {
    const line = `${JSON.stringify(value)}\n`
    this.position += Buffer.byteLength(line)
    this.#waiting += line
    if (this.#waiting.length >= BUFFER) await this.flush()
  }

  async flush(): Promise<void> {
    const lines = this.#waiting
    this.#waiting = ''
    await this.#handle.appendFile(lines)
  }

  /** Lines that have been flushed. */
  *lines({ offset, length }: Place): Generator<string> {
    const decoder = new StringDecoder('utf8')
    const buffer = Buffer.alloc(Math.min(length, BUFFER))
    let rest = ''
    for (let done = 0; done < length; ) {
      const wanted = Math.min(buffer.length, length - done)
      const count = readSync(this.#handle.fd, buffer, 0, wanted, offset + done)
      if (count === 0) throw new Error(`'${this.#path}' was cut short by somebody else: import again.`)
      done += count
      const lines = (rest + decoder.write(buffer.subarray(0, count))).split('\n')
      rest = lines.pop() ?? ''
      yield* lines
    }
  }

  async remove(): Promise<void> {
    await this.#handle.close()
    rmSync(this.#path, { force: true })
  }
}
