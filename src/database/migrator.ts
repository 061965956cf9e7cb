import Database from 'better-sqlite3'
import {
  CompiledQuery,
  type Driver,
  Kysely,
  type Migration,
  type MigrationResultSet,
  Migrator,
  sql,
} from 'kysely'
import { additionMigrations, hermesMigrations } from '../../migrations/index.ts'
import {
  MigrationFailedError,
  NotAStateFileError,
  StateStoreError,
  UnsupportedSchemaError,
} from '../errors.ts'
import { Connection } from './connection.ts'
import { stateDialect } from './dialect.ts'
import { build } from './fixed-query.ts'
import { type FileState, inspect, listed, missingFrom, readShape, type Shape } from './inspection.ts'
import { SCHEMA_VERSION } from './limits.ts'
import { toStoreError } from './sqlite-errors.ts'
import { patiently } from './waiting.ts'

const HERMES_NAMES = Object.keys(hermesMigrations)
const ADDITION_NAMES = Object.keys(additionMigrations)

/** Every migration by name, in order. */
export const MIGRATIONS: Readonly<Record<string, Migration>> = { ...hermesMigrations, ...additionMigrations }

/** What bringing a file up to date did, or would do. */
export interface MigrationReport {
  /** The Hermes schema before, 0 for a new file. */
  from_version: number
  /** The migrations that ran (or would run), in order. */
  migrations: string[]
  /** Whether they went down. */
  down: boolean
  /** Sessions whose title a newer session has too; migration 004 takes it from them. */
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

/** What a file needs to be up to date: nothing, in the usual case, and then nobody needs the write lock. */
export function pendingMigrations(state: FileState, additions: boolean): string[] {
  const done = executedIn(state)
  const wanted =
    additions || done.some((name) => ADDITION_NAMES.includes(name)) ? Object.keys(MIGRATIONS) : HERMES_NAMES
  return wanted.filter((name) => !done.includes(name))
}

/** The migrations a file has had, whether they are recorded in it or follow from its version. */
export function executedIn(state: FileState): string[] {
  if (state.kind !== 'hermes') return []
  // Of Hermes's own migrations the version decides: Hermes raises it without recording a migration here.
  return [
    ...HERMES_NAMES.slice(0, state.version),
    ...state.executed.filter((name) => !HERMES_NAMES.includes(name)),
  ]
}

/**
 * Refuses what this package does not open.
 *
 * @throws NotAStateFileError for somebody else's database.
 * @throws UnsupportedSchemaError for a schema above 6, one that lacks parts of its version, or additions of a
 * later release that this one would have to fit in between.
 */
export async function assertUsable(state: FileState, path: string): Promise<void> {
  if (state.kind === 'foreign')
    throw new NotAStateFileError(
      `'${path}' is a database of something else: ${state.found}. It was not touched; give the path of a state.db, or of a new file.`,
    )
  if (state.kind === 'newer')
    throw new UnsupportedSchemaError(
      `'${path}' has Hermes schema ${state.version}, and this release opens schemas up to ${SCHEMA_VERSION}. It was not touched.`,
    )
  if (state.kind !== 'hermes') return
  const missing = missingFrom(state.shape, await hermesShape(state.version))
  if (missing.length > 0)
    throw new UnsupportedSchemaError(
      `'${path}' says it has Hermes schema ${state.version} but lacks ${listed(missing)}. It was not touched.`,
    )
  const unknown = executedIn(state).filter((name) => !(name in MIGRATIONS))
  if (unknown.length > 0 && pendingMigrations(state, true).length > 0)
    throw new UnsupportedSchemaError(
      `'${path}' was written by a later release of hermes-state (${listed(unknown)}): update this one. It was not touched.`,
    )
}

/**
 * Brings a file to the wanted migrations in one transaction: the runner's own tables are inside too, a failure
 * leaves nothing, and of several processes one does the work while the others wait and find it done.
 */
export async function migrate(connection: Connection, options: MigrateOptions): Promise<MigrationReport> {
  const { path } = connection
  await patiently(() => connection.begin(), options.busyTimeout, options.signal)
  try {
    const state = inspect(connection)
    await assertUsable(state, path)
    const report = await run(connection, state, options)
    connection.commit()
    return report
  } catch (error) {
    connection.rollback()
    throw error instanceof StateStoreError ? error : toStoreError(error, path)
  }
}

async function run(
  connection: Connection,
  state: FileState,
  options: MigrateOptions,
): Promise<MigrationReport> {
  const done = executedIn(state)
  const pending = pendingMigrations(state, options.additions)
  const target = options.target ?? pending.at(-1)
  const report: MigrationReport = {
    from_version: state.kind === 'hermes' ? state.version : 0,
    migrations: [],
    down: false,
    untitled: [],
  }
  const last = done.at(-1)
  if (target === undefined || target === last) return report

  const db = new Kysely<unknown>({ dialect: stateDialect(bareDriver(connection)) })
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

  if (report.from_version === 3 && target >= HERMES_NAMES[3]!) report.untitled = duplicateTitles(connection)
  const results = assertMigrated(await migratorOf(db, MIGRATIONS).migrateTo(target), connection.path)
  report.migrations = results.map(({ migrationName }) => migrationName)
  report.down = results.some(({ direction }) => direction === 'Down')
  return report
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
  const reason = error instanceof Error ? error.message : String(error)
  throw new MigrationFailedError(
    `Migrating '${path}' failed in ${failed}: ${reason}. The file is as it was before; report this, with the schema of the file.`,
    { cause: error },
  )
}

/** The sessions that migration 004 will take the title from. */
function duplicateTitles(connection: Connection): { id: string; title: string }[] {
  return connection.execute<{ id: string; title: string }>(
    sql<{ id: string; title: string }>`
      select id, title from sessions
      where title is not null and exists (
        select 1 from sessions as newer where newer.title = sessions.title
          and (newer.started_at, newer.id) > (sessions.started_at, sessions.id))`.compile(build),
  ).rows
}

let hermesShapes: Promise<Shape[]> | undefined

/** What Hermes schema `version` consists of: read off a database that its migrations ran on. */
export async function hermesShape(version: number): Promise<Shape> {
  hermesShapes ??= (async () => {
    const connection = new Connection(new Database(':memory:'), () => {})
    const db = new Kysely<unknown>({ dialect: stateDialect(bareDriver(connection)) })
    const shapes: Shape[] = []
    for (const { up } of Object.values(hermesMigrations)) {
      await up(db)
      shapes.push(readShape(connection))
    }
    connection.close()
    return shapes
  })()
  return (await hermesShapes)[version - 1]!
}

/** Runs Kysely's queries on a connection whose transaction is already open. */
function bareDriver(connection: Connection): Driver {
  const nothing = async () => {}
  return {
    init: nothing,
    acquireConnection: async () => ({
      executeQuery: async <Row>({ sql, parameters }: CompiledQuery) =>
        connection.execute<Row>(CompiledQuery.raw(sql, [...parameters])),
      streamQuery: () => {
        throw new Error('The migrator does not stream.')
      },
    }),
    beginTransaction: nothing,
    commitTransaction: nothing,
    rollbackTransaction: nothing,
    releaseConnection: nothing,
    destroy: nothing,
  }
}
