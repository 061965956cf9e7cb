import {
  type DatabaseIntrospector,
  type Dialect,
  type Driver,
  type Kysely,
  type LimitNode,
  type OffsetNode,
  SqliteAdapter,
  SqliteIntrospector,
  SqliteQueryCompiler,
} from 'kysely'

/**
 * A LIMIT that is a bare parameter takes part in SQLite's planning: its value makes each call prepare the statement
 * again, which takes longer than most of our queries. Behind a cast it is a value like any other.
 */
class StateQueryCompiler extends SqliteQueryCompiler {
  protected override visitLimit(node: LimitNode): void {
    this.append('limit cast(')
    this.visitNode(node.limit)
    this.append(' as integer)')
  }

  protected override visitOffset(node: OffsetNode): void {
    this.append('offset cast(')
    this.visitNode(node.offset)
    this.append(' as integer)')
  }
}

/** Kysely's SQLite dialect over a driver of ours. */
export function stateDialect(
  driver: Driver,
  introspect: (db: Kysely<unknown>) => DatabaseIntrospector = (db) => new SqliteIntrospector(db),
): Dialect {
  return {
    createDriver: () => driver,
    createAdapter: () => new SqliteAdapter(),
    createIntrospector: introspect,
    createQueryCompiler: () => new StateQueryCompiler(),
  }
}
