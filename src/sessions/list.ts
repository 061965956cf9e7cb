import { checkCount, checkId, checkObject, checkText, checkTextList, checkTime } from '../arguments.ts'
import { text } from '../database/cells.ts'
import type { Connection } from '../database/connection.ts'
import { hasVisibleContent, headOfContent } from '../database/filters.ts'
import { build, fixedQuery, type Param } from '../database/fixed-query.ts'
import { allPages, listedPages, readSources, type SessionOrder } from '../database/session-pages.ts'
import type { EventHandler } from '../events.ts'
import { visibleStored } from '../messages/structured-content.ts'
import { FIELD_COLUMNS, toFields } from './session-row.ts'
import type { SessionSummary } from './session-types.ts'

export interface ListSessionsOptions {
  /** Only sessions of this source. */
  source?: string
  /** Only sessions of these sources; `[]` matches nothing. */
  sources?: readonly string[]
  /** No sessions of these sources; `[]` excludes nothing. */
  excludeSources?: readonly string[]
  /** `roots` leaves out sessions that have a parent. Default `all`. */
  show?: 'roots' | 'all'
  /** The latest started first, or the latest active. Default `started`. */
  orderBy?: SessionOrder
  /** At most so many sessions. Default 20. */
  limit?: number
  /** Only sessions behind this one: the last item of the page before, in the same order. */
  after?: SessionSummary
  /** Skip so many sessions. Default 0. Costs as much as listing them: prefer `after`. */
  offset?: number
  /** Whether to read previews; without them they are ''. Default true. */
  preview?: boolean
  /** Also sessions that a later Hermes version has archived or hidden. Default false. */
  includeArchived?: boolean
}

const PREVIEW_LENGTH = 60

// Enough for the preview whatever white space is in it.
const PREVIEW_SOURCE_LENGTH = 2_000

export const previewOf = fixedQuery((param: Param<{ id: string; after: number }>) =>
  build
    .selectFrom('live_messages as messages')
    .select(['id', headOfContent(PREVIEW_SOURCE_LENGTH).as('content')])
    .where('session_id', '=', param('id'))
    .where('id', '>', param('after'))
    .where('role', '=', 'user')
    .where(hasVisibleContent())
    .orderBy('id')
    .limit(1),
)

export const summaryOf = fixedQuery((param: Param<{ id: string }>) =>
  build
    .selectFrom('all_sessions as sessions')
    .innerJoin('hs_session_activity as activity', 'activity.session_id', 'sessions.id')
    .select(FIELD_COLUMNS)
    .select('activity.last_active')
    .where('sessions.id', '=', param('id')),
)

export type CheckedListOptions = ReturnType<typeof checkListOptions>

/** @throws TypeError naming the option and what it must be. */
export function checkListOptions(options: ListSessionsOptions) {
  const { source, show = 'all', orderBy = 'started', after, preview = true } = options
  if (show !== 'roots' && show !== 'all') throw new TypeError("show must be 'roots' or 'all'.")
  if (orderBy !== 'started' && orderBy !== 'lastActive')
    throw new TypeError("orderBy must be 'started' or 'lastActive'.")
  if (source !== undefined && options.sources !== undefined)
    throw new TypeError('source and sources exclude each other: put the source into sources.')
  return {
    sources: source === undefined ? checkTextList(options.sources, 'sources') : [checkText(source, 'source')],
    excludeSources: checkTextList(options.excludeSources, 'excludeSources') ?? [],
    show,
    orderBy,
    after: after === undefined ? undefined : checkCursor(after, orderBy),
    limit: checkCount(options.limit ?? 20, 'limit'),
    offset: checkCount(options.offset ?? 0, 'offset'),
    preview,
    includeArchived: options.includeArchived ?? false,
  }
}

function checkCursor(after: SessionSummary, orderBy: SessionOrder): { time: number; id: string } {
  const fields = checkObject(after, 'after')
  const column = orderBy === 'started' ? 'started_at' : 'last_active'
  return { time: checkTime(fields[column], `after.${column}`), id: checkId(fields.id, 'after.id') }
}

/** A page of sessions, found by an index first and enriched afterwards. */
export function listSessions(
  connection: Connection,
  {
    sources,
    excludeSources,
    show,
    orderBy,
    after,
    limit,
    offset,
    preview,
    includeArchived,
  }: CheckedListOptions,
  events: EventHandler,
): SessionSummary[] {
  const excluded = new Set(excludeSources)
  const ranges = [...new Set(sources ?? readSources(connection))]
    .filter((source) => !excluded.has(source))
    .flatMap((source) =>
      show === 'roots'
        ? [[source, 1]]
        : [
            [source, 1],
            [source, 0],
          ],
    )
  const ids = connection.all((includeArchived ? allPages : listedPages)[orderBy], {
    ranges: JSON.stringify(ranges),
    time: after?.time ?? Number.POSITIVE_INFINITY,
    id: after?.id ?? '',
    within: Math.min(limit + offset, Number.MAX_SAFE_INTEGER),
    limit,
    offset,
  })
  return ids.flatMap(({ id }) => readSummary(connection, id, preview, events) ?? [])
}

/** A session as lists show it; undefined where there is none. */
export function readSummary(
  connection: Connection,
  id: string,
  preview: boolean,
  events: EventHandler,
): SessionSummary | undefined {
  const row = connection.get(summaryOf, { id })
  if (!row) return undefined
  return {
    ...toFields(connection, row, events),
    preview: preview ? readPreview(connection, id) : '',
    last_active: row.last_active,
  }
}

function readPreview(connection: Connection, id: string): string {
  for (let after = 0; ; ) {
    const message = connection.get(previewOf, { id, after })
    if (!message) return ''
    // Structured content in Hermes's form shows only here whether it has words.
    const preview = shortened(visibleStored(text(message.content) ?? ''))
    if (preview !== '') return preview
    after = message.id
  }
}

function shortened(content: string): string {
  const characters = Array.from(content.replaceAll(/[\s\x85\u200b]+/g, ' ').trim())
  return characters.length > PREVIEW_LENGTH
    ? `${characters.slice(0, PREVIEW_LENGTH).join('')}...`
    : characters.join('')
}
