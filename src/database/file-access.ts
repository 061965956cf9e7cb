import {
  accessSync,
  closeSync,
  constants,
  existsSync,
  lstatSync,
  mkdirSync,
  openSync,
  readlinkSync,
  type Stats,
  statSync,
} from 'node:fs'
import { basename, dirname, resolve } from 'node:path'
import { CannotOpenError, DiskFullError, ReadonlyStoreError } from '../errors.ts'
import type { EventHandler } from '../events.ts'
import { realPath } from './file-identity.ts'
import { MAX_NAME_BYTES, MAX_PATH_BYTES } from './limits.ts'

/** What SQLite can keep beside a database. It would take it for that of another file of the same name. */
export const SIDECARS: readonly string[] = ['-wal', '-shm', '-journal']

/** What is wrong with a path, by the code of the system's error. */
const PATH_PROBLEMS: Record<string, string> = {
  EACCES: 'this user may not enter one of its folders',
  ELOOP: 'its symbolic links lead round in a circle',
  ENAMETOOLONG: 'it is longer than the file system allows',
  ENOTDIR: 'a part of the path is a file and not a folder',
  EROFS: 'its file system is mounted read-only',
}

/** The size of the file in bytes, or undefined where there is none. Never opens it. */
export function fileSize(path: string): number | undefined {
  const stats = statsOf(path)
  if (stats && !stats.isFile())
    throw new CannotOpenError(
      stats.isDirectory()
        ? `'${path}' is not a file but a folder: give the path of a state.db, for example '${path}/state.db'.`
        : `'${path}' is not a file but a device, a pipe or a socket: give the path of a state.db.`,
    )
  return stats?.size
}

function statsOf(path: string): Stats | undefined {
  try {
    return statSync(path, { throwIfNoEntry: false })
  } catch (error) {
    throw new CannotOpenError(`'${path}' cannot be reached: ${pathProblem(error)}.`, { cause: error })
  }
}

/**
 * Makes an empty file that only its owner can read, in a folder of the same kind, unless it is there already.
 *
 * @throws CannotOpenError, DiskFullError
 */
export function createFile(path: string): void {
  const tooLong = lengthProblem(path)
  if (tooLong) throw new CannotOpenError(`'${path}' cannot be created: ${tooLong}.`)
  try {
    mkdirSync(dirname(path), { recursive: true, mode: 0o700 })
    // SQLite gives the -wal and -shm files the mode of the main file.
    closeSync(openSync(path, 'wx', 0o600))
  } catch (error) {
    const code = codeOf(error)
    const link = brokenLink(path)
    if (link) throw new CannotOpenError(`'${path}' cannot be created: ${link}.`, { cause: error })
    if (code === 'EEXIST') return
    if (code === 'ENOSPC' || code === 'EDQUOT')
      throw new DiskFullError(`The disk of '${path}' is full: free some space and open it again.`, {
        cause: error,
      })
    const folder = nearestFolder(path)
    const problem =
      code === 'EACCES' || code === 'EPERM' ? `this user may not write in '${folder}'` : pathProblem(error)
    throw new CannotOpenError(`'${path}' cannot be created: ${problem}.`, { cause: error })
  }
}

/**
 * Refuses a file that this process may not write: SQLite would open it all the same, and refuse the writes.
 *
 * @throws ReadonlyStoreError
 */
export function assertWritable(path: string): void {
  for (const file of withSidecars(path)) {
    try {
      accessSync(file, constants.W_OK)
    } catch (error) {
      const code = codeOf(error)
      if (code === 'ENOENT') continue
      throw new ReadonlyStoreError(
        code === 'EROFS'
          ? `'${file}' cannot be written, because ${PATH_PROBLEMS.EROFS}: ${COPY_IT}.`
          : `'${file}' cannot be written by this user: change its owner or its permissions, or open the store with readonly: true.`,
        { cause: error },
      )
    }
  }
}

const COPY_IT =
  'copy the file, and the -wal file beside it if there is one, to a folder that can be written, and open the copy'

/** The error for a file that SQLite could not open, or could not make the files that it keeps beside it. */
export function unopenable(path: string, cause: ErrorOptions): CannotOpenError | ReadonlyStoreError {
  const problem = lengthProblem(path) ?? readingProblem(path)
  if (problem) return new CannotOpenError(`'${path}' cannot be opened: ${problem}.`, cause)
  const folder = dirname(realPath(path))
  if (!allows(folder, constants.W_OK))
    return new ReadonlyStoreError(
      `'${path}' cannot be used where it is, because SQLite keeps files beside it and '${folder}' cannot be written: ${COPY_IT}.`,
      cause,
    )
  return new CannotOpenError(
    `'${path}' cannot be opened: check that it is still there, and how many files the process has open (ulimit -n).`,
    cause,
  )
}

function readingProblem(path: string): string | undefined {
  for (const file of withSidecars(path)) {
    const stats = statSync(file, { throwIfNoEntry: false })
    if (stats && !stats.isFile()) return `'${file}' is not a file`
    if (stats && !allows(file, constants.R_OK))
      return `this user may not read '${file}', so change its owner or its permissions`
  }
  return undefined
}

/** The file and those that SQLite keeps beside it, which is where symbolic links lead. */
function withSidecars(path: string): string[] {
  const real = realPath(path)
  return ['', ...SIDECARS].map((end) => real + end)
}

function allows(file: string, mode: number): boolean {
  try {
    accessSync(file, mode)
    return true
  } catch {
    return false
  }
}

/** Known before a file is made that SQLite could not open afterwards. */
function lengthProblem(path: string): string | undefined {
  if (process.platform === 'win32') return undefined
  const real = realPath(path)
  if (Buffer.byteLength(real) > MAX_PATH_BYTES)
    return `its path is longer than the ${MAX_PATH_BYTES} bytes that SQLite allows`
  if (Buffer.byteLength(basename(real)) > MAX_NAME_BYTES)
    return `its name is longer than ${MAX_NAME_BYTES} bytes, which leaves no room for the ending of its -journal file`
  return undefined
}

function pathProblem(error: unknown): string {
  const code = codeOf(error)
  return PATH_PROBLEMS[code ?? ''] ?? `check the path (${code ?? error})`
}

/** Where a symbolic link on the way leads to nothing. */
export function brokenLink(path: string): string | undefined {
  for (let at = path; at !== dirname(at); at = dirname(at))
    if (!existsSync(at) && lstatSync(at, { throwIfNoEntry: false })?.isSymbolicLink()) {
      const target = resolve(dirname(at), readlinkSync(at))
      return `'${at}' is a symbolic link to '${target}', where nothing is: correct the link, or open the file at its own path`
    }
  return undefined
}

function nearestFolder(path: string): string {
  const folder = dirname(path)
  return existsSync(folder) || folder === path ? folder : nearestFolder(folder)
}

function codeOf(error: unknown): string | undefined {
  return error instanceof Error && 'code' in error ? String(error.code) : undefined
}

/** Says so when others than the owner can read the conversations in a file. */
export function reportFileMode(path: string, events: EventHandler): void {
  if (process.platform === 'win32') return
  const mode = statSync(path).mode & 0o777
  if (mode & 0o077)
    events({
      level: 'warning',
      type: 'file-readable-by-others',
      message: `Other users can read '${path}' (mode ${mode.toString(8)}): run chmod 600 on it and on its -wal and -shm files.`,
      path,
      mode,
    })
}
