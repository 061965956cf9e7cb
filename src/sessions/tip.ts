import { sql } from 'kysely'
import type { Connection } from '../database/connection.ts'
import { build, fixedQuery, type Param } from '../database/fixed-query.ts'

/** Ends the walk where somebody's file holds a circle. */
const MAX_DEPTH = 100_000

const tip = fixedQuery((param: Param<{ id: string }>) =>
  build
    .withRecursive('chain(id, depth)', (db) =>
      db
        .selectFrom('sessions')
        .where('id', '=', param('id'))
        .select(['id', sql<number>`0`.as('depth')])
        .unionAll(
          db
            .selectFrom('chain')
            .innerJoin('sessions as parent', 'parent.id', 'chain.id')
            .where('parent.end_reason', '=', 'compression')
            .where('depth', '<', MAX_DEPTH)
            .innerJoin('sessions as child', (join) =>
              join.on('child.id', '=', (eb) =>
                eb
                  .selectFrom('sessions as next')
                  .whereRef('next.parent_session_id', '=', 'chain.id')
                  .select('next.id')
                  .orderBy('next.started_at', 'desc')
                  .orderBy('next.id', 'desc')
                  .limit(1),
              ),
            )
            .select(['child.id', sql<number>`chain.depth + 1`.as('depth')]),
        ),
    )
    .selectFrom('chain')
    .select('id')
    .orderBy('depth', 'desc')
    .limit(1),
)

/** Where the conversation of a session goes on: the last of its continuations after compression, else itself. */
export function tipOf(connection: Connection, id: string): string | null {
  return connection.get(tip, { id })?.id ?? null
}
