import type { Executor } from '../database/executor.ts'
import type { EventHandler } from '../events.ts'
import type { Indexes } from './candidates.ts'
import { containsCjk } from './characters.ts'
import type { Filters, HitRow } from './filters.ts'
import { toHits } from './hits.ts'
import { findNewest } from './newest.ts'
import { inPages, type Pages } from './pages.ts'
import { anyOf, isIndexed, type QueryTree, renderFts5, wantedTerms } from './query.ts'
import { findRanked } from './ranked.ts'
import type { SearchHit } from './search-types.ts'

/** Hits that are made in one go. */
const HITS_AT_ONCE = 200

/** Whether there is any hit at all. */
const FIRST = { offset: 0, limit: 1, after: undefined }

/** What a search runs on: the store, a transaction, or the connection of another thread. */
export interface SearchContext {
  executor: Pick<Executor, 'read'>
  events: EventHandler
  indexes: Indexes
}

/** A search for messages, its options checked and complete. */
export interface MessageQuery {
  tree: QueryTree
  filters: Filters
  /** Whether the query says how its terms belong together. */
  operators: boolean
  limit: number
  offset: number
  after: Pick<SearchHit, 'id' | 'route' | 'matched'> | undefined
  context: number
  newest: boolean
  exact: boolean
  scan: boolean
  marks: readonly [string, string]
}

type Running = MessageQuery & { signal: AbortSignal | undefined }

/** What a way of searching found. */
interface Found extends Pick<SearchHit, 'route' | 'matched' | 'partial'> {
  rows: HitRow[]
}

/** The messages that a query finds, with what is shown of them. */
export async function* findMessages(
  search: SearchContext,
  query: MessageQuery,
  signal: AbortSignal | undefined,
): Pages<SearchHit> {
  const { tree, context, marks, scan: whole } = query
  const { rows, ...how } = await inTurn(search, { ...query, signal })
  const show = { ...how, terms: wantedTerms(tree), asWords: how.route === 'words', whole, context, marks }
  return yield* inPages(rows, HITS_AT_ONCE, (page) => {
    signal?.throwIfAborted()
    return search.executor.read((connection) => toHits(connection, page, show))
  })
}

/** Whether messages are looked at one by one: queries with a script without spaces, or with a sign that is no word. */
export function looksByRow({ tree, scan, after }: MessageQuery): boolean {
  return !scan && after?.matched !== 'any' && !isIndexed(tree)
}

/** Each way in turn, until one finds something; the page after a hit is found the way that hit was. */
async function inTurn(search: SearchContext, query: Running): Promise<Found> {
  const { tree, after, offset, scan } = query
  if (scan) return bySubstring(search, query)
  if (after?.matched === 'any') return byAnyWord(search, query)
  if (looksByRow(query)) return byRow(search, query)
  if (!search.indexes.words || after?.route === 'substring') return bySubstring(search, query)
  const words = await byWords(search, query, 'all')
  if (words.rows.length > 0 || after) return words
  // A page behind the last hit is no reason to look elsewhere.
  if (offset > 0 && (await byWords(search, { ...query, ...FIRST }, 'all')).rows.length > 0) return words
  const substring = await bySubstring(search, query)
  const severalWords =
    !query.operators && tree.kind === 'and' && tree.items.every(({ kind }) => kind === 'term')
  if (substring.rows.length > 0 || !severalWords) return substring
  if (offset > 0 && (await bySubstring(search, { ...query, ...FIRST })).rows.length > 0) return substring
  return byAnyWord(search, query)
}

async function byWords(search: SearchContext, query: Running, matched: 'all' | 'any'): Promise<Found> {
  const { tree, filters, offset, limit, exact, after, newest } = query
  const how = { route: 'words', matched } as const
  if (newest) return { ...how, rows: await newestOf(search, query, 'indexed'), partial: false }
  const page = { filters, after: after?.id, offset, limit, exact }
  const found = await search.executor.read((connection) => findRanked(connection, renderFts5(tree), page))
  return { ...how, ...found }
}

function byAnyWord(search: SearchContext, query: Running): Promise<Found> {
  return byWords(search, { ...query, tree: anyOf(query.tree) }, 'any')
}

async function byRow(search: SearchContext, query: Running): Promise<Found> {
  const rows = await newestOf(search, query, 'indexed')
  const terms = wantedTerms(query.tree)
  if (
    rows.length === 0 &&
    terms.some(({ indexed }) => indexed) &&
    (await newestOf(search, { ...query, ...FIRST }, 'indexed')).length === 0
  )
    return bySubstring(search, query)
  const unsegmented = search.indexes.bigrams && terms.some(({ text }) => containsCjk(text))
  return { rows, route: unsegmented ? 'unsegmented' : 'substring', matched: 'all', partial: false }
}

async function bySubstring(search: SearchContext, query: Running): Promise<Found> {
  const rows = await newestOf(search, query, 'substring')
  return { rows, route: 'substring', matched: 'all', partial: false }
}

function newestOf(
  { executor, indexes }: SearchContext,
  { tree, filters, after, offset, limit, scan: whole, signal }: Running,
  words: 'indexed' | 'substring',
): Promise<HitRow[]> {
  const walk = { filters, indexes, words, whole, before: after?.id, offset, limit, signal }
  return findNewest(executor, tree, walk)
}
