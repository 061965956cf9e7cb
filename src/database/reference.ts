import Database from 'better-sqlite3'
import { CompiledQuery, type DatabaseIntrospector, type Driver, Kysely, type Migration, sql } from 'kysely'
import { additionMigrations, hermesMigrations } from '../../migrations/index.ts'
import { Connection } from './connection.ts'
import { stateDialect } from './dialect.ts'
import { readShape, type Shape, select, tableOf } from './shape.ts'

/** Every migration by name, in order. */
export const MIGRATIONS: Readonly<Record<string, Migration>> = { ...hermesMigrations, ...additionMigrations }

export const HERMES_NAMES: readonly string[] = Object.keys(hermesMigrations)
export const ADDITION_NAMES: readonly string[] = Object.keys(additionMigrations)

/** What a file consists of after certain migrations, and how to make each part of it. */
export interface Reference {
  shape: Shape
  /** The statement that makes a part, by its key in the shape; a column is added to its table. */
  ddl: ReadonlyMap<string, string>
  /** The statement that makes a whole table, by its name. */
  tables: ReadonlyMap<string, string>
}

const known = new Map<string, Promise<Reference>>()

/** Reads off a database in memory what migrations make. Names of later releases are passed over. */
export function reference(names: readonly string[]): Promise<Reference> {
  const own = names.filter((name) => name in MIGRATIONS)
  const key = own.join()
  let found = known.get(key)
  if (!found) {
    found = readReference(own)
    known.set(key, found)
  }
  return found
}

async function readReference(names: readonly string[]): Promise<Reference> {
  const connection = new Connection(new Database(':memory:'), () => {})
  const db = migrationDb(connection)
  for (const name of names) await MIGRATIONS[name]?.up(db)
  const shape = readShape(connection)
  const statements = new Map(
    select<{ type: string; name: string; sql: string }>(
      connection,
      sql`select type, name, sql from sqlite_schema where sql is not null`,
    ).map(({ type, name, sql }) => [`${type} ${name}`, sql]),
  )
  connection.close()
  const tables = new Map<string, string>()
  const ddl = new Map<string, string>()
  for (const [key, definition] of shape) {
    const table = tableOf(key)
    if (table === undefined) ddl.set(key, statements.get(key)!)
    else {
      tables.set(table, statements.get(`table ${table}`)!)
      const column = key.slice(`column ${table}.`.length)
      ddl.set(key, `alter table ${table} add column "${column}" ${definition}`)
    }
  }
  return { shape, ddl, tables }
}

/** Kysely for migrations, on a connection whose transactions are begun and ended elsewhere. */
export function migrationDb(connection: Connection): Kysely<unknown> {
  return new Kysely<unknown>({ dialect: stateDialect(bareDriver(connection), () => tableNames(connection)) })
}

/**
 * What the migrator asks for: which tables there are. Kysely's own way asks for the columns of every table and view
 * too, and fails where somebody's view is broken.
 */
function tableNames(connection: Connection): DatabaseIntrospector {
  const getTables = async () =>
    select<{ name: string }>(connection, sql`select name from sqlite_schema where type = 'table'`).map(
      ({ name }) => ({ name, isView: false, columns: [] }),
    )
  return { getSchemas: async () => [], getTables, getMetadata: async () => ({ tables: await getTables() }) }
}

/** Runs Kysely's queries on a connection whose transactions are begun and ended elsewhere. */
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
