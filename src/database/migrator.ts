import { type Kysely, type Migration, type MigrationResultSet, Migrator, sql } from 'kysely'
import { NotAStateFileError, StateStoreError, UnsupportedSchemaError } from '../errors.ts'
import { fillBigrams, finishRebuild, isLarge, remakeWordIndex } from '../search/rebuild.ts'
import { PROGRESS } from '../search/word-index.ts'
import {
  checkWordIndex,
  duplicateTitles,
  type Flaws,
  failure,
  findFlaws,
  flawList,
  isFlawed,
  mend,
  WORD_INDEX_MIGRATION,
} from './adoption.ts'
import type { Connection } from './connection.ts'
import { executedIn, type FileState, type HermesState, inspect } from './inspection.ts'
import { SCHEMA_VERSION } from './limits.ts'
import { ADDITION_NAMES, HERMES_NAMES, MIGRATIONS, migrationDb, reference } from './reference.ts'
import { listed, readShape } from './shape.ts'
import { toStoreError } from './sqlite-errors.ts'
import { patiently } from './waiting.ts'

/** What bringing a file up to date did, or would do. */
export interface MigrationReport {
  /** The Hermes schema before, 0 for a new file. */
  from_version: number
  /** The migrations that ran (or would run), in order. */
  migrations: string[]
  /** Whether they went down. */
  down: boolean
  /** What the file should have had and lacked, or had in another form. */
  mended: string[]
  /** Sessions whose title a newer session has too: it is taken from them. */
  untitled: { id: string; title: string }[]
}

export interface MigrateOptions {
  /** Whether what is not part of Hermes schema 6 is wanted. What a file already has of it stays either way. */
  additions: boolean
  /** The last migration to have when done; without it, all that are wanted. Going below what is there runs `down`. */
  target?: string
  busyTimeout: number
  signal?: AbortSignal
}

/** The migrations a file needs to be up to date: none, in the usual case, and then nobody needs the write lock. */
export function pendingMigrations(state: FileState, additions: boolean): string[] {
  const done = executedIn(state)
  const wanted =
    additions || done.some((name) => ADDITION_NAMES.includes(name)) ? Object.keys(MIGRATIONS) : HERMES_NAMES
  return wanted.filter((name) => !done.includes(name))
}

/**
 * Refuses what this package does not open.
 *
 * @throws NotAStateFileError for somebody else's database.
 * @throws UnsupportedSchemaError for additions of a later release that this one would have to fit in between.
 */
export function assertUsable(state: FileState, path: string): void {
  if (state.kind === 'foreign')
    throw new NotAStateFileError(
      `'${path}' is a database of something else: ${state.found}. It was not touched; give the path of a state.db, or of a new file.`,
    )
  const unknown = executedIn(state).filter((name) => !(name in MIGRATIONS))
  if (unknown.length > 0 && pendingMigrations(state, true).length > 0)
    throw new UnsupportedSchemaError(
      `'${path}' was written by a later release of hermes-state (${listed(unknown)}): update this one. It was not touched.`,
    )
}

/**
 * Refuses what this package does not migrate: the same, and later schemas of Hermes.
 *
 * @throws NotAStateFileError, UnsupportedSchemaError
 */
export function assertMigratable(state: FileState, path: string): void {
  assertUsable(state, path)
  if (state.kind === 'newer')
    throw new UnsupportedSchemaError(
      `'${path}' has Hermes schema ${state.version ?? `above ${SCHEMA_VERSION}`}, and this release migrates schemas up to ${SCHEMA_VERSION}. It was not touched.`,
    )
}

/**
 * Brings a file to the wanted migrations in one transaction, after mending what it lacks of those it has had: the
 * runner's own tables are inside too, a failure leaves nothing, and of several processes one does the work while
 * the others wait and find it done. Only the word index of a large file is finished afterwards, in many.
 *
 * @throws NotAStateFileError, UnsupportedSchemaError, MigrationFailedError, DamagedFileError, StateStoreBusyError
 */
export async function migrate(connection: Connection, options: MigrateOptions): Promise<MigrationReport> {
  const { path } = connection
  await patiently(() => connection.begin(), options.busyTimeout, options.signal)
  try {
    const report = await run(connection, inspect(connection), options)
    const titles = report.untitled.length
    if (titles > 0)
      report.mended.push(`${titles === 1 ? 'title' : `${titles} titles`} (newer sessions have the same)`)
    // Read before the commit: in rollback-journal mode another writer may shut out readers after it.
    const shape = readShape(connection)
    const remade = shape.has(`column ${PROGRESS}.done`) && (await reference(executedIn(inspect(connection))))
    await patiently(() => connection.commit(), options.busyTimeout, options.signal)
    if (remade) await finishRebuild(connection, remade, options)
    if (shape.has('column hs_bigrams_state.watermark')) await fillBigrams(connection, options)
    return report
  } catch (error) {
    connection.rollback()
    throw error instanceof StateStoreError ? error : toStoreError(error, path)
  }
}

async function run(
  connection: Connection,
  found: FileState,
  options: MigrateOptions,
): Promise<MigrationReport> {
  assertMigratable(found, connection.path)
  const report: MigrationReport = {
    from_version: found.kind === 'hermes' ? found.version : 0,
    migrations: [],
    down: false,
    mended: [],
    untitled: [],
  }
  const state = found.kind === 'hermes' ? await adopt(connection, found, report, options) : found
  const done = executedIn(state)
  const target = options.target ?? pendingMigrations(state, options.additions).at(-1)
  const last = done.at(-1)
  if (target === undefined || target === last) return report

  const db = migrationDb(connection)
  if (state.kind === 'hermes' && last !== undefined && done.some((name) => !state.executed.includes(name))) {
    // What Hermes itself has brought to the file is recorded as done without running it.
    const recorded = Object.fromEntries(done.map((name) => [name, { up: async () => {} }]))
    assertMigrated(await migratorOf(db, recorded).migrateTo(last), connection.path)
  }
  // Kysely orders what has run by its time stamps, which lie where a clock stepped back. Names do not.
  if (done.length > 0)
    await sql`update kysely_migration set timestamp = (select max(timestamp) from kysely_migration)`.execute(
      db,
    )

  if (report.from_version === 3 && target >= HERMES_NAMES[3]!)
    report.untitled.push(...duplicateTitles(connection))
  const results = assertMigrated(await migratorOf(db, MIGRATIONS).migrateTo(target), connection.path)
  report.migrations.push(...results.map(({ migrationName }) => migrationName))
  report.down = results.some(({ direction }) => direction === 'Down')
  // It leaves the index of a large file empty.
  if (!report.down && report.migrations.includes(WORD_INDEX_MIGRATION) && isLarge(connection))
    remakeWordIndex(connection, await reference(executedIn(inspect(connection))), false)
  return report
}

/** Mends a file where it needs that, and says so in the report. Returns what it is then. */
async function adopt(
  connection: Connection,
  state: HermesState,
  report: MigrationReport,
  { additions, target }: MigrateOptions,
): Promise<FileState> {
  let flaws: Flaws = await findFlaws(connection, state)
  const pending = pendingMigrations(state, additions)
  const remake =
    !pending.includes(WORD_INDEX_MIGRATION) || (target !== undefined && target < WORD_INDEX_MIGRATION)
  // Only what is being written anyway: with nothing to do, a file of Hermes is not even locked.
  if (remake && state.executed.length === 0 && state.version > 0 && (isFlawed(flaws) || pending.length > 0))
    flaws = checkWordIndex(connection, flaws)
  if (state.shape.has(`column ${PROGRESS}.done`)) report.mended.push('word index (it was half made)')
  if (!isFlawed(flaws)) return state
  report.untitled = await mend(connection, state, flaws, remake)
  report.mended.push(...flawList(flaws))
  report.migrations = HERMES_NAMES.slice(state.version)
  return inspect(connection)
}

function migratorOf(db: Kysely<unknown>, migrations: Readonly<Record<string, Migration>>): Migrator {
  return new Migrator({
    db,
    // An import map: FileMigrationProvider cannot import TypeScript, nor find files inside a bundle.
    provider: { getMigrations: async () => ({ ...migrations }) },
    allowUnorderedMigrations: true,
  })
}

function assertMigrated({ error, results = [] }: MigrationResultSet, path: string) {
  if (error === undefined) return results
  const failed = results.find(({ status }) => status === 'Error')?.migrationName ?? 'the migrator'
  throw failure(`Migrating '${path}' failed in ${failed}`, error, path)
}
