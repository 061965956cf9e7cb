import { randomUUID } from 'node:crypto'
import { closeSync, existsSync, fsyncSync, openSync, renameSync, rmSync } from 'node:fs'
import { dirname, resolve } from 'node:path'
import { MEMORY } from './database/open-connection.ts'
import { CannotOpenError, TargetExistsError } from './errors.ts'

/**
 * The absolute path of a file, to be made for example.
 *
 * @throws TypeError
 */
export function checkTarget(path: unknown, name = 'path'): string {
  if (typeof path !== 'string' || path === '' || path === MEMORY || path.includes('\0'))
    throw new TypeError(`${name} must be the path of a file.`)
  return resolve(path)
}

/**
 * Makes a file that nobody sees before it is whole: `fill` writes it under another name beside its place, and it gets
 * its own when it is on the disk. Where `fill` fails, nothing is left behind. Only its owner can read it.
 *
 * @param sidecars Endings of files that must not be beside it, and go with it.
 * @param makeWay Moves away what has the name, right before the file gets it. Default: such a file is refused.
 * @throws TargetExistsError for a file that is there already, or one with such an ending; CannotOpenError
 */
export async function makeFile<T>(
  path: string,
  sidecars: readonly string[],
  fill: (partial: string) => Promise<T>,
  makeWay?: () => void,
): Promise<T> {
  const assertFree = () => {
    for (const end of ['', ...sidecars]) if (existsSync(path + end)) throw new TargetExistsError(path + end)
  }
  if (!makeWay) assertFree()
  const partial = `${path}.${randomUUID()}.partial`
  try {
    claim(partial)
    const result = await fill(partial)
    sync(partial, 'r+')
    makeWay?.()
    assertFree()
    renameSync(partial, path)
    syncFolder(dirname(path))
    return result
  } finally {
    for (const end of ['', ...sidecars]) rmSync(partial + end, { force: true })
  }
}

/** Has what was done to the names in a folder survive a power cut. Windows offers no such thing. */
export function syncFolder(folder: string): void {
  if (process.platform !== 'win32') sync(folder, 'r')
}

function claim(path: string): void {
  try {
    closeSync(openSync(path, 'wx', 0o600))
  } catch (error) {
    throw new CannotOpenError(
      `'${path}' cannot be created: check that '${dirname(path)}' exists and that this user may write in it.`,
      { cause: error },
    )
  }
}

function sync(path: string, flags: 'r' | 'r+'): void {
  const descriptor = openSync(path, flags)
  try {
    fsyncSync(descriptor)
  } finally {
    closeSync(descriptor)
  }
}
