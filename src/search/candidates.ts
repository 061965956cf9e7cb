import { sql } from 'kysely'
import type { Connection } from '../database/connection.ts'
import { integer } from '../database/filters.ts'
import { build, fixedQuery, type Param } from '../database/fixed-query.ts'
import { select } from '../database/shape.ts'
import { unindexed } from './bigram-index.ts'
import { bigramPhrase, runsOf } from './bigrams.ts'
import { containsCjk } from './characters.ts'
import { type QueryTree, renderFts5, type Term } from './query.ts'

/** Which indexes a file has that can be relied on. */
export interface Indexes {
  words: boolean
  bigrams: boolean
}

/** A query of an index. What it finds may contain a term; what it does not find does not. */
interface Source {
  index: 'messages_fts' | 'hs_bigrams'
  match: string
}

/** Where the messages that can match a tree are found: by any of these, or only by looking at all. */
export type Sources = Source[] | 'all'

/** The most matches that are counted to find the rarest of several terms. */
const COUNTED = 1_000

/**
 * Where to look for a tree. Of terms that must all be there one is enough: those of one index are asked together,
 * else the rarer is taken. What NOT takes away narrows nothing.
 */
export function sourcesOf(connection: Connection, tree: QueryTree, indexes: Indexes): Sources {
  if (tree.kind === 'term') return sourcesOfTerm(tree, indexes)
  if (tree.kind === 'not') return sourcesOf(connection, tree.keep, indexes)
  const parts = tree.items.map((item) => sourcesOf(connection, item, indexes))
  if (tree.kind === 'or')
    return parts.includes('all') ? 'all' : parts.flatMap((part) => (part === 'all' ? [] : part))

  const single = parts.filter(
    (part) => part !== 'all' && part.length === 1 && part[0]?.index === 'hs_bigrams',
  )
  const together: Sources[] =
    single.length > 1
      ? [
          [
            {
              index: 'hs_bigrams',
              match: single.map((part) => `(${(part[0] as Source).match})`).join(' AND '),
            },
          ],
        ]
      : single
  const choices = [...together, ...parts.filter((part) => !single.includes(part))]
  if (choices.length === 1) return choices[0] as Sources
  return choices.reduce((best, part) => (count(connection, part) < count(connection, best) ? part : best))
}

function sourcesOfTerm(term: Term, { words, bigrams }: Indexes): Sources {
  const runs = runsOf(term.text)
  if (containsCjk(term.text)) {
    const unsegmented = runs.filter(containsCjk)
    return bigrams && unsegmented.length > 0
      ? [{ index: 'hs_bigrams', match: unsegmented.map(bigramPhrase).join(' AND ') }]
      : 'all'
  }
  if (!term.indexed || !words) return 'all'
  const asWords: Source = { index: 'messages_fts', match: renderFts5(term) }
  // `youer` in `修改youer服务端`.
  const [run] = runs
  if (!bigrams) return 'all'
  return runs.length === 1 && run ? [asWords, { index: 'hs_bigrams', match: bigramPhrase(run) }] : [asWords]
}

function count(connection: Connection, sources: Sources): number {
  if (sources === 'all') return Number.POSITIVE_INFINITY
  return sources.reduce((sum, { index, match }) => {
    const table = sql.table(index)
    const [row] = select<{ found: number }>(
      connection,
      sql`select count(*) as found from (select 1 from ${table} where ${table} match ${match} limit ${sql.lit(COUNTED)})`,
    )
    return sum + (row?.found ?? 0)
  }, 0)
}

/** Ids of messages to look at, newest first, and below which id to go on; undefined where nothing is left. */
export interface Candidates {
  ids: number[]
  next: number | undefined
}

const newestIn = (index: Source['index']) =>
  fixedQuery((param: Param<{ match: string; before: number; limit: number }>) => ({
    compile: () =>
      sql<{ id: number }>`
        select rowid as id from ${sql.table(index)}
        where ${sql.table(index)} match ${param('match')} and rowid < ${integer(param('before'))}
        order by rowid desc limit ${integer(param('limit'))}`.compile(build),
  }))

const newestOf = { messages_fts: newestIn('messages_fts'), hs_bigrams: newestIn('hs_bigrams') }

/** The newest candidates below an id, up to `limit` of each source. */
export function candidatesBelow(
  connection: Connection,
  sources: Source[],
  before: number,
  limit: number,
): Candidates {
  const found = sources.map(({ index, match }) =>
    connection.all(newestOf[index], { match, before, limit }).map(({ id }) => id),
  )
  if (sources.some(({ index }) => index === 'hs_bigrams'))
    found.push(connection.all(unindexed, { before, limit }).map(({ id }) => id))
  // Below the last id of a source that may have more, the others' are not complete.
  const full = found.filter((ids) => ids.length === limit).map((ids) => ids.at(-1) as number)
  const floor = full.length > 0 ? Math.max(...full) : undefined
  const ids = [...new Set(found.flat())]
    .filter((id) => floor === undefined || id >= floor)
    .sort((a, b) => b - a)
  return { ids, next: floor }
}
