import { homedir } from 'node:os'
import { join, resolve } from 'node:path'
import { checkCount } from './arguments.ts'
import { inspect } from './database/inspection.ts'
import { BUSY_TIMEOUT_MS } from './database/limits.ts'
import { assertUsable } from './database/migrator.ts'
import { type ConnectionOptions, fileSize, MEMORY, reportFileMode } from './database/open-connection.ts'
import { HERMES_NAMES, reference } from './database/reference.ts'
import { makeViews } from './database/views.ts'
import { patiently } from './database/waiting.ts'
import { type EventHandler, eventSink } from './events.ts'
import { type Found, look } from './inspect.ts'
import { type Opened, openNewer, openOwn } from './opening.ts'
import { IndexHealth } from './search/index-health.ts'
import { inspectWordIndex, wordIndexUnused } from './search/word-index.ts'
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
    if (path !== MEMORY) reportFileMode(path, events)
    return await makeStore(opened, found, connecting)
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

async function makeStore(
  { connection, migrations, mended }: Opened,
  found: Found,
  { busyTimeout, signal, events }: ConnectionOptions,
): Promise<StateStore> {
  const { path, readonly } = connection
  const state = await patiently(() => inspect(connection), busyTimeout, signal)
  if (state.kind === 'empty' || state.kind === 'foreign')
    throw new Error(`'${path}' changed while it was opened.`)
  const { shape, kind } = state
  const complete = (await reference(HERMES_NAMES)).shape
  connection.setUp(() => makeViews(connection, shape, complete))
  const newer = kind === 'newer'
  // What was only looked at is still what it was; what was brought up to date need not be checked row by row.
  const { problem } =
    (newer || readonly ? found.wordIndex : null) ?? inspectWordIndex(connection, shape, false)
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
    readonlyBecause: readonly ? connection.readonlyBecause : null,
    schemaVersion: state.number,
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
    indexes: new IndexHealth(connection, shape, problem === null, !newer, events),
  })
}
