import { setImmediate as nextTick } from 'node:timers/promises'
import { build, fixedQuery, type Param } from '../database/fixed-query.ts'
import { matchingIds } from '../sessions/ids.ts'
import { readSummary } from '../sessions/list.ts'
import type { Filters } from './filters.ts'
import { findMessages, type MessageQuery, type SearchContext } from './find.ts'
import { fold } from './fold.ts'
import { collect, inPages, type Pages } from './pages.ts'
import type { QueryTree } from './query.ts'
import type { SearchHit, SessionHit } from './search-types.ts'

/** Titles looked at before the event loop gets its turn. */
const TITLES = 2_000

/** Titles that are taken, of those that match. */
const MOST_TITLES = 1_000

/** Sessions looked at beyond those asked for. */
const MOST = 100

const titlesBehind = fixedQuery((param: Param<{ title: string; limit: number }>) =>
  build
    .selectFrom('all_sessions')
    .select(['id', 'title'])
    .where('title', '>', param('title'))
    .orderBy('title')
    .limit(param('limit')),
)

/** Sessions that are read in one go. */
const SESSIONS_AT_ONCE = 100

/** A search for sessions, its options checked and complete. */
export interface SessionQuery {
  /** As it was given, for ids. */
  text: string
  /** How the messages of a session are searched. */
  messages: MessageQuery
  limit: number
}

/** One row a session: those whose id begins with the query, whose title has it, whose messages have it. */
export async function* findSessions(
  search: SearchContext,
  { text, messages, limit }: SessionQuery,
  signal: AbortSignal | undefined,
): Pages<SessionHit> {
  const { executor, events } = search
  const { tree, filters } = messages
  const found = new Map<string, Pick<SessionHit, 'found_by' | 'hit'>>()
  const wanted = async (ids: readonly string[]) =>
    executor.read((connection) =>
      ids.filter((id) => {
        const source = readSummary(connection, id, false, events)?.source
        return source !== undefined && isWanted(source, filters)
      }),
    )
  const ids = await executor.read((connection) => matchingIds(connection, text.trim(), MOST))
  for (const id of await wanted(ids)) found.set(id, { found_by: 'id', hit: null })
  for (const id of await wanted(await idsByTitle(search, tree, signal)))
    if (!found.has(id)) found.set(id, { found_by: 'title', hit: null })

  // Every page is of sessions that no page before had.
  for (const seen: string[] = []; ; ) {
    const others = { ...messages, filters: { ...filters, excludeSessions: seen } }
    const page: SearchHit[] = await collect(findMessages(search, others, signal))
    for (const hit of page) {
      if (seen.includes(hit.session_id)) continue
      seen.push(hit.session_id)
      const known = found.get(hit.session_id)
      if (known) known.hit = hit
      else found.set(hit.session_id, { found_by: 'content', hit })
    }
    const missing = [...found.values()].slice(0, limit).some(({ hit }) => hit === null)
    if (page.length === 0 || (found.size >= limit && !missing) || seen.length >= limit + MOST) break
  }
  return yield* inPages([...found].slice(0, limit), SESSIONS_AT_ONCE, (page) =>
    executor.read((connection) =>
      page.flatMap(([id, how]) => {
        const summary = readSummary(connection, id, true, events)
        return summary ? { ...summary, ...how } : []
      }),
    ),
  )
}

function isWanted(source: string, { sources, excludeSources }: Filters): boolean {
  return (sources === undefined || sources.includes(source)) && !excludeSources?.includes(source)
}

async function idsByTitle(
  { executor }: SearchContext,
  tree: QueryTree,
  signal: AbortSignal | undefined,
): Promise<string[]> {
  const ids: string[] = []
  for (let title = ''; ids.length < MOST_TITLES; ) {
    signal?.throwIfAborted()
    const page = await executor.read((connection) => connection.all(titlesBehind, { title, limit: TITLES }))
    for (const session of page) if (holds(tree, fold(session.title ?? ''))) ids.push(session.id)
    const last = page.at(-1)?.title
    if (page.length < TITLES || typeof last !== 'string') break
    title = last
    await nextTick()
  }
  return ids
}

function holds(tree: QueryTree, title: string): boolean {
  if (tree.kind === 'term') return title.includes(fold(tree.text))
  if (tree.kind === 'not') return holds(tree.keep, title) && !holds(tree.drop, title)
  return tree.kind === 'and'
    ? tree.items.every((item) => holds(item, title))
    : tree.items.some((item) => holds(item, title))
}
