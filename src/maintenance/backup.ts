import { randomUUID } from 'node:crypto'
import { closeSync, existsSync, fsyncSync, openSync, renameSync, rmSync, statSync } from 'node:fs'
import { dirname, resolve } from 'node:path'
import { sql } from 'kysely'
import type { Connection } from '../database/connection.ts'
import { MEMORY, openConnection, openImage } from '../database/open-connection.ts'
import { select } from '../database/shape.ts'
import { toStoreError } from '../database/sqlite-errors.ts'
import type { StoreHandle } from '../database/store-handle.ts'
import { CannotOpenError, DamagedFileError, FileReplacedError, TargetExistsError } from '../errors.ts'
import type { EventHandler } from '../events.ts'
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

/** @throws TypeError */
export function checkTarget(path: unknown): string {
  if (typeof path !== 'string' || path === '' || path === MEMORY || path.includes('\0'))
    throw new TypeError('path must be the path of the file to write.')
  return resolve(path)
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
  assertFree(path)
  const partial = `${path}.${randomUUID()}.partial`
  const source = await openSource(store, events, signal)
  try {
    claim(partial)
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
    assertFree(path)
    renameSync(partial, path)
    if (process.platform !== 'win32') sync(dirname(path), 'r')
    return { path, bytes: statSync(path).size, ...held }
  } catch (error) {
    throw toStoreError(error, path)
  } finally {
    source.close()
    for (const end of ['', ...SIDECARS]) rmSync(partial + end, { force: true })
  }
}

/**
 * A connection of its own to read from. Only there can a read transaction be held open while the store writes on;
 * and without one, copying begins again at every write of another process.
 */
async function openSource(
  store: StoreHandle,
  events: EventHandler,
  signal: AbortSignal | undefined,
): Promise<Connection> {
  const { path, file, image } = await store.read((connection) => ({
    path: connection.path,
    file: connection.file,
    image: connection.file ? undefined : connection.image(),
  }))
  if (image) return openImage(image, events)
  const source = await openConnection({
    path,
    readonly: true,
    synchronous: 'full',
    busyTimeout: store.busyTimeout,
    signal,
    events,
  })
  if (source.file?.dev === file?.dev && source.file?.ino === file?.ino) return source
  source.close()
  throw new FileReplacedError(path, source.file === null)
}

/** Makes the copy one file that needs no other, checks that it is whole, and has the disk keep it. */
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
  sync(path, 'r+')
}

function contentsOf(connection: Connection): { messages: number; sessions: number } {
  const [counts] = select<{ messages: number; sessions: number }>(
    connection,
    sql`select (select count(*) from main.messages) as messages, (select count(*) from main.sessions) as sessions`,
  )
  if (!counts) throw new Error('A count gave no row.')
  return counts
}

/** @throws TargetExistsError for a file, or for the log of one that is gone: SQLite would play it into the copy. */
function assertFree(path: string): void {
  for (const end of ['', ...SIDECARS]) if (existsSync(path + end)) throw new TargetExistsError(path + end)
}

/** Makes an empty file that only its owner can read. */
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
