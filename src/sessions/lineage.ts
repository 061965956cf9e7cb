import { sql } from 'kysely'
import { checkId } from '../arguments.ts'
import type { Connection } from '../database/connection.ts'
import { build, fixedQuery, type Param } from '../database/fixed-query.ts'
import type { RepositoryContext } from '../database/repository.ts'
import { tipOf } from './tip.ts'

/** A session in the line of another. */
export interface Relative {
  id: string
  parent_session_id: string | null
  /** 1 for a parent or a child, 2 for a grandparent or a grandchild, … */
  depth: number
}

// UNION drops what was seen, so a circle in somebody's file ends the walk. A depth column would make every row
// new again; the depth follows from the links instead.
const upwards = fixedQuery((param: Param<{ id: string }>) =>
  build
    .withRecursive('line(id, parent_session_id)', (db) =>
      db
        .selectFrom('sessions')
        .select(['id', 'parent_session_id'])
        .where('id', '=', param('id'))
        .union(
          db
            .selectFrom('line')
            .innerJoin('sessions', 'sessions.id', 'line.parent_session_id')
            .select(['sessions.id', 'sessions.parent_session_id']),
        ),
    )
    .selectFrom('line')
    .select(['id', 'parent_session_id']),
)

const downwards = fixedQuery((param: Param<{ id: string }>) =>
  build
    .withRecursive('tree(id, parent_session_id)', (db) =>
      db
        .selectFrom('sessions')
        .select(['id', sql<string | null>`null`.as('parent_session_id')])
        .where('id', '=', param('id'))
        .union(
          db
            .selectFrom('tree')
            .innerJoin('sessions', 'sessions.parent_session_id', 'tree.id')
            .select(['sessions.id', 'sessions.parent_session_id']),
        ),
    )
    .selectFrom('tree')
    .select(['id', 'parent_session_id', sql<number>`0`.as('depth')]),
)

/**
 * Who continues, branches from or was delegated by whom: `store.lineage`, and `tx.lineage` inside a
 * transaction. Circles, which other programs have left in files, are walked once.
 */
export class LineageRepository {
  readonly #context: RepositoryContext

  /** @internal */
  constructor(context: RepositoryContext) {
    this.#context = context
  }

  /** The line above a session, from its parent to the root. */
  async ancestors(id: string): Promise<Relative[]> {
    const line = await this.#read(id, (connection) => connection.all(upwards, { id }))
    return line.slice(1).map((link, index) => ({ ...link, depth: index + 1 }))
  }

  /** The tree below a session: children, then grandchildren, and so on. */
  async descendants(id: string): Promise<Relative[]> {
    const tree = await this.#read(id, (connection) => connection.all(downwards, { id }))
    return withDepth(id, tree)
  }

  /** The id at the top of a session's line (its own where it has no parent), or null where it does not exist. */
  async root(id: string): Promise<string | null> {
    const line = await this.#read(id, (connection) => connection.all(upwards, { id }))
    return line.at(-1)?.id ?? null
  }

  /**
   * The id of the session in which a conversation goes on: follows the continuations of sessions that ended by
   * `compression`; the session itself where there are none, null where it does not exist.
   */
  async tip(id: string): Promise<string | null> {
    return this.#read(id, (connection) => tipOf(connection, id))
  }

  async #read<T>(id: string, body: (connection: Connection) => T): Promise<T> {
    checkId(id, 'id')
    return this.#context.executor.read(body)
  }
}

/** Fills in the depths. SQLite walks level by level: a parent always comes before its children. */
function withDepth(id: string, tree: Relative[]): Relative[] {
  const depths = new Map([[id, 0]])
  return tree.filter((relative) => {
    if (depths.has(relative.id)) return false
    relative.depth = (depths.get(relative.parent_session_id ?? '') ?? 0) + 1
    depths.set(relative.id, relative.depth)
    return true
  })
}
