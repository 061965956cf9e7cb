import { statSync } from 'node:fs'
import { sql } from 'kysely'
import type { Connection } from '../database/connection.ts'
import { SIDECARS } from '../database/file-access.ts'
import { BUSY_TIMEOUT_MS } from '../database/limits.ts'
import { openConnection } from '../database/open-connection.ts'
import { openSecond } from '../database/second-connection.ts'
import { select } from '../database/shape.ts'
import { toStoreError } from '../database/sqlite-errors.ts'
import type { StoreHandle } from '../database/store-handle.ts'
import { DamagedFileError } from '../errors.ts'
import type { EventHandler } from '../events.ts'
import { makeFile } from '../new-file.ts'
import { checkIntegrity, type IntegrityCheck } from './integrity.ts'

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
      const step: BackupOptions['onProgress'] = (progress) => {
        signal?.throwIfAborted()
        onProgress?.(progress)
      }
      const { problem, ...copied } = await copyTo(partial, source, 'quick_check', events, step)
      if (problem !== null)
        throw new DamagedFileError(
          `The backup was not kept, because it is damaged (${problem}), most likely as the file of the store is: see maintenance.check().`,
        )
      signal?.throwIfAborted()
      return { path, ...copied }
    } catch (error) {
      throw toStoreError(error, path)
    } finally {
      source.close()
    }
  })
}

/**
 * Copies what `source` reads now into a file that is there and empty, has it need no other file, and checks it:
 * `problem` says what is wrong with it.
 */
export async function copyTo(
  path: string,
  source: Connection,
  check: IntegrityCheck,
  events: EventHandler,
  onProgress?: BackupOptions['onProgress'],
): Promise<Omit<BackupResult, 'path'> & { problem: string | null }> {
  // Begins a read transaction where the file has one to offer: nothing that is written from here on is copied.
  source.exec('begin')
  const held = contentsOf(source)
  const { pageSize } = source
  await source.copyTo(path, ({ remaining, total }) =>
    onProgress?.({ copied: (total - remaining) * pageSize, total: total * pageSize }),
  )
  const problem = await finish(path, held, check, events)
  return { bytes: statSync(path).size, ...held, problem }
}

async function finish(
  path: string,
  held: Contents,
  check: IntegrityCheck,
  events: EventHandler,
): Promise<string | null> {
  const copy = await openConnection({
    path,
    readonly: false,
    onlyLooking: true,
    synchronous: 'full',
    busyTimeout: BUSY_TIMEOUT_MS,
    signal: undefined,
    events,
  })
  try {
    copy.pragma('journal_mode = delete')
    const [problem] = checkIntegrity(copy, check).problems
    if (problem !== undefined) return problem
    const { messages, sessions } = contentsOf(copy)
    return messages === held.messages && sessions === held.sessions ? null : 'rows are missing'
  } finally {
    copy.close()
  }
}

type Contents = Pick<BackupResult, 'messages' | 'sessions'>

function contentsOf(connection: Connection): Contents {
  const [counts] = select<Contents>(
    connection,
    sql`select (select count(*) from main.messages) as messages, (select count(*) from main.sessions) as sessions`,
  )
  if (!counts) throw new Error('A count gave no row.')
  return counts
}
