import Database from 'better-sqlite3'
import type { EventHandler } from '../events.ts'
import type { OpenOptions } from '../options.ts'
import { Connection } from './connection.ts'
import { assertWritable } from './file-access.ts'
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
  /** Default: `wal`. */
  journalMode?: OpenOptions['journalMode']
  synchronous: 'full' | 'normal'
  busyTimeout: number
  signal: AbortSignal | undefined
  events: EventHandler
}

/** Opens a connection with every setting made explicit, waiting for other processes without blocking. */
export async function openConnection(options: ConnectionOptions): Promise<Connection> {
  const { path, readonly, busyTimeout, signal } = options
  if (!readonly && path !== MEMORY) assertWritable(path)
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
  { readonly, onlyLooking, keepJournalMode, journalMode = 'wal', synchronous }: ConnectionOptions,
): void {
  // What the schema of somebody's file says must not run functions with side effects.
  db.pragma('trusted_schema = off')
  db.pragma('foreign_keys = on')
  // Reads the file: from here on it is known to be a database.
  const mode = db.pragma('journal_mode', { simple: true })
  if (readonly || onlyLooking) return
  if (mode !== journalMode && !keepJournalMode) db.pragma(`journal_mode = ${journalMode}`)
  // better-sqlite3 is compiled for NORMAL, which may lose the last commits in a power cut.
  db.pragma(`synchronous = ${synchronous}`)
  if (process.platform === 'darwin') db.pragma('checkpoint_fullfsync = on')
  db.pragma(`journal_size_limit = ${WAL_LIMIT_BYTES}`)
}
