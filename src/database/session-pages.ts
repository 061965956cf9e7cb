import { type RawBuilder, sql } from 'kysely'
import type { Connection } from './connection.ts'
import { integer } from './filters.ts'
import { build, type FixedQuery, fixedQuery, type Param } from './fixed-query.ts'
import type { ReadDatabase } from './schema.ts'

/** How a list of sessions is ordered, latest first, and what its cursor compares. */
export type SessionOrder = 'started' | 'lastActive'

export interface PageArgs {
  /** Sources, and whether roots or children: JSON pairs `["cli", 1]`, each a range of the index. */
  ranges: string
  /** The time and id of the last session of the page before, or Infinity and ''. */
  time: number
  id: string
  /** How many of each range can be on the page: its end. */
  within: number
  limit: number
  offset: number
}

const sources = fixedQuery((_: Param<object>) =>
  build
    // A skip scan of idx_sessions_source: one seek a source, however many sessions it has.
    .withRecursive('found(source)', (db) =>
      db
        .selectFrom('sessions')
        .select(sql<string | null>`min(source)`.as('source'))
        .unionAll(
          db
            .selectFrom('found')
            .where('found.source', 'is not', null)
            .select(
              sql<string | null>`(select min(source) from sessions where source > found.source)`.as('source'),
            ),
        ),
    )
    .selectFrom('found')
    .select('source')
    .where('source', 'is not', null),
)

/** Every source that sessions have. */
export function readSources(connection: Connection): string[] {
  return connection.all(sources, {}).flatMap(({ source }) => source ?? [])
}

/**
 * The ids of a page. Each range of sources is read from its own end of the index and stops after as many rows
 * as the page can need, so that a rare source, an absent one or a filter that leaves little costs the same.
 */
const pages = (sessions: View, activity: View): Record<SessionOrder, FixedQuery<PageArgs, PageRow>> => ({
  started: pageOf(sessions, sql`id`, sql`started_at`, sql`(parent_session_id is null)`),
  lastActive: pageOf(activity, sql`session_id`, sql`last_active`, sql`is_root`),
})

type View = keyof ReadDatabase
type PageRow = { id: string; time: number }

function pageOf(
  view: View,
  id: RawBuilder<unknown>,
  time: RawBuilder<unknown>,
  isRoot: RawBuilder<unknown>,
): FixedQuery<PageArgs, PageRow> {
  return fixedQuery((param: Param<PageArgs>) => ({
    compile: () =>
      sql<PageRow>`
        select page.${id} as id, page.${time} as time
        from json_each(${param('ranges')}) as range cross join ${sql.table(view)} as page
        where page.${id} in (
          select ${id} from ${sql.table(view)}
          where source = json_extract(range.value, '$[0]') and ${isRoot} = json_extract(range.value, '$[1]')
            and (${time}, ${id}) < (${param('time')}, ${param('id')})
          order by ${time} desc, ${id} desc limit ${integer(param('within'))})
        order by time desc, id desc limit ${integer(param('limit'))} offset ${integer(param('offset'))}`.compile(
        build,
      ),
  }))
}

export const listedPages = pages('listed_sessions', 'listed_activity')
export const allPages = pages('all_sessions', 'hs_session_activity')
