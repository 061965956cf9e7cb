import { sql } from 'kysely'
import type { Connection } from './connection.ts'
import { build } from './fixed-query.ts'
import { readShape, type Shape } from './inspection.ts'

/**
 * Lets every query run on a file that lacks columns or additions, because it is opened read-only or
 * `additions` is off: temporary views, which live in this connection and not in the file, stand in for what is
 * missing. They shadow the tables, so the queries are the same everywhere.
 *
 * @returns whether the file has the additions.
 */
export function evenOut(connection: Connection, complete: Shape): boolean {
  const shape = readShape(connection)
  for (const table of ['sessions', 'messages']) {
    const missing = [...complete.keys()]
      .filter((key) => key.startsWith(`column ${table}.`) && !shape.has(key))
      .map((key) => sql`null as ${sql.ref(key.slice(`column ${table}.`.length))}`)
    if (missing.length > 0)
      connection.execute(
        sql`create temp view ${sql.table(table)} as select *, ${sql.join(missing)} from main.${sql.table(table)}`.compile(
          build,
        ),
      )
  }
  if (!shape.has('column hs_structured_content.message_id'))
    connection.exec(`
      create temp view hs_structured_content as
      select null as message_id, null as content where false`)
  if (!shape.has('column hs_session_activity.session_id'))
    // As migration 009 has it, but for messages of the future: when they were written is not known here.
    connection.exec(`
      create temp view hs_session_activity as
      select id as session_id, source, parent_session_id is null as is_root,
        coalesce((
          select max(timestamp) from main.messages
          where session_id = sessions.id and timestamp <= (julianday('now') - 2440587.5) * 86400.0 + 60.0
        ), started_at) as last_active
      from main.sessions`)
  return shape.has('column hs_structured_content.message_id')
}
