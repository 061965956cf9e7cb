import { statSync } from 'node:fs'
import { sql } from 'kysely'
import type { Connection } from '../database/connection.ts'
import { openConnection } from '../database/open-connection.ts'
import { openSecond } from '../database/second-connection.ts'
import { select } from '../database/shape.ts'
import { toStoreError } from '../database/sqlite-errors.ts'
import type { StoreHandle } from '../database/store-handle.ts'
import { DamagedFileError } from '../errors.ts'
import type { EventHandler } from '../events.ts'
import { makeFile } from '../new-file.ts'
import { checkIntegrity } from './integrity.ts'

export interface BackupOptions {
  /** Called after each step, with the bytes copied so far and those of the whole file. */
  onProgress?: (progress: { copied: number; total: number }) => void
  /** Gives up: nothing is left behind. */
  signal?: AbortSignal
}

export interface BackupResult {
  /** The copy, absolute. */
  path: string
  /** Its size. */
  bytes: number
  /** What is in it. */
  messages: number
  sessions: number
}

/** What can lie beside a database: SQLite would take it for that of a new file of the same name. */
const SIDECARS = ['-wal', '-shm', '-journal']

/**
 * Copies a store into a file: what it holds when the copying begins. Other connections write meanwhile. The copy
 * grows under another name beside the target, and gets its own when it is whole and on the disk.
 */
export async function backUp(
  store: StoreHandle,
  path: string,
  options: BackupOptions,
  events: EventHandler,
): Promise<BackupResult> {
  return store.besideConnection(() => makeCopy(store, path, options, events))
}

async function makeCopy(
  store: StoreHandle,
  path: string,
  { onProgress, signal }: BackupOptions,
  events: EventHandler,
): Promise<BackupResult> {
  signal?.throwIfAborted()
  return makeFile(path, SIDECARS, async (partial) => {
    const source = await openSecond(store, events, signal)
    try {
      // Begins a read transaction where the file has one to offer: nothing that is written from here on is copied.
      source.exec('begin')
      const held = contentsOf(source)
      const { pageSize } = source
      await source.copyTo(partial, ({ remaining, total }) => {
        signal?.throwIfAborted()
        onProgress?.({ copied: (total - remaining) * pageSize, total: total * pageSize })
      })
      await finish(partial, held, store.busyTimeout, events)
      signal?.throwIfAborted()
      return { path, bytes: statSync(partial).size, ...held }
    } catch (error) {
      throw toStoreError(error, path)
    } finally {
      source.close()
    }
  })
}

/** Makes the copy one file that needs no other, and checks that it is whole. */
async function finish(
  path: string,
  held: { messages: number; sessions: number },
  busyTimeout: number,
  events: EventHandler,
): Promise<void> {
  const copy = await openConnection({
    path,
    readonly: false,
    onlyLooking: true,
    synchronous: 'full',
    busyTimeout,
    signal: undefined,
    events,
  })
  try {
    copy.pragma('journal_mode = delete')
    const [problem] = checkIntegrity(copy, 'quick_check').problems
    const { messages, sessions } = contentsOf(copy)
    if (problem !== undefined || messages !== held.messages || sessions !== held.sessions)
      throw new DamagedFileError(
        `The backup was not kept, because it is damaged (${problem ?? 'rows are missing'}), most likely as the file of the store is: see maintenance.check().`,
      )
  } finally {
    copy.close()
  }
}

function contentsOf(connection: Connection): { messages: number; sessions: number } {
  const [counts] = select<{ messages: number; sessions: number }>(
    connection,
    sql`select (select count(*) from main.messages) as messages, (select count(*) from main.sessions) as sessions`,
  )
  if (!counts) throw new Error('A count gave no row.')
  return counts
}
