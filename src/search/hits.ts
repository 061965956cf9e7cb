import { text } from '../database/cells.ts'
import type { Connection } from '../database/connection.ts'
import { headOfContent } from '../database/filters.ts'
import { build, fixedQuery, type Param } from '../database/fixed-query.ts'
import { visibleStored } from '../messages/structured-content.ts'
import { findMatches, snippetOf } from './matches.ts'
import type { HitRow } from './newest.ts'
import { searched } from './projection.ts'
import type { Term } from './query.ts'
import type { ContextMessage, SearchHit } from './search-types.ts'

const CONTEXT_LENGTH = 200

const around = fixedQuery(
  (param: Param<{ session_id: string; id: number; before: number; after: number }>) => {
    const messages = build
      .selectFrom('all_messages as messages')
      .select(['id', 'role', headOfContent(CONTEXT_LENGTH).as('content')])
      .where('inactive', 'is not', 'undone')
      .where('session_id', '=', param('session_id'))
    const before = messages.where('id', '<=', param('id')).orderBy('id', 'desc').limit(param('before'))
    const after = messages.where('id', '>', param('id')).orderBy('id').limit(param('after'))
    return build
      .selectFrom(before.as('before'))
      .selectAll()
      .unionAll(build.selectFrom(after.as('after')).selectAll())
  },
)

/** How hits are shown, and how they were found. */
export interface HitOptions extends Pick<SearchHit, 'route' | 'matched' | 'partial'> {
  terms: readonly Term[]
  /** Whether terms stand as words, or anywhere. */
  asWords: boolean
  whole: boolean
  context: number
  marks: readonly [string, string]
}

export function toHit(connection: Connection, row: HitRow, options: HitOptions): SearchHit {
  const { route, matched, partial, terms, whole, marks } = options
  const texts = searched(row, whole)
  let matches = findMatches(texts, terms, options.asWords)
  // A word that only FTS5 sees: to it, what Unicode has added since version 6.1 are letters.
  if (matches.length === 0) matches = findMatches(texts, terms, false)
  return {
    id: row.id,
    session_id: row.session_id,
    role: text(row.role) ?? '',
    timestamp: row.timestamp,
    tool_name: text(row.tool_name),
    snippet: snippetOf(texts, matches, marks),
    matches,
    context: contextOf(connection, row, options.context),
    source: row.source,
    model: row.model,
    session_started: row.session_started,
    route,
    matched,
    partial,
  }
}

function contextOf(connection: Connection, { session_id, id }: HitRow, size: number): ContextMessage[] {
  const rows = connection.all(around, { session_id, id, before: size + 1, after: size })
  return rows
    .sort((a, b) => a.id - b.id)
    .map((row) => ({
      id: row.id,
      role: row.role,
      content: Array.from(visibleStored(text(row.content) ?? ''))
        .slice(0, CONTEXT_LENGTH)
        .join(''),
    }))
}
