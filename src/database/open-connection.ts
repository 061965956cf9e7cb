import { closeSync, mkdirSync, openSync, type Stats, statSync } from 'node:fs'
import { dirname } from 'node:path'
import Database from 'better-sqlite3'
import { CannotOpenError } from '../errors.ts'
import type { EventHandler } from '../events.ts'
import { Connection } from './connection.ts'
import { SQLITE_WAIT_MS, WAL_LIMIT_BYTES } from './limits.ts'
import { toStoreError } from './sqlite-errors.ts'
import { patiently } from './waiting.ts'

export const MEMORY = ':memory:'

export interface ConnectionOptions {
  path: string
  readonly: boolean
  /** Change nothing about the file: SQLite may still roll back what a crashed process left half written. */
  onlyLooking?: boolean
  /** Leave the journal mode as it is. */
  keepJournalMode?: boolean
  synchronous: 'full' | 'normal'
  busyTimeout: number
  signal: AbortSignal | undefined
  events: EventHandler
}

/** The size of the file in bytes, or undefined where there is none. Never opens it. */
export function fileSize(path: string): number | undefined {
  const stats = statsOf(path)
  if (stats && !stats.isFile())
    throw new CannotOpenError(
      `'${path}' is not a file: give the path of a state.db, for example '${path}/state.db'.`,
    )
  return stats?.size
}

function statsOf(path: string): Stats | undefined {
  try {
    return statSync(path, { throwIfNoEntry: false })
  } catch (error) {
    throw new CannotOpenError(
      `'${path}' cannot be reached: check the path, and that this user may enter its folders.`,
      {
        cause: error,
      },
    )
  }
}

/** Makes an empty file that only its owner can read, in a folder of the same kind, unless it is there already. */
export function createFile(path: string): void {
  try {
    mkdirSync(dirname(path), { recursive: true, mode: 0o700 })
    // SQLite gives the -wal and -shm files the mode of the main file.
    closeSync(openSync(path, 'wx', 0o600))
  } catch (error) {
    if (isFileError(error) && error.code === 'EEXIST') return
    throw new CannotOpenError(
      `'${path}' cannot be created: check that this user may write in '${dirname(path)}'.`,
      { cause: error },
    )
  }
}

function isFileError(error: unknown): error is NodeJS.ErrnoException {
  return error instanceof Error && 'code' in error
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

/** Opens a connection with every setting made explicit, waiting for other processes without blocking. */
export async function openConnection(options: ConnectionOptions): Promise<Connection> {
  const { path, busyTimeout, signal } = options
  try {
    return await patiently(
      () => new Connection(openDatabase(options), options.events, () => openDatabase(options)),
      busyTimeout,
      signal,
    )
  } catch (error) {
    throw toStoreError(error, path)
  }
}

function openDatabase(options: ConnectionOptions): Database.Database {
  const { path, readonly } = options
  const db = new Database(path, { readonly, fileMustExist: path !== MEMORY, timeout: SQLITE_WAIT_MS })
  try {
    configure(db, options)
    return db
  } catch (error) {
    db.close()
    throw error
  }
}

/** Opens a copy of a database, in memory. */
export function openImage(image: Buffer, events: EventHandler): Connection {
  return new Connection(new Database(image), events)
}

function configure(
  db: Database.Database,
  { readonly, onlyLooking, keepJournalMode, synchronous }: ConnectionOptions,
): void {
  // What the schema of somebody's file says must not run functions with side effects.
  db.pragma('trusted_schema = off')
  db.pragma('foreign_keys = on')
  // Reads the file: from here on it is known to be a database.
  const mode = db.pragma('journal_mode', { simple: true })
  if (readonly || onlyLooking) return
  if (mode !== 'wal' && !keepJournalMode) db.pragma('journal_mode = wal')
  // better-sqlite3 is compiled for NORMAL, which may lose the last commits in a power cut.
  db.pragma(`synchronous = ${synchronous}`)
  if (process.platform === 'darwin') db.pragma('checkpoint_fullfsync = on')
  db.pragma(`journal_size_limit = ${WAL_LIMIT_BYTES}`)
}
