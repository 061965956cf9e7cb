import { type RawBuilder, type SqlBool, sql } from 'kysely'
import { checkId, checkTextList, checkTime } from '../arguments.ts'
import type { Connection } from '../database/connection.ts'
import { isOneOf } from '../database/filters.ts'
import { build, fixedQuery, type Param } from '../database/fixed-query.ts'
import type { SearchOptions } from './search-types.ts'

/** Which messages a search looks at. */
export interface Filters {
  sources: readonly string[] | undefined
  excludeSources: readonly string[] | undefined
  roles: readonly string[] | undefined
  tools: readonly string[] | undefined
  sessionId: string | undefined
  since: number | undefined
  until: number | undefined
  /** No messages of these sessions. */
  excludeSessions: readonly string[] | undefined
}

const NO_FILTERS: Filters = {
  sources: undefined,
  excludeSources: undefined,
  roles: undefined,
  tools: undefined,
  sessionId: undefined,
  since: undefined,
  until: undefined,
  excludeSessions: undefined,
}

/** @throws TypeError naming the option and what it must be. */
export function checkFilters(options: SearchOptions): Filters {
  return {
    sources: checkTextList(options.sources, 'sources'),
    excludeSources: checkTextList(options.excludeSources, 'excludeSources'),
    roles: checkTextList(options.roles, 'roles'),
    tools: checkTextList(options.tools, 'tools'),
    sessionId: options.sessionId === undefined ? undefined : checkId(options.sessionId, 'sessionId'),
    since: options.since === undefined ? undefined : checkTime(options.since, 'since'),
    until: options.until === undefined ? undefined : checkTime(options.until, 'until'),
    excludeSessions: undefined,
  }
}

/** The messages that a search looks at, with what a hit says of them and of their sessions. */
export function searchedMessages(filters: Filters) {
  const { sources, excludeSources, roles, tools, sessionId, since, until, excludeSessions } = filters
  return build
    .selectFrom('all_messages as messages')
    .innerJoin('sessions', 'sessions.id', 'messages.session_id')
    .where('messages.inactive', 'is not', 'undone')
    .$if(sources !== undefined, (query) => query.where(isOneOf('sessions.source', sources ?? [])))
    .$if(excludeSources !== undefined, (query) =>
      query.where((eb) => eb.not(isOneOf('sessions.source', excludeSources ?? []))),
    )
    .$if(roles !== undefined, (query) => query.where(isOneOf('messages.role', roles ?? [])))
    .$if(tools !== undefined, (query) => query.where(isOneOf('messages.tool_name', tools ?? [])))
    .$if(sessionId !== undefined, (query) => query.where('messages.session_id', '=', sessionId ?? ''))
    .$if(excludeSessions !== undefined, (query) =>
      query.where((eb) => eb.not(isOneOf('messages.session_id', excludeSessions ?? []))),
    )
    .$if(since !== undefined, (query) => query.where('messages.timestamp', '>=', since ?? 0))
    .$if(until !== undefined, (query) => query.where('messages.timestamp', '<', until ?? 0))
}

export function isFiltered(filters: Filters): boolean {
  return Object.values(filters).some((filter) => filter !== undefined)
}

/** A message that may be a hit. */
export type HitRow = Awaited<ReturnType<ReturnType<typeof rowsOf>['execute']>>[number]

function rowsOf(filters: Filters, ids: RawBuilder<string>) {
  return searchedMessages(filters)
    .select([
      'messages.id',
      'messages.session_id',
      'messages.role',
      'messages.timestamp',
      'messages.content',
      'messages.tool_name',
      'messages.tool_calls',
      'sessions.source',
      'sessions.model',
      'sessions.started_at as session_started',
    ])
    .where(sql<SqlBool>`messages.id in (select value from json_each(${ids}))`)
    .orderBy('messages.id', 'desc')
}

/** The messages of so many ids, a JSON array, newest first. */
export const unfiltered = fixedQuery((param: Param<{ ids: string }>) => rowsOf(NO_FILTERS, param('ids')))

/** The messages of so many ids that the filters let through, newest first. */
export function readRows(connection: Connection, ids: readonly number[], filters: Filters): HitRow[] {
  if (ids.length === 0) return []
  const json = JSON.stringify(ids)
  return isFiltered(filters)
    ? connection.execute(rowsOf(filters, sql`${json}`).compile()).rows
    : connection.all(unfiltered, { ids: json })
}
