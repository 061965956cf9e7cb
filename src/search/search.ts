import { checkCount, checkObject, checkText } from '../arguments.ts'
import type { RepositoryContext } from '../database/repository.ts'
import { StateStoreBusyError, StateStoreError } from '../errors.ts'
import { readMessage, readPage } from '../messages/read.ts'
import { find, type Rows, type Search } from '../reader/protocol.ts'
import type { Reader } from '../reader/reader.ts'
import { catchUp, isBehind } from './bigram-index.ts'
import { checkFilters } from './filters.ts'
import { looksByRow, type MessageQuery } from './find.ts'
import { collect } from './pages.ts'
import { hasOperators, parseQuery } from './query.ts'
import type {
  AroundOptions,
  SearchHit,
  SearchOptions,
  SearchSessionsOptions,
  SessionHit,
  Surroundings,
} from './search-types.ts'

/** Messages of others that one transaction adds to the index of scripts without spaces. */
const CATCH_UP = 500

/** Hits among which the best of each session is looked for. */
const HITS_PER_PAGE = 100

/** Search over all messages: `store.search`, and `tx.search` inside a transaction. */
export class SearchRepository {
  readonly #context: RepositoryContext
  readonly #reader: Reader | null

  /** @internal */
  constructor(context: RepositoryContext, reader: Reader | null) {
    this.#context = context
    this.#reader = reader
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
    const tree = parseQuery(checkText(query, 'query'))
    const checked = checkOptions(options)
    if (tree === undefined) return []
    const wanted = { ...checked, tree, operators: hasOperators(query) }
    return this.#trusting(wanted, { kind: 'messages', query: wanted }, options.signal)
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
    const checked = checkOptions({ ...filters, limit: HITS_PER_PAGE })
    if (tree === undefined || limit === 0) return []
    const messages = { ...checked, tree, operators: hasOperators(query) }
    return this.#trusting(
      messages,
      { kind: 'sessions', query: { text: query, messages, limit } },
      options.signal,
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
  async #trusting<Kind extends keyof Rows>(
    messages: MessageQuery,
    search: Search<Kind>,
    signal: AbortSignal | undefined,
  ): Promise<Rows[Kind][]> {
    const { executor, indexes } = this.#context
    signal?.throwIfAborted()
    await executor.read((connection) => indexes.refresh(connection))
    try {
      if (looksByRow(messages)) await this.#catchUp()
      return await this.#find(search, signal)
    } catch (error) {
      const cause = error instanceof StateStoreError ? error.cause : error
      if (!(await executor.read((connection) => indexes.mistrust(connection, cause)))) throw error
      await this.#putAside(cause)
      return this.#find(search, signal)
    }
  }

  /** In another thread, where there is one. */
  async #find<Kind extends keyof Rows>(
    search: Search<Kind>,
    signal: AbortSignal | undefined,
  ): Promise<Rows[Kind][]> {
    const found = await this.#reader?.find(search, this.#context.indexes, signal)
    return found ?? collect(find(this.#context, search, signal))
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

function checkOptions(options: SearchOptions): Omit<MessageQuery, 'tree' | 'operators'> {
  const { after, orderBy = 'rank', marks = ['>>>', '<<<'] } = options
  if (orderBy !== 'rank' && orderBy !== 'newest') throw new TypeError("orderBy must be 'rank' or 'newest'.")
  if (!Array.isArray(marks) || marks.length !== 2) throw new TypeError('marks must be an array of two texts.')
  for (const mark of marks) checkText(mark, 'marks')
  if (after !== undefined) checkCount(checkObject(after, 'after').id, 'after.id')
  return {
    filters: checkFilters(options),
    limit: checkCount(options.limit === undefined ? 20 : options.limit, 'limit'),
    offset: checkCount(options.offset === undefined ? 0 : options.offset, 'offset'),
    after: after && { id: after.id, route: after.route, matched: after.matched },
    context: checkCount(options.context === undefined ? 1 : options.context, 'context'),
    newest: orderBy === 'newest',
    exact: options.exact ?? false,
    scan: options.scan ?? false,
    marks: [marks[0], marks[1]],
  }
}
