import { resolve } from 'node:path'
import { type Flaws, findFlaws, flawList, isFlawed } from './database/adoption.ts'
import type { Connection } from './database/connection.ts'
import { fileSize } from './database/file-access.ts'
import { executedIn, type FileState, inspect } from './database/inspection.ts'
import { BUSY_TIMEOUT_MS, SCHEMA_VERSION } from './database/limits.ts'
import { missingColumns } from './database/newer.ts'
import { type ConnectionOptions, openConnection } from './database/open-connection.ts'
import { ADDITION_NAMES, HERMES_NAMES, MIGRATIONS, reference } from './database/reference.ts'
import { isColumn, listed, type Shape, tableOf } from './database/shape.ts'
import { needsRecovery, toStoreError } from './database/sqlite-errors.ts'
import { patiently } from './database/waiting.ts'
import { DamagedFileError, NotAStateFileError } from './errors.ts'
import { inspectWordIndex, type WordIndex } from './search/word-index.ts'

/** What a file is. */
export interface StateFileReport {
  /** Absolute. */
  path: string
  /**
   * - `missing`: there is no file. `empty`: it has 0 bytes or no tables; opening makes a new store in it.
   * - `ours`: up to date, and written by this package. `hermes`: of Hermes schema 1 to 6, for this package to adopt;
   *   complete where `missing` is empty.
   * - `newer`: of a later Hermes schema.
   * - `foreign`: somebody else's database. `not-a-database`, `damaged`: SQLite cannot read it.
   */
  kind: 'missing' | 'empty' | 'ours' | 'hermes' | 'newer' | 'foreign' | 'not-a-database' | 'damaged'
  /** A sentence for people: what was found. */
  found: string
  /** Hermes's own number, as the file has it; null where it has none that can be read. */
  schemaVersion: number | null
  /** The migrations that it has had, recorded in it or by its number. */
  migrations: string[]
  /** What it should have by its number and its migrations and lacks, or has in another form. */
  missing: string[]
  /** Tables and columns beside those that this package knows. */
  extra: string[]
  /** `wal`, `delete`, …; null where the file cannot be read. */
  journalMode: string | null
  /** The sizes of the file and of its write-ahead log. */
  bytes: number
  walBytes: number
  /** The word index: its kind, and why it cannot be relied on; null where there is no state file. */
  wordIndex: WordIndex | null
}

/**
 * Says what a file is, without writing: by its size, and through a read-only SQLite connection. It never reads the
 * file, its -wal or its -shm in another way: closing them would drop the locks that this process holds on them.
 *
 * @throws CannotOpenError, StateStoreBusyError, ReadonlyStoreError for a file that a dead process left half written.
 * @example
 * const { kind, found } = await inspectStateFile('/home/ada/.hermes/state.db')
 */
export async function inspectStateFile(path: string): Promise<StateFileReport> {
  if (typeof path !== 'string' || path === '' || path.includes('\0'))
    throw new TypeError('path must be the path of a file.')
  const absolute = resolve(path)
  const bytes = fileSize(absolute)
  const report: StateFileReport = {
    path: absolute,
    kind: bytes === undefined ? 'missing' : 'empty',
    found: bytes === undefined ? 'There is no file.' : 'The file has 0 bytes.',
    schemaVersion: null,
    migrations: [],
    missing: [],
    extra: [],
    journalMode: null,
    bytes: bytes ?? 0,
    walBytes: fileSize(`${absolute}-wal`) ?? 0,
    wordIndex: null,
  }
  if (!bytes) return report
  try {
    return await look(
      {
        path: absolute,
        readonly: true,
        synchronous: 'full',
        busyTimeout: BUSY_TIMEOUT_MS,
        signal: undefined,
        events: () => {},
      },
      async (found, connection) => ({
        ...report,
        ...(await describe(found)),
        journalMode: String(connection.pragma('journal_mode')),
      }),
    )
  } catch (error) {
    const kind = error instanceof NotAStateFileError ? 'not-a-database' : 'damaged'
    if (kind === 'damaged' && !(error instanceof DamagedFileError)) throw error
    return { ...report, kind, found: (error as Error).message }
  }
}

/**
 * Refuses a file that ends within a page: SQLite would read zeros for the rest. Not while a process writes, or has
 * died while it did: then the log has the page.
 */
function assertWhole(connection: Connection, path: string): void {
  const rest = (fileSize(path) ?? 0) % Number(connection.pragma('page_size'))
  if (rest === 0 || fileSize(`${path}-wal`) || fileSize(`${path}-journal`)) return
  throw new DamagedFileError(
    `'${path}' is damaged (it ends within a page): it was cut short, when it was copied perhaps. Copy it again, or put a backup in its place with restoreStateFile(backup, path, { replace: true }). It was not touched.`,
  )
}

/** What an existing file is, found out before anything could write to it. */
export interface Found {
  state: FileState
  /** Of a file of Hermes schema 1 to 6. */
  flaws: Flaws | null
  wordIndex: WordIndex | null
}

/**
 * Looks at an existing file and calls `use` with what was found, while it is still open for reading.
 *
 * @throws NotAStateFileError, DamagedFileError where SQLite cannot read it, CannotOpenError, StateStoreBusyError
 */
export async function look<T>(
  options: ConnectionOptions,
  use: (found: Found, connection: Connection) => T | Promise<T>,
): Promise<T> {
  const connection = await openToLook(options)
  try {
    const found = await patiently(() => examine(connection), options.busyTimeout, options.signal)
    assertWhole(connection, options.path)
    return await use(found, connection)
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

async function examine(connection: Connection): Promise<Found> {
  const state = inspect(connection)
  if (state.kind === 'empty' || state.kind === 'foreign') return { state, flaws: null, wordIndex: null }
  return {
    state,
    flaws: state.kind === 'hermes' ? await findFlaws(connection, state) : null,
    wordIndex: inspectWordIndex(
      connection,
      state.shape,
      state.executed.length === 0 || state.kind === 'newer',
    ),
  }
}

async function describe({ state, flaws, wordIndex }: Found): Promise<Partial<StateFileReport>> {
  if (state.kind === 'empty') return { kind: 'empty', found: 'It is a SQLite database without tables.' }
  if (state.kind === 'foreign')
    return { kind: 'foreign', found: `It is somebody else’s database: ${state.found}.` }
  const { shape, version } = state
  const { shape: known } = await reference([...HERMES_NAMES, ...ADDITION_NAMES])
  const report = {
    schemaVersion: state.number,
    migrations: executedIn(state),
    missing: flaws ? flawList(flaws) : await missingColumns(shape),
    extra: extraParts(shape, known),
    wordIndex,
  }
  const lacking = report.missing.length > 0 ? `, but for ${listed(report.missing)}` : ''
  if (state.kind === 'newer') {
    const beyond = listed(report.extra)
    return {
      ...report,
      kind: 'newer',
      found: `It has Hermes schema ${version ?? `above ${SCHEMA_VERSION}`} (${beyond}): this release reads it${lacking}.`,
    }
  }
  const ours =
    flaws !== null &&
    !isFlawed(flaws) &&
    Object.keys(MIGRATIONS).every((name) => report.migrations.includes(name))
  const found = ours ? 'up to date' : version === 0 ? 'whose making was interrupted' : `complete${lacking}`
  return {
    ...report,
    kind: ours ? 'ours' : 'hermes',
    found: `It is a state file of Hermes schema ${version}, ${found}.`,
  }
}

/** `table x` or `x.column` for what `known` does not have. */
function extraParts(shape: Shape, known: Shape): string[] {
  const tables = new Set([...known.keys()].map(tableOf))
  const parts = [...shape.keys()]
    .filter((key) => isColumn(key) && !known.has(key))
    .map((key) => (tables.has(tableOf(key)) ? key.replace('column ', '') : `table ${tableOf(key)}`))
  return [...new Set(parts)]
}
