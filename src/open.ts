import { homedir } from 'node:os'
import { join, resolve } from 'node:path'
import { checkCount } from './arguments.ts'
import type { Connection } from './database/connection.ts'
import { evenOut } from './database/even-out.ts'
import { type FileState, inspect } from './database/inspection.ts'
import { BUSY_TIMEOUT_MS, SCHEMA_VERSION } from './database/limits.ts'
import {
  assertUsable,
  hermesShape,
  type MigrationReport,
  migrate,
  pendingMigrations,
} from './database/migrator.ts'
import {
  type ConnectionOptions,
  createFile,
  fileSize,
  MEMORY,
  openConnection,
  reportFileMode,
} from './database/open-connection.ts'
import { needsRecovery, toStoreError } from './database/sqlite-errors.ts'
import { patiently } from './database/waiting.ts'
import { CannotOpenError, MigrationNeededError } from './errors.ts'
import { type EventHandler, eventSink } from './events.ts'
import { defineContains } from './search/contains.ts'
import { StateStore } from './store.ts'

export interface OpenOptions {
  /** The file. Default: `$HERMES_HOME/state.db`, else `~/.hermes/state.db`. `:memory:` is a store of its own. */
  path?: string
  /** Write nothing: no migration, no checkpoint. Columns that an older file lacks read as null. Default false. */
  readonly?: boolean
  /** Bring an older or new file up to date. Default true; false refuses such a file. */
  migrate?: boolean
  /**
   * Tables and indexes beside Hermes's own. Default true; false leaves the file exactly at Hermes schema 6.
   * What a file already has stays and is kept up either way.
   */
  additions?: boolean
  /** `full` (default): an acknowledged message survives a power cut. `normal`: the last ones may not, and writes are faster. */
  synchronous?: 'full' | 'normal'
  /** Milliseconds that a write, or opening, waits for another process's lock. Default 20,000. */
  busyTimeout?: number
  /** Gives up opening. */
  signal?: AbortSignal
  /** What a user of the store may want to know. Default: what must be known goes to `process.emitWarning`. */
  onEvent?: EventHandler
}

/**
 * Opens a state file, creating it or bringing it up to date where needed. Any number of processes can have the
 * same file open.
 *
 * @throws TypeError for options that are not valid.
 * @throws NotAStateFileError, UnsupportedSchemaError: the file was not touched.
 * @throws MigrationNeededError, MigrationFailedError, CannotOpenError, StateStoreBusyError
 * @example
 * await using store = await openStateStore({ path: 'state.db' })
 */
export async function openStateStore(options: OpenOptions = {}): Promise<StateStore> {
  const path = resolvePath(options.path)
  const {
    readonly = false,
    additions = true,
    synchronous = 'full',
    busyTimeout = BUSY_TIMEOUT_MS,
    signal,
  } = options
  checkCount(busyTimeout, 'busyTimeout')
  if (synchronous !== 'full' && synchronous !== 'normal')
    throw new TypeError("synchronous must be 'full' or 'normal'.")
  const events = eventSink(options.onEvent)
  const connectionOptions: ConnectionOptions = { path, readonly, synchronous, busyTimeout, signal, events }

  const size = path === MEMORY ? undefined : fileSize(path)
  const state = size ? await look(connectionOptions) : ({ kind: 'empty' } satisfies FileState)
  const pending = pendingMigrations(state, additions)
  if (readonly && state.kind === 'empty')
    throw new CannotOpenError(
      `There is no state file at '${path}' to read: check the path, or open it without readonly.`,
    )
  if (!readonly && options.migrate === false && pending.length > 0)
    throw new MigrationNeededError(
      `'${path}' lacks the migrations ${pending.join(', ')}: open it with migrate: true to bring it up to date.`,
    )
  if (size === undefined && path !== MEMORY) createFile(path)

  const connection = await openConnection(connectionOptions)
  try {
    const migrations = readonly || pending.length === 0 ? [] : await upgrade(connection, options, events)
    defineContains(connection)
    if (path !== MEMORY) reportFileMode(path, events)
    return new StateStore(connection, await describe(connection, migrations, events), busyTimeout, events)
  } catch (error) {
    connection.close()
    throw error
  }
}

/** `$HERMES_HOME/state.db`, else `~/.hermes/state.db`. */
export function defaultPath(): string {
  return join(process.env.HERMES_HOME || join(homedir(), '.hermes'), 'state.db')
}

function resolvePath(path: string | undefined): string {
  if (path === undefined) return defaultPath()
  if (typeof path !== 'string' || path === '' || path.includes('\0'))
    throw new TypeError("path must be the path of a file, or ':memory:'.")
  return path === MEMORY ? path : resolve(path)
}

/** What an existing file is, found out before anything could write to it. */
async function look(options: ConnectionOptions): Promise<FileState> {
  const connection = await openToLook(options)
  try {
    const state = await patiently(() => inspect(connection), options.busyTimeout, options.signal)
    await assertUsable(state, options.path)
    return state
  } catch (error) {
    throw toStoreError(error, options.path)
  } finally {
    connection.close()
  }
}

async function openToLook(options: ConnectionOptions): Promise<Connection> {
  try {
    return await openConnection({ ...options, readonly: true })
  } catch (error) {
    // A process died while it wrote: the file can only be read after SQLite has rolled that back.
    if (options.readonly || !needsRecovery(error)) throw error
    return openConnection({ ...options, onlyLooking: true })
  }
}

async function upgrade(
  connection: Connection,
  { additions = true, busyTimeout = BUSY_TIMEOUT_MS, signal }: OpenOptions,
  events: EventHandler,
): Promise<string[]> {
  const { path } = connection
  const report = await migrate(connection, { additions, busyTimeout, signal })
  reportMigration(path, report, events)
  return report.migrations
}

function reportMigration(
  path: string,
  { from_version, migrations, untitled }: MigrationReport,
  events: EventHandler,
): void {
  if (migrations.length === 0) return
  if (from_version === 0) events({ level: 'info', type: 'created', message: `Created '${path}'.`, path })
  else
    events({
      level: 'info',
      type: 'migrated',
      message: `Brought '${path}' from schema ${from_version} up to date: ${migrations.join(', ')}.`,
      path,
      from_version,
      migrations,
    })
  for (const { id, title } of untitled)
    events({
      level: 'warning',
      type: 'duplicate-title',
      message: `Session '${id}' lost its title '${title}': a newer session has the same.`,
      session_id: id,
      title,
    })
}

async function describe(connection: Connection, migrations: string[], events: EventHandler) {
  const additions = evenOut(connection, await hermesShape(SCHEMA_VERSION))
  const state = inspect(connection)
  const journalMode = String(connection.pragma('journal_mode'))
  if (!connection.readonly && journalMode !== 'wal' && connection.path !== MEMORY)
    events({
      level: 'warning',
      type: 'journal-mode',
      message: `SQLite keeps '${connection.path}' in journal mode '${journalMode}' instead of WAL: readers and writers will block each other.`,
      path: connection.path,
      journal_mode: journalMode,
    })
  return {
    path: connection.path,
    readonly: connection.readonly,
    schemaVersion: state.kind === 'hermes' ? state.version : SCHEMA_VERSION,
    journalMode,
    additions,
    migrations,
  }
}
