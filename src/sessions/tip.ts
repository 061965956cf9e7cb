import { sql } from 'kysely'
import type { Connection } from '../database/connection.ts'
import { build, fixedQuery, type Param } from '../database/fixed-query.ts'

/** What later Hermes versions write into model_config of a child that is no continuation. */
export const OTHER_KINDS = ['_branched_from', '_delegate_from', '_reset_from']

const OTHER_KIND = sql<boolean>`(${sql.join(
  OTHER_KINDS.map(
    (name) =>
      sql`coalesce(child.model_config, '') like ${sql.lit(`%"${name.replaceAll('_', '!_')}"%`)} escape '!'`,
  ),
  sql` or `,
)})`

const chain = fixedQuery((param: Param<{ id: string }>) =>
  build
    // UNION drops what was seen: a circle in somebody's file ends the walk.
    .withRecursive('chain(id)', (db) =>
      db
        .selectFrom('sessions')
        .select('id')
        .where('id', '=', param('id'))
        .union(
          db
            .selectFrom('chain')
            .innerJoin('sessions as ended', 'ended.id', 'chain.id')
            .where('ended.end_reason', '=', 'compression')
            .innerJoin('sessions as next', (join) =>
              join.on('next.id', '=', (eb) =>
                eb
                  .selectFrom('sessions as child')
                  .select('child.id')
                  .whereRef('child.parent_session_id', '=', 'chain.id')
                  .where((where) => where.not(OTHER_KIND))
                  .orderBy('child.started_at', 'desc')
                  .orderBy('child.id', 'desc')
                  .limit(1),
              ),
            )
            .select('next.id'),
        ),
    )
    .selectFrom('chain')
    .select('id'),
)

/** A session and its continuations after compression, in order; none where it does not exist. */
export function chainOf(connection: Connection, id: string): string[] {
  return connection.all(chain, { id }).map((session) => session.id)
}

/** Where the conversation of a session goes on: the last of its continuations after compression, else itself. */
export function tipOf(connection: Connection, id: string): string | null {
  return chainOf(connection, id).at(-1) ?? null
}
