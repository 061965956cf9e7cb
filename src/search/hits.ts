import { text } from '../database/cells.ts'
import type { Connection } from '../database/connection.ts'
import { headOfContent } from '../database/filters.ts'
import { build, fixedQuery, type Param } from '../database/fixed-query.ts'
import { visibleStored } from '../messages/structured-content.ts'
import { head } from './characters.ts'
import type { HitRow } from './filters.ts'
import { findMatches, snippetOf, termPattern } from './matches.ts'
import { searched } from './projection.ts'
import type { Term } from './query.ts'
import type { ContextMessage, SearchHit } from './search-types.ts'

const CONTEXT_LENGTH = 200

/** The messages of a session around one. */
export const neighbours = fixedQuery((param: Param<{ session_id: string; id: number; limit: number }>) => {
  const messages = build
    .selectFrom('all_messages as messages')
    .select(['id', 'role', headOfContent(CONTEXT_LENGTH).as('content')])
    .where('inactive', 'is not', 'undone')
    .where('session_id', '=', param('session_id'))
    .limit(param('limit'))
  const before = messages.where('id', '<', param('id')).orderBy('id', 'desc')
  const after = messages.where('id', '>', param('id')).orderBy('id')
  return build
    .selectFrom(before.as('before'))
    .selectAll()
    .unionAll(build.selectFrom(after.as('after')).selectAll())
})

/** How hits are shown, and how they were found. */
export interface HitOptions extends Pick<SearchHit, 'route' | 'matched' | 'partial'> {
  terms: readonly Term[]
  /** Whether terms stand as words, or anywhere. */
  asWords: boolean
  whole: boolean
  context: number
  marks: readonly [string, string]
}

export function toHits(connection: Connection, rows: readonly HitRow[], options: HitOptions): SearchHit[] {
  const { route, matched, partial, terms, asWords, whole, marks } = options
  const patterns = terms.map((term) => termPattern(term, asWords))
  return rows.map((row) => {
    const texts = searched(row, whole)
    let matches = findMatches(texts, patterns)
    // A word that only FTS5 sees: to it, what Unicode has added since version 6.1 are letters.
    if (matches.length === 0 && asWords)
      matches = findMatches(
        texts,
        terms.map((term) => termPattern(term, false)),
      )
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
  })
}

function contextOf(connection: Connection, hit: HitRow, size: number): ContextMessage[] {
  const { session_id, id } = hit
  const others = size === 0 ? [] : connection.all(neighbours, { session_id, id, limit: size })
  return [hit, ...others]
    .sort((a, b) => a.id - b.id)
    .map((row) => ({
      id: row.id,
      role: row.role,
      content: head(visibleStored(text(row.content) ?? '').replace(LEADING_SPACE, ''), CONTEXT_LENGTH),
    }))
}

/** As {@link headOfContent} passes over it. */
const LEADING_SPACE = /^[\s\x85\u200b]+/
