import { setImmediate as nextTick } from 'node:timers/promises'
import { type RawBuilder, type SqlBool, sql } from 'kysely'
import type { Connection } from '../database/connection.ts'
import type { Executor } from '../database/executor.ts'
import { integer } from '../database/filters.ts'
import { build, fixedQuery, type Param } from '../database/fixed-query.ts'
import { select } from '../database/shape.ts'
import { runsOf, unsegmentedRuns } from './bigrams.ts'
import { type Candidates, candidatesBelow, type Indexes, type Sources, sourcesOf } from './candidates.ts'
import { containsCjk } from './characters.ts'
import { type Filters, type HitRow, readRows } from './filters.ts'
import { FoldedText, fold } from './fold.ts'
import { searched } from './projection.ts'
import { type QueryTree, renderFts5, type Term } from './query.ts'

/** Messages looked at in one go: the fewest, and the most when few of them match. */
const FEWEST = 8
const MOST = 512

/** Ids that one statement walks over where no index can tell. */
const SPAN = 5_000

/** Milliseconds after which the event loop gets its turn. */
const BUDGET_MS = 8

const MAX_ID = Number.MAX_SAFE_INTEGER

export interface NewestOptions {
  filters: Filters
  indexes: Indexes
  /** How a word is compared: as the word index has it, or wherever it stands. */
  words: 'indexed' | 'substring'
  /** Look at whole messages. */
  whole: boolean
  /** Only ids below. */
  before: number | undefined
  offset: number
  limit: number
  signal: AbortSignal | undefined
}

/**
 * The messages that match a tree, newest first: walks the candidates of the indexes, or all messages where no
 * index can tell, and looks at each of them. Bounded by the limit; the event loop gets its turn in between.
 */
export async function findNewest(
  executor: Pick<Executor, 'read'>,
  tree: QueryTree,
  options: NewestOptions,
): Promise<HitRow[]> {
  const { offset, limit, signal } = options
  const hits: HitRow[] = []
  if (limit === 0) return hits
  let sources: Sources | undefined
  let window = Math.min(Math.max(offset + limit, FEWEST), MOST)
  for (let before: number | undefined = options.before ?? MAX_ID; before !== undefined; ) {
    signal?.throwIfAborted()
    const from: number = before
    before = await executor.read((connection) => {
      sources ??= options.words === 'indexed' ? sourcesOf(connection, tree, options.indexes) : 'all'
      const candidates =
        sources === 'all'
          ? idsBelow(connection, tree, from, window, options)
          : candidatesBelow(connection, sources, from, window)
      return lookAt(connection, tree, candidates, options, hits)
    })
    if (before !== undefined) await nextTick()
    window = Math.min(window * 2, MOST)
  }
  return hits.slice(offset, offset + limit)
}

/** Looks at messages and adds those that match. Returns the id to go on below; undefined when that is all. */
function lookAt(
  connection: Connection,
  tree: QueryTree,
  { ids, next }: Candidates,
  options: NewestOptions,
  hits: HitRow[],
): number | undefined {
  const started = performance.now()
  for (const row of readRows(connection, ids, options.filters)) {
    if (matches(connection, tree, row, options)) hits.push(row)
    if (hits.length >= options.offset + options.limit) return undefined
    if (performance.now() - started > BUDGET_MS) return row.id
  }
  return next
}

/** The next messages that may match, without an index: SQLite passes over what cannot, in one span of ids. */
function idsBelow(
  connection: Connection,
  tree: QueryTree,
  before: number,
  limit: number,
  options: NewestOptions,
): Candidates {
  const { sessionId } = options.filters
  const session = sessionId === undefined ? sql`true` : sql`session_id = ${sessionId}`
  const top = select<{ id: number | null }>(
    connection,
    sql`select max(id) as id from messages where id < ${before} and ${session}`,
  )[0]?.id
  if (top == null) return { ids: [], next: undefined }
  const ids = select<{ id: number }>(
    connection,
    sql`
      select id from messages where id <= ${top} and id > ${top - SPAN} and ${session} and ${mayHold(tree, options)}
      order by id desc limit ${integer(limit)}`,
  ).map(({ id }) => id)
  return { ids, next: ids.length === limit ? (ids.at(-1) as number) : top - SPAN + 1 }
}

/**
 * A condition that every message meets in which a tree can be found. What is beyond ASCII has other forms (full
 * width, other case) that SQLite does not know, and its LIKE stops at a NUL.
 */
function mayHold(tree: QueryTree, options: NewestOptions): RawBuilder<SqlBool> {
  if (tree.kind === 'not') return mayHold(tree.keep, options)
  if (tree.kind !== 'term') {
    const items = tree.items.map((item) => mayHold(item, options))
    return sql`(${sql.join(items, tree.kind === 'and' ? sql` and ` : sql` or `)})`
  }
  const foreign = (column: string) =>
    sql`${sql.ref(column)} glob ${BEYOND_ASCII} or instr(${sql.ref(column)}, char(0)) or typeof(${sql.ref(column)}) = 'blob'`
  const folded = fold(tree.text)
  const columns = ['content', 'tool_calls', 'tool_name']
  const plain = /^\p{ASCII}*$/u.test(folded)
    ? columns.map((column) => sql`${sql.ref(column)} like ${likePattern(folded)} escape '!'`)
    : []
  // To the word index `"docker 🚀"` is `docker`.
  const asWord =
    options.words === 'indexed' && options.indexes.words && tree.indexed
      ? [
          sql`exists (
            select 1 from messages_fts where messages_fts match ${renderFts5(tree)} and rowid = messages.id)`,
        ]
      : []
  const escaped = sql`instr(tool_calls, '\\u')`
  return sql`(${sql.join([...plain, ...columns.map(foreign), escaped, ...asWord], sql` or `)})`
}

const BEYOND_ASCII = '*[^\x01-\x7f]*'

/** White space may be of another kind, and longer; in tool calls quotes are white space, and backslashes are four. */
function likePattern(folded: string): string {
  return `%${folded.replaceAll(/[!%_]/g, '!$&').replaceAll(/ |\\+/g, '%')}%`
}

/** Whether a message matches a tree: the index decides about words, the text about everything else. */
function matches(connection: Connection, tree: QueryTree, row: HitRow, options: NewestOptions): boolean {
  const texts = Object.values(searched(row, options.whole)).map((field) => new FoldedText(field))
  const holds = (node: QueryTree): boolean => {
    if (node.kind === 'and') return node.items.every(holds)
    if (node.kind === 'or') return node.items.some(holds)
    if (node.kind === 'not') return holds(node.keep) && !holds(node.drop)
    if (options.words === 'substring' || !options.indexes.words || !node.indexed)
      return texts.some((field) => field.includes(node.text))
    return isIndexed(connection, row.id, node) || isGlued(texts, node)
  }
  return holds(tree)
}

function isIndexed(connection: Connection, id: number, term: Term): boolean {
  return connection.get(indexedWord, { match: renderFts5(term), id }) !== undefined
}

const indexedWord = fixedQuery((param: Param<{ match: string; id: number }>) => ({
  compile: () =>
    sql`select 1 from messages_fts where messages_fts match ${param('match')} and rowid = ${integer(param('id'))}`.compile(
      build,
    ),
}))

/** Whether a word stands inside a run of a script without spaces: `youer` in `修改youer服务端`. */
function isGlued(texts: readonly FoldedText[], term: Term): boolean {
  const [run, ...others] = runsOf(term.text)
  if (run === undefined || others.length > 0 || containsCjk(run)) return false
  return texts.some(({ folded }) => unsegmentedRuns(folded).some((glued) => glued.includes(run)))
}
