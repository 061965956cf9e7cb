import {
  type DatabaseIntrospector,
  type Dialect,
  type Driver,
  type Kysely,
  SqliteAdapter,
  SqliteIntrospector,
  SqliteQueryCompiler,
} from 'kysely'

/** Kysely's SQLite dialect over a driver of ours. */
export function stateDialect(
  driver: Driver,
  introspect: (db: Kysely<unknown>) => DatabaseIntrospector = (db) => new SqliteIntrospector(db),
): Dialect {
  return {
    createDriver: () => driver,
    createAdapter: () => new SqliteAdapter(),
    createIntrospector: introspect,
    createQueryCompiler: () => new SqliteQueryCompiler(),
  }
}
