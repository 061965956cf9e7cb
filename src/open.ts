import { homedir } from 'node:os'
import { join, resolve } from 'node:path'
import { fileSize, reportFileMode } from './database/file-access.ts'
import { FileGuard } from './database/file-guard.ts'
import { fileKey } from './database/file-identity.ts'
import { inspect } from './database/inspection.ts'
import { assertUsable } from './database/migrator.ts'
import { reportNetwork } from './database/network.ts'
import { type ConnectionOptions, MEMORY } from './database/open-connection.ts'
import { HERMES_NAMES, reference } from './database/reference.ts'
import { toStoreError } from './database/sqlite-errors.ts'
import { StoreHandle } from './database/store-handle.ts'
import { makeViews } from './database/views.ts'
import { patiently } from './database/waiting.ts'
import { WriteQueue } from './database/write-queue.ts'
import { CannotOpenError } from './errors.ts'
import { FileEvents } from './events.ts'
import { type Found, look } from './inspect.ts'
import { keepMessages } from './messages/acknowledged.ts'
import { type Opened, openNewer, openOwn } from './opening.ts'
import { assertAgrees, checkOptions, type OpenOptions, type SharedOptions } from './options.ts'
import type { ReaderData } from './reader/protocol.ts'
import { Reader } from './reader/reader.ts'
import { IndexHealth } from './search/index-health.ts'
import { inspectWordIndex, wordIndexUnused } from './search/word-index.ts'
import { keepFile, type OpenFile, shareFile } from './shared-files.ts'
import { StateStore } from './store.ts'

const NOTHING_FOUND: Found = { state: { kind: 'empty' }, flaws: null, wordIndex: null }

/**
 * Opens a state file, creating it or bringing it up to date where needed. Any number of processes can have the
 * same file open; within one process, all stores of a file share one connection, and the last to be closed closes it.
 *
 * @throws TypeError for options that are not valid.
 * @throws NotAStateFileError, UnsupportedSchemaError, DamagedFileError: the file was not touched.
 * @throws OptionConflictError where the file is open in this process with other options.
 * @throws MigrationNeededError, MigrationFailedError, CannotOpenError, StateStoreBusyError
 * @example
 * await using store = await openStateStore({ path: 'state.db' })
 */
export async function openStateStore(options: OpenOptions = {}): Promise<StateStore> {
  const path = resolvePath(options.path)
  const shared = checkOptions(options)
  const open = () =>
    openFile(path, shared, options).catch((error) => {
      throw toStoreError(error, path)
    })
  const { file, opened, leave } =
    path === MEMORY
      ? keepFile(await open())
      : await shareFile(path, options.signal, (file) => assertAgrees(path, options, file.options), open)
  const { queue, reader, events, info, context } = file
  // The handler of the one who opened it has heard how that went.
  if (!opened) events.add(options.onEvent)
  const handle = new StoreHandle(queue, () => leave().finally(() => events.remove(options.onEvent)))
  const { worker = true } = options
  return new StateStore(
    handle,
    opened ? info : { ...info, migrations: [], mended: [] },
    context,
    worker ? reader : null,
    (other, readonly) => openStateStore({ path: other, readonly, worker: false, onEvent: events.raise }),
  )
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

async function openFile(path: string, shared: SharedOptions, options: OpenOptions): Promise<OpenFile> {
  const events = new FileEvents()
  events.add(options.onEvent)
  const { readonly, synchronous, journalMode, busyTimeout } = shared
  const { signal } = options
  const connecting = { path, readonly, synchronous, journalMode, busyTimeout, signal, events: events.raise }
  const size = path === MEMORY ? undefined : fileSize(path)
  const found = size ? await look(connecting, (found) => found) : NOTHING_FOUND
  assertUsable(found.state, path)
  const opened = await (found.state.kind === 'newer'
    ? openNewer(found, connecting, { ...options, ...shared })
    : openOwn(found, size, connecting, options))
  try {
    if (path !== MEMORY) reportFileMode(path, events.raise)
    if (path !== MEMORY && !opened.connection.readonly) await reportNetwork(path, events.raise)
    const { info, context, shapes } = await describe(opened, found, connecting)
    const reader =
      info.journalMode === 'wal'
        ? new Reader({ path, identity: fileKey(path), busyTimeout, ...shapes }, events.raise)
        : null
    const { file } = opened.connection
    const guard = file && !info.readonly ? new FileGuard(path, file, info.journalMode === 'wal') : null
    const { indexes } = context
    const queue = new WriteQueue(opened.connection, guard, busyTimeout, events.raise, {
      indexes,
      keep: (connection, ids) => keepMessages(connection, ids, indexes),
      others: reader,
    })
    return { queue, reader, events, info, context, options: { ...shared, journalMode: info.journalMode } }
  } catch (error) {
    opened.connection.close()
    throw error
  }
}

/** What the file is now, and can be relied on for. */
async function describe(
  { connection, migrations, mended }: Opened,
  found: Found,
  { busyTimeout, journalMode: wanted, signal, events }: ConnectionOptions,
): Promise<Pick<OpenFile, 'info' | 'context'> & { shapes: Pick<ReaderData, 'shape' | 'complete'> }> {
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
  if (wanted !== undefined && journalMode !== wanted && !readonly)
    throw new CannotOpenError(
      `SQLite keeps '${path}' in journal mode '${journalMode}' and not in '${wanted}': leave journalMode out to use it as it is. Its messages were not touched.`,
    )
  if (!readonly && journalMode !== 'wal' && journalMode !== wanted && path !== MEMORY)
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
  const indexes = new IndexHealth(connection, shape, problem === null, !newer, events)
  // A later Hermes reads structured content in its own form only.
  const context = { events, additions: hasAdditions && !newer, newer, indexes }
  return { info, context, shapes: { shape, complete } }
}
