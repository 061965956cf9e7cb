import { checkCount, checkObject, checkText } from '../arguments.ts'
import type { RepositoryContext } from '../database/repository.ts'
import { StateStoreBusyError, StateStoreError } from '../errors.ts'
import { readMessage, readPage } from '../messages/read.ts'
import { catchUp, isBehind } from './bigram-index.ts'
import { containsCjk } from './characters.ts'
import { checkFilters, type Filters, type HitRow } from './filters.ts'
import { toHits } from './hits.ts'
import { findNewest } from './newest.ts'
import {
  anyOf,
  hasOperators,
  isIndexed,
  parseQuery,
  type QueryTree,
  renderFts5,
  wantedTerms,
} from './query.ts'
import { findRanked } from './ranked.ts'
import type {
  AroundOptions,
  SearchHit,
  SearchOptions,
  SearchSessionsOptions,
  SessionHit,
  Surroundings,
} from './search-types.ts'
import { findSessions } from './sessions.ts'

/** Messages of others that one transaction adds to the index of scripts without spaces. */
const CATCH_UP = 500

/** Whether there is any hit at all. */
const FIRST = { offset: 0, limit: 1, after: undefined }

interface CheckedOptions {
  filters: Filters
  /** Whether the query says how its terms belong together. */
  operators: boolean
  limit: number
  offset: number
  after: SearchHit | undefined
  context: number
  newest: boolean
  exact: boolean
  scan: boolean
  marks: readonly [string, string]
  signal: AbortSignal | undefined
}

/** What a way of searching found. */
interface Found extends Pick<SearchHit, 'route' | 'matched' | 'partial'> {
  rows: HitRow[]
}

/** Search over all messages: `store.search`, and `tx.search` inside a transaction. */
export class SearchRepository {
  readonly #context: RepositoryContext

  /** @internal */
  constructor(context: RepositoryContext) {
    this.#context = context
  }

  /**
   * Finds messages by what was said, in any language. Terms are ANDed; `"a phrase"`, `OR`, `NOT` and `prefix*` mean
   * what they say; every other character is text. Nothing a user types is a syntax error.
   *
   * @throws TypeError for options that are not valid, and the reason of `signal`.
   * @example
   * await store.search.messages('docker OR podman', { sources: ['cli'], limit: 5 })
   */
  async messages(query: string, options: SearchOptions = {}): Promise<SearchHit[]> {
    return this.#messages(query, options, undefined)
  }

  async #messages(
    query: string,
    options: SearchOptions,
    excludeSessions: readonly string[] | undefined,
  ): Promise<SearchHit[]> {
    const tree = parseQuery(checkText(query, 'query'))
    const checked = { ...checkOptions(options, excludeSessions), operators: hasOperators(query) }
    if (tree === undefined) return []
    checked.signal?.throwIfAborted()
    const { rows, ...how } = await this.#find(tree, checked)
    const { context, marks, scan: whole } = checked
    const show = { ...how, terms: wantedTerms(tree), asWords: how.route === 'words', whole, context, marks }
    return this.#context.executor.read((connection) => toHits(connection, rows, show))
  }

  /**
   * Finds sessions, one row each: first those whose id begins with the query, then by title, then by their best
   * message.
   *
   * @example
   * const [session] = await store.search.sessions('docker build')
   * console.log(session?.title, session?.hit?.snippet)
   */
  async sessions(query: string, options: SearchSessionsOptions = {}): Promise<SessionHit[]> {
    const tree = parseQuery(checkText(query, 'query'))
    const { limit = 20, ...filters } = options
    checkCount(limit, 'limit')
    checkOptions(filters)
    if (tree === undefined || limit === 0) return []
    return findSessions(this.#context, query, tree, limit, filters, (excludeSessions) =>
      this.#messages(query, { ...filters, limit: 100 }, excludeSessions),
    )
  }

  /**
   * A message with its neighbours in the session and the ends of that session, to read on from a hit. null where
   * there is no such message.
   */
  async around(messageId: number, options: AroundOptions = {}): Promise<Surroundings | null> {
    const id = checkCount(messageId, 'messageId')
    const before = checkCount(options.before ?? 10, 'before')
    const after = checkCount(options.after ?? 10, 'after')
    const ends = checkCount(options.ends ?? 2, 'ends')
    const { executor, events } = this.#context
    return executor.read((connection) => {
      const message = readMessage(connection, id, events)
      if (!message) return null
      const { session_id } = message
      const page = (from: 'start' | 'end', range: { after?: number; before?: number; limit: number }) =>
        readPage(
          connection,
          { session_id, after: 0, before: Number.MAX_SAFE_INTEGER, ...range },
          { from, includeInactive: false },
          events,
        )
      const messages = [
        ...page('end', { before: id, limit: before }),
        message,
        ...page('start', { after: id, limit: after }),
      ]
      const [oldest, newest] = [messages[0] ?? message, messages.at(-1) ?? message]
      return {
        session_id,
        messages,
        first: page('start', { before: oldest.id, limit: ends }),
        last: page('end', { after: newest.id, limit: ends }),
      }
    })
  }

  /** Searches again without the indexes where one of them fails: a damaged one must not hide what is there. */
  async #find(tree: QueryTree, options: CheckedOptions): Promise<Found> {
    const { executor, indexes } = this.#context
    await executor.read((connection) => indexes.refresh(connection))
    try {
      return await this.#inTurn(tree, options)
    } catch (error) {
      const cause = error instanceof StateStoreError ? error.cause : error
      if (!(await executor.read((connection) => indexes.mistrust(connection, cause)))) throw error
      await this.#putAside(cause)
      return this.#inTurn(tree, options)
    }
  }

  /** Has the next opening make a damaged index anew, where this store may write. */
  async #putAside(cause: unknown): Promise<void> {
    const { executor, indexes } = this.#context
    try {
      if (await executor.read((connection) => connection.readonly)) return
      await executor.write((connection) => indexes.putAside(connection, cause))
    } catch (error) {
      // The search goes on without it.
      if (!(error instanceof StateStoreBusyError)) throw error
    }
  }

  /** Each way in turn, until one finds something; the page after a hit is found the way that hit was. */
  async #inTurn(tree: QueryTree, options: CheckedOptions): Promise<Found> {
    const { after, offset, scan } = options
    if (scan) return this.#bySubstring(tree, options)
    if (after?.matched === 'any') return this.#byWords(anyOf(tree), options, 'any')
    if (!isIndexed(tree)) return this.#byRow(tree, options)
    if (!this.#context.indexes.words || after?.route === 'substring') return this.#bySubstring(tree, options)
    const words = await this.#byWords(tree, options, 'all')
    if (words.rows.length > 0 || after) return words
    // A page behind the last hit is no reason to look elsewhere.
    if (offset > 0 && (await this.#byWords(tree, { ...options, ...FIRST }, 'all')).rows.length > 0)
      return words
    const substring = await this.#bySubstring(tree, options)
    const severalWords =
      !options.operators && tree.kind === 'and' && tree.items.every(({ kind }) => kind === 'term')
    if (substring.rows.length > 0 || !severalWords) return substring
    if (offset > 0 && (await this.#bySubstring(tree, { ...options, ...FIRST })).rows.length > 0)
      return substring
    return this.#byWords(anyOf(tree), options, 'any')
  }

  async #byWords(tree: QueryTree, options: CheckedOptions, matched: 'all' | 'any'): Promise<Found> {
    const { filters, offset, limit, exact, after, newest } = options
    const how = { route: 'words', matched } as const
    if (newest) return { ...how, rows: await this.#newest(tree, options, 'indexed'), partial: false }
    const page = { filters, after: after?.id, offset, limit, exact }
    const found = await this.#context.executor.read((connection) =>
      findRanked(connection, renderFts5(tree), page),
    )
    return { ...how, ...found }
  }

  /** Queries with a script without spaces, or with a sign that is no word. */
  async #byRow(tree: QueryTree, options: CheckedOptions): Promise<Found> {
    await this.#catchUp()
    const rows = await this.#newest(tree, options, 'indexed')
    const hasWord = wantedTerms(tree).some(({ indexed }) => indexed)
    if (
      rows.length === 0 &&
      hasWord &&
      (await this.#newest(tree, { ...options, ...FIRST }, 'indexed')).length === 0
    )
      return this.#bySubstring(tree, options)
    const unsegmented =
      this.#context.indexes.bigrams && wantedTerms(tree).some(({ text }) => containsCjk(text))
    return { rows, route: unsegmented ? 'unsegmented' : 'substring', matched: 'all', partial: false }
  }

  async #bySubstring(tree: QueryTree, options: CheckedOptions): Promise<Found> {
    const rows = await this.#newest(tree, options, 'substring')
    return { rows, route: 'substring', matched: 'all', partial: false }
  }

  #newest(tree: QueryTree, options: CheckedOptions, words: 'indexed' | 'substring'): Promise<HitRow[]> {
    const { filters, after, offset, limit, scan: whole, signal } = options
    const walk = {
      filters,
      indexes: this.#context.indexes,
      words,
      whole,
      before: after?.id,
      offset,
      limit,
      signal,
    }
    return findNewest(this.#context.executor, tree, walk)
  }

  /** Indexes what other programs have written since. */
  async #catchUp(): Promise<void> {
    const { executor, additions } = this.#context
    if (!additions || !this.#context.indexes.bigrams) return
    try {
      if (!(await executor.read((connection) => !connection.readonly && isBehind(connection)))) return
      while (!(await executor.write((connection) => catchUp(connection, CATCH_UP))));
    } catch (error) {
      // What is not indexed yet is looked at one by one.
      if (!(error instanceof StateStoreBusyError)) throw error
    }
  }
}

function checkOptions(
  options: SearchOptions,
  excludeSessions?: readonly string[],
): Omit<CheckedOptions, 'operators'> {
  const { after, orderBy = 'rank', marks = ['>>>', '<<<'] } = options
  if (orderBy !== 'rank' && orderBy !== 'newest') throw new TypeError("orderBy must be 'rank' or 'newest'.")
  if (!Array.isArray(marks) || marks.length !== 2) throw new TypeError('marks must be an array of two texts.')
  for (const mark of marks) checkText(mark, 'marks')
  if (after !== undefined) checkCount(checkObject(after, 'after').id, 'after.id')
  return {
    filters: checkFilters(options, excludeSessions),
    limit: checkCount(options.limit === undefined ? 20 : options.limit, 'limit'),
    offset: checkCount(options.offset === undefined ? 0 : options.offset, 'offset'),
    after,
    context: checkCount(options.context === undefined ? 1 : options.context, 'context'),
    newest: orderBy === 'newest',
    exact: options.exact ?? false,
    scan: options.scan ?? false,
    marks: [marks[0], marks[1]],
    signal: options.signal,
  }
}
