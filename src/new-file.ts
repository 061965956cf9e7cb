import { randomUUID } from 'node:crypto'
import { closeSync, existsSync, fsyncSync, openSync, renameSync, rmSync } from 'node:fs'
import { dirname, resolve } from 'node:path'
import { MEMORY } from './database/open-connection.ts'
import { CannotOpenError, TargetExistsError } from './errors.ts'

/**
 * The absolute path of a file to make.
 *
 * @throws TypeError
 */
export function checkTarget(path: unknown): string {
  if (typeof path !== 'string' || path === '' || path === MEMORY || path.includes('\0'))
    throw new TypeError('path must be the path of the file to write.')
  return resolve(path)
}

/**
 * Makes a file that nobody sees before it is whole: `fill` writes it under another name beside its place, and it gets
 * its own when it is on the disk. Where `fill` fails, nothing is left behind. Only its owner can read it.
 *
 * @param sidecars Endings of files that must not be beside it, and go with it.
 * @throws TargetExistsError for a file that is there already, or one with such an ending; CannotOpenError
 */
export async function makeFile<T>(
  path: string,
  sidecars: readonly string[],
  fill: (partial: string) => Promise<T>,
): Promise<T> {
  const assertFree = () => {
    for (const end of ['', ...sidecars]) if (existsSync(path + end)) throw new TargetExistsError(path + end)
  }
  assertFree()
  const partial = `${path}.${randomUUID()}.partial`
  try {
    claim(partial)
    const result = await fill(partial)
    sync(partial, 'r+')
    assertFree()
    renameSync(partial, path)
    if (process.platform !== 'win32') sync(dirname(path), 'r')
    return result
  } finally {
    for (const end of ['', ...sidecars]) rmSync(partial + end, { force: true })
  }
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
