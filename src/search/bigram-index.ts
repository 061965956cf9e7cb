import { sql } from 'kysely'
import type { Connection } from '../database/connection.ts'
import { integer } from '../database/filters.ts'
import { build, fixedQuery, fixedRows, type Param } from '../database/fixed-query.ts'
import { ROWS_AT_ONCE } from '../database/limits.ts'
import { bigramsOf } from './bigrams.ts'
import { type SearchedRow, searched } from './projection.ts'

/** The index of scripts without spaces: `hs_bigrams`, and how far it has come. See migration 011. */

const insertBigrams = fixedRows(
  (param: Param<{ id: number; text: string }>) => sql`(${integer(param('id'))}, ${param('text')})`,
  (rows) => ({
    compile: () => sql`insert into hs_bigrams (rowid, text) values ${sql.join(rows)}`.compile(build),
  }),
)

const deleteBigrams = fixedQuery((param: Param<{ id: number }>) => ({
  compile: () => sql`delete from hs_bigrams where rowid = ${integer(param('id'))}`.compile(build),
}))

const watermark = fixedQuery((_: Param<object>) => build.selectFrom('hs_bigrams_state').select('watermark'))

const setWatermark = fixedQuery((param: Param<{ watermark: number }>) =>
  build.updateTable('hs_bigrams_state').set({ watermark: param('watermark') }),
)

const advance = fixedQuery((param: Param<{ first: number; last: number }>) =>
  build
    .updateTable('hs_bigrams_state')
    .set({ watermark: param('last') })
    .where('watermark', '=', sql<number>`${param('first')} - 1`),
)

const pending = fixedQuery((param: Param<{ limit: number }>) =>
  build.selectFrom('hs_bigrams_pending').select('message_id').orderBy('message_id').limit(param('limit')),
)

const settle = fixedQuery((param: Param<{ id: number }>) =>
  build.deleteFrom('hs_bigrams_pending').where('message_id', '=', param('id')),
)

const columns = ['id', 'role', 'content', 'tool_name', 'tool_calls'] as const

const byId = fixedQuery((param: Param<{ id: number }>) =>
  build.selectFrom('messages').select(columns).where('id', '=', param('id')),
)

const above = fixedQuery((param: Param<{ id: number; limit: number }>) =>
  build
    .selectFrom('messages')
    .select(columns)
    .where('id', '>', param('id'))
    .orderBy('id')
    .limit(param('limit')),
)

/** Indexes messages that have just been inserted by their texts, unless others before them still wait for that. */
export function indexAppended(
  connection: Connection,
  ids: readonly number[],
  texts: () => readonly string[],
): void {
  const [first, last] = [ids[0], ids.at(-1)]
  if (first === undefined || last === undefined) return
  if (connection.run(advance, { first, last }).changes === 0) return
  add(
    connection,
    texts().map((text, index) => ({ id: ids[index] as number, text })),
  )
}

/**
 * Indexes up to `limit` messages that others have written or changed. Only inside a transaction.
 *
 * @returns whether that was all.
 */
export function catchUp(connection: Connection, limit: number): boolean {
  const changed = connection.all(pending, { limit })
  for (const { message_id } of changed) {
    const id = message_id as number
    connection.run(deleteBigrams, { id })
    const row = connection.get(byId, { id })
    if (row) add(connection, [{ id, text: bigramText(row) }])
    connection.run(settle, { id })
  }
  const left = limit - changed.length
  if (left === 0) return false
  const rows = connection.all(above, { id: readWatermark(connection), limit: left })
  for (let from = 0; from < rows.length; from += ROWS_AT_ONCE)
    add(
      connection,
      rows.slice(from, from + ROWS_AT_ONCE).map((row) => ({ id: row.id, text: bigramText(row) })),
    )
  const last = rows.at(-1)
  if (last) connection.run(setWatermark, { watermark: last.id })
  return rows.length < left
}

/** Whether messages wait to be indexed. */
export function isBehind(connection: Connection): boolean {
  return (
    connection.all(pending, { limit: 1 }).length > 0 ||
    connection.all(above, { id: readWatermark(connection), limit: 1 }).length > 0
  )
}

/** The ids of messages below `before` that wait to be indexed, newest first. */
export const unindexed = fixedQuery((param: Param<{ before: number; limit: number }>) => ({
  compile: () =>
    sql<{ id: number }>`
      select id from messages where id > (select watermark from hs_bigrams_state) and id < ${param('before')}
      union select message_id from hs_bigrams_pending where message_id < ${param('before')}
      order by 1 desc limit ${integer(param('limit'))}`.compile(build),
}))

function readWatermark(connection: Connection): number {
  return connection.get(watermark, {})?.watermark ?? 0
}

/** What the index holds of a message; '' for nothing. */
export function bigramText(row: SearchedRow): string {
  const { content, tool_name, tool_calls } = searched(row)
  return bigramsOf([content, tool_name, tool_calls])
}

/** In one statement: FTS5 writes out its index at each. */
function add(connection: Connection, texts: readonly { id: number; text: string }[]): void {
  const filled = texts.filter(({ text }) => text !== '')
  if (filled.length > 0) connection.run(insertBigrams(filled.length), filled)
}
