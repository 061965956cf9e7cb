import { sql } from 'kysely'
import type { Connection } from '../database/connection.ts'
import { integer } from '../database/filters.ts'
import { select } from '../database/shape.ts'
import { type Filters, type HitRow, isFiltered, readRows, searchedMessages } from './filters.ts'

/** Up to so many matches every one is ranked: bm25 takes about a microsecond each. */
const RANKED = 10_000

export interface RankedOptions {
  filters: Filters
  /** The id of the last hit of the page before. */
  after: number | undefined
  offset: number
  limit: number
  /** Rank every match, however many. */
  exact: boolean
}

export interface RankedHits {
  rows: HitRow[]
  /** Whether only the newest matches were ranked. */
  partial: boolean
}

/** The messages that FTS5 text matches, best first (bm25), then newest. */
export function findRanked(connection: Connection, match: string, options: RankedOptions): RankedHits {
  const { filters, after, offset, limit, exact } = options
  const partial = !exact && isCommon(connection, match, filters)
  const ranked = isFiltered(filters)
    ? searchedMessages(filters)
        .innerJoin('messages_fts', 'messages_fts.rowid', 'messages.id')
        .where('messages_fts.messages_fts', 'match', match)
        .select(['messages.id', 'messages_fts.rank as score'])
        .$if(partial, (query) => query.orderBy('messages_fts.rowid', 'desc').limit(RANKED))
    : sql`
        select rowid as id, rank as score from messages_fts where messages_fts match ${match}
        ${partial ? sql`order by rowid desc limit ${sql.lit(RANKED)}` : sql``}`
  const last = after === undefined ? undefined : scoreOf(connection, match, after)
  const behind = last === undefined ? sql`` : sql`where (score, -id) > (${last}, -${after})`
  const page = select<{ id: number }>(
    connection,
    sql`select id from (${ranked}) ${behind} order by score, id desc limit ${integer(limit)} offset ${integer(offset)}`,
  )
  return {
    rows: readInOrder(
      connection,
      page.map(({ id }) => id),
      filters,
    ),
    partial,
  }
}

/** Whether there are more matches than are ranked. */
function isCommon(connection: Connection, match: string, filters: Filters): boolean {
  const [row] = select(
    connection,
    sql`select 1 from messages_fts where messages_fts match ${match} limit 1 offset ${sql.lit(RANKED)}`,
  )
  if (row === undefined || !isFiltered(filters)) return row !== undefined
  const query = searchedMessages(filters)
    .innerJoin('messages_fts', 'messages_fts.rowid', 'messages.id')
    .where('messages_fts.messages_fts', 'match', match)
    .select('messages.id')
    .limit(1)
    .offset(RANKED)
  return connection.execute(query.compile()).rows.length > 0
}

function scoreOf(connection: Connection, match: string, id: number): number | undefined {
  const [row] = select<{ score: number }>(
    connection,
    sql`select rank as score from messages_fts where messages_fts match ${match} and rowid = ${integer(id)}`,
  )
  return row?.score
}

function readInOrder(connection: Connection, ids: number[], filters: Filters): HitRow[] {
  const rows = new Map(readRows(connection, ids, filters).map((row) => [row.id, row]))
  return ids.flatMap((id) => rows.get(id) ?? [])
}
