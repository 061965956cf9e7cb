import { homedir } from 'node:os'
import { join, resolve } from 'node:path'
import { checkCount } from './arguments.ts'
import { driftedCounters, flawList, isFlawed } from './database/adoption.ts'
import type { Connection } from './database/connection.ts'
import { inspect } from './database/inspection.ts'
import { BUSY_TIMEOUT_MS, SCHEMA_VERSION } from './database/limits.ts'
import { assertUsable, type MigrationReport, migrate, pendingMigrations } from './database/migrator.ts'
import { missingColumns, prepareNewer } from './database/newer.ts'
import {
  type ConnectionOptions,
  createFile,
  fileSize,
  MEMORY,
  openConnection,
  reportFileMode,
} from './database/open-connection.ts'
import { HERMES_NAMES, reference } from './database/reference.ts'
import { makeViews } from './database/views.ts'
import { CannotOpenError, MigrationNeededError, UnsupportedSchemaError } from './errors.ts'
import { type EventHandler, eventSink } from './events.ts'
import { type Found, look } from './inspect.ts'
import { defineContains } from './search/contains.ts'
import { inspectWordIndex, PROGRESS, wordIndexUnused } from './search/word-index.ts'
import { StateStore } from './store.ts'

export interface OpenOptions {
  /** The file. Default: `$HERMES_HOME/state.db`, else `~/.hermes/state.db`. `:memory:` is a store of its own. */
  path?: string
  /** Write nothing: no migration, no checkpoint. Columns that an older file lacks read as null. Default false. */
  readonly?: boolean
  /** Bring an older, incomplete or new file up to date. Default true; false refuses such a file. */
  migrate?: boolean
  /**
   * Tables and indexes beside Hermes's own. Default true; false leaves the file exactly at Hermes schema 6.
   * What a file already has stays and is kept up either way.
   */
  additions?: boolean
  /**
   * A file of a Hermes schema above 6. `readonly` (default): it is only read. `write`: sessions, messages, titles
   * and usage are written too, and its own indexes and counters stay right; it is never migrated. `refuse`.
   */
  newerSchema?: 'readonly' | 'write' | 'refuse'
  /** `full` (default): an acknowledged message survives a power cut. `normal`: the last ones may not, and writes are faster. */
  synchronous?: 'full' | 'normal'
  /** Milliseconds that a write, or opening, waits for another process's lock. Default 20,000. */
  busyTimeout?: number
  /** Gives up opening. */
  signal?: AbortSignal
  /** What a user of the store may want to know. Default: what must be known goes to `process.emitWarning`. */
  onEvent?: EventHandler
}

/** What happened on the way to an open connection. */
interface Opened {
  connection: Connection
  migrations: string[]
  mended: string[]
}

const NOTHING_FOUND: Found = { state: { kind: 'empty' }, flaws: null, wordIndex: null }

/**
 * Opens a state file, creating it or bringing it up to date where needed. Any number of processes can have the
 * same file open.
 *
 * @throws TypeError for options that are not valid.
 * @throws NotAStateFileError, UnsupportedSchemaError, DamagedFileError: the file was not touched.
 * @throws MigrationNeededError, MigrationFailedError, CannotOpenError, StateStoreBusyError
 * @example
 * await using store = await openStateStore({ path: 'state.db' })
 */
export async function openStateStore(options: OpenOptions = {}): Promise<StateStore> {
  const path = resolvePath(options.path)
  const {
    readonly = false,
    newerSchema = 'readonly',
    synchronous = 'full',
    busyTimeout = BUSY_TIMEOUT_MS,
  } = options
  checkCount(busyTimeout, 'busyTimeout')
  if (synchronous !== 'full' && synchronous !== 'normal')
    throw new TypeError("synchronous must be 'full' or 'normal'.")
  if (newerSchema !== 'readonly' && newerSchema !== 'write' && newerSchema !== 'refuse')
    throw new TypeError("newerSchema must be 'readonly', 'write' or 'refuse'.")
  const events = eventSink(options.onEvent)
  const connecting: ConnectionOptions = {
    path,
    readonly,
    synchronous,
    busyTimeout,
    signal: options.signal,
    events,
  }

  const size = path === MEMORY ? undefined : fileSize(path)
  const found = size ? await look(connecting, (found) => found) : NOTHING_FOUND
  assertUsable(found.state, path)
  const opened = await (found.state.kind === 'newer'
    ? openNewer(found, connecting, options)
    : openOwn(found, size, connecting, options))
  const { connection } = opened
  try {
    defineContains(connection)
    if (path !== MEMORY) reportFileMode(path, events)
    return await makeStore(opened, busyTimeout, events)
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

/** Opens a new file, or one of schema 1 to 6: mended and migrated, unless it is only read. */
async function openOwn(
  { state, flaws }: Found,
  size: number | undefined,
  connecting: ConnectionOptions,
  { migrate: mayMigrate = true, additions = true }: OpenOptions,
): Promise<Opened> {
  const { path, readonly, busyTimeout, signal, events } = connecting
  const interrupted = state.kind === 'hermes' && state.version === 0
  if (readonly && (state.kind === 'empty' || interrupted))
    throw new CannotOpenError(
      interrupted
        ? `The making of '${path}' was interrupted: open it once without readonly, so that it is finished.`
        : `There is no state file at '${path}' to read: check the path, or open it without readonly.`,
    )
  const needed = [...pendingMigrations(state, additions), ...(flaws ? flawList(flaws) : [])]
  if (state.kind === 'hermes' && state.shape.has(`column ${PROGRESS}.done`))
    needed.push('the rest of its word index')
  if (!readonly && !mayMigrate && needed.length > 0)
    throw new MigrationNeededError(
      `'${path}' lacks ${needed.join(', ')}: open it with migrate: true to bring it up to date.`,
    )
  if (size === undefined && path !== MEMORY) createFile(path)

  const connection = await openConnection(connecting)
  try {
    const behind = needed.length > 0 || (flaws !== null && isFlawed(flaws))
    if (readonly || !behind) return { connection, migrations: [], mended: [] }
    const report = await migrate(connection, { additions, busyTimeout, signal })
    if (size === 0) reportEmptyFile(path, events)
    reportMigration(connection, report, events)
    return { connection, ...report }
  } catch (error) {
    connection.close()
    throw error
  }
}

/** Opens a file of a later Hermes schema: to read it, or where that was asked for and goes, to write it. */
async function openNewer(
  { state }: Found,
  connecting: ConnectionOptions,
  { newerSchema, migrate: mayMigrate = true }: OpenOptions,
): Promise<Opened> {
  if (state.kind !== 'newer') throw new Error(`A file of kind ${state.kind} is not newer.`)
  const { path, readonly, events } = connecting
  const schema = `Hermes schema ${state.version ?? `above ${SCHEMA_VERSION}`}`
  if (newerSchema === 'refuse')
    throw new UnsupportedSchemaError(
      `'${path}' has ${schema}, and newerSchema is 'refuse': open it with newerSchema 'readonly' or 'write'. It was not touched.`,
    )
  if (readonly) return { connection: await openConnection(connecting), migrations: [], mended: [] }

  let because = `it has ${schema}, and newerSchema: 'write' was not asked for.`
  if (newerSchema === 'write') {
    const missing = await missingColumns(state.shape)
    if (!mayMigrate && missing.length > 0)
      throw new MigrationNeededError(
        `'${path}' lacks ${missing.join(', ')}: open it with migrate: true to add that, or with readonly: true.`,
      )
    const connection = await openConnection({ ...connecting, keepJournalMode: true })
    try {
      const prepared = await prepareNewer(connection, connecting)
      if (!('obstacle' in prepared)) {
        reportMended(path, prepared.mended, events)
        return { connection, migrations: [], mended: prepared.mended }
      }
      because = `it has ${schema}, and a message cannot be written to it here (${prepared.obstacle}).`
      connection.close()
    } catch (error) {
      connection.close()
      throw error
    }
  }
  const connection = await openConnection({ ...connecting, readonly: true })
  connection.readonlyBecause = because
  events({
    level: 'warning',
    type: 'opened-readonly',
    message: `'${path}' was opened read-only: ${because}`,
    path,
    reason: because,
  })
  return { connection, migrations: [], mended: [] }
}

async function makeStore(
  { connection, migrations, mended }: Opened,
  busyTimeout: number,
  events: EventHandler,
): Promise<StateStore> {
  const { path, readonly } = connection
  const state = inspect(connection)
  if (state.kind === 'empty' || state.kind === 'foreign')
    throw new Error(`'${path}' changed while it was opened.`)
  const { shape, version, kind } = state
  makeViews(connection, shape, (await reference(HERMES_NAMES)).shape)
  const newer = kind === 'newer'
  // What opening has just brought up to date has been checked.
  const unchecked = newer || (readonly && state.executed.length === 0)
  const { problem } = inspectWordIndex(connection, shape, unchecked)
  if (problem !== null) events(wordIndexUnused(path, problem))
  const journalMode = String(connection.pragma('journal_mode'))
  if (!readonly && journalMode !== 'wal' && path !== MEMORY)
    events({
      level: 'warning',
      type: 'journal-mode',
      message: `SQLite keeps '${path}' in journal mode '${journalMode}' instead of WAL: readers and writers will block each other.`,
      path,
      journal_mode: journalMode,
    })
  const hasAdditions = shape.has('column hs_structured_content.message_id')
  const info = {
    path,
    readonly,
    readonlyBecause: readonly ? (connection.readonlyBecause ?? 'it was opened with readonly: true.') : null,
    schemaVersion: state.stated.length > 0 ? version : null,
    journalMode,
    additions: hasAdditions,
    migrations,
    mended,
    wordIndexProblem: problem,
  }
  // A later Hermes reads structured content in its own form only.
  const additions = hasAdditions && !newer
  return new StateStore(connection, info, busyTimeout, {
    events,
    additions,
    newer,
    wordIndex: problem === null,
  })
}

function reportEmptyFile(path: string, events: EventHandler): void {
  events({
    level: 'warning',
    type: 'empty-file',
    message: `'${path}' was there with 0 bytes, and is a new store now: if it had sessions before, close it and restore a backup.`,
    path,
  })
}

function reportMigration(
  connection: Connection,
  { from_version, migrations, mended, untitled }: MigrationReport,
  events: EventHandler,
): void {
  const { path } = connection
  if (migrations.length > 0 && from_version === 0 && mended.length === 0)
    events({ level: 'info', type: 'created', message: `Created '${path}'.`, path })
  else if (migrations.length > 0)
    events({
      level: 'info',
      type: 'migrated',
      message: `Brought '${path}' from schema ${from_version} up to date: ${migrations.join(', ')}.`,
      path,
      from_version,
      migrations,
    })
  reportMended(path, mended, events)
  for (const { id, title } of untitled)
    events({
      level: 'warning',
      type: 'duplicate-title',
      message: `Session '${id}' lost its title '${title}': a newer session has the same.`,
      session_id: id,
      title,
    })
  const sessions = from_version > 0 ? driftedCounters(connection) : 0
  if (sessions > 0)
    events({
      level: 'warning',
      type: 'counters-drifted',
      message: `message_count of ${sessions} sessions in '${path}' is not the number of their messages: sessions.recount() counts them again.`,
      path,
      sessions,
    })
}

function reportMended(path: string, mended: string[], events: EventHandler): void {
  if (mended.length > 0)
    events({
      level: 'warning',
      type: 'mended',
      message: `'${path}' was not what it said it was; mended: ${mended.join(', ')}.`,
      path,
      mended,
    })
}
