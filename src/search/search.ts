import { type RawBuilder, type SqlBool, sql } from 'kysely'
import { checkCount, checkText, checkTextList } from '../arguments.ts'
import { text } from '../database/cells.ts'
import type { Connection } from '../database/connection.ts'
import { headOfContent, isOneOf } from '../database/filters.ts'
import { build, fixedQuery, type Param } from '../database/fixed-query.ts'
import type { RepositoryContext } from '../database/repository.ts'
import { isIndexFailure } from '../database/sqlite-errors.ts'
import { visibleStored } from '../messages/structured-content.ts'
import { containsText } from './contains.ts'
import { isIndexed, parseQuery, type QueryTree, renderFts5, wantedTerms } from './query.ts'
import type { ContextMessage, SearchHit, SearchOptions } from './search-types.ts'
import { substringSnippet } from './snippet.ts'
import { wordIndexUnused } from './word-index.ts'

const CONTEXT_LENGTH = 200

interface Filters {
  sources: readonly string[] | undefined
  excludeSources: readonly string[] | undefined
  roles: readonly string[] | undefined
  limit: number
  offset: number
}

const neighbours = (direction: 'before' | 'after') =>
  fixedQuery((param: Param<{ session_id: string; id: number; limit: number }>) =>
    build
      .selectFrom('all_messages as messages')
      .select(['id', 'role', headOfContent(CONTEXT_LENGTH).as('content')])
      .where('inactive', 'is not', 'undone')
      .where('session_id', '=', param('session_id'))
      .where('id', direction === 'before' ? '<=' : '>', param('id'))
      .orderBy('id', direction === 'before' ? 'desc' : 'asc')
      .limit(param('limit')),
  )

const upToHit = neighbours('before')
const afterHit = neighbours('after')

/** Search over all messages: `store.search`, and `tx.search` inside a transaction. */
export class SearchRepository {
  readonly #context: RepositoryContext

  /** @internal */
  constructor(context: RepositoryContext) {
    this.#context = context
  }

  /**
   * Finds messages by what was said. Terms are ANDed; `"a phrase"`, `OR`, `NOT` and `prefix*` mean what they
   * say; every other character is text. Nothing a user types is a syntax error.
   *
   * @example
   * await store.search.messages('docker OR podman', { sources: ['cli'], limit: 5 })
   */
  async messages(query: string, options: SearchOptions = {}): Promise<SearchHit[]> {
    const tree = parseQuery(checkText(query, 'query'))
    const filters: Filters = {
      sources: checkTextList(options.sources, 'sources'),
      excludeSources: checkTextList(options.excludeSources, 'excludeSources'),
      roles: checkTextList(options.roles, 'roles'),
      limit: checkCount(options.limit ?? 20, 'limit'),
      offset: checkCount(options.offset ?? 0, 'offset'),
    }
    const context = checkCount(options.context ?? 1, 'context')
    if (tree === undefined) return []
    const { executor } = this.#context
    return executor.read((connection) => {
      const hits = this.#byWords(connection, tree, filters) ?? bySubstring(connection, tree, filters)
      return hits.map((hit) => ({ ...hit, context: contextOf(connection, hit, context) }))
    })
  }

  /** What the word index finds; undefined where it cannot be asked. */
  #byWords(connection: Connection, tree: QueryTree, filters: Filters): Hit[] | undefined {
    const { wordIndex, events } = this.#context
    if (!wordIndex || !isIndexed(tree)) return undefined
    try {
      return byWords(connection, tree, filters)
    } catch (error) {
      if (!isIndexFailure(error)) throw error
      const reason = `is damaged (${error instanceof Error ? error.message : String(error)})`
      events(wordIndexUnused(connection.path, reason))
      return undefined
    }
  }
}

type Hit = Omit<SearchHit, 'context'>

function byWords(connection: Connection, tree: QueryTree, filters: Filters): Hit[] {
  const query = filtered(filters)
    .innerJoin('messages_fts', 'messages_fts.rowid', 'messages.id')
    .where('messages_fts.messages_fts', 'match', renderFts5(tree))
    .select(sql<string>`snippet(messages_fts, -1, '>>>', '<<<', '...', 40)`.as('snippet'))
    .orderBy('messages_fts.rank')
    .orderBy('messages.id', 'desc')
  return connection
    .execute(query.compile())
    .rows.map((row) => ({ ...row, snippet: text(row.snippet) ?? '', route: 'words' }))
}

function bySubstring(connection: Connection, tree: QueryTree, filters: Filters): Hit[] {
  const query = filtered(filters)
    .where(condition(tree))
    .select('messages.content')
    .orderBy('messages.id', 'desc')
  const terms = wantedTerms(tree).map((term) => term.text)
  return connection.execute(query.compile()).rows.map(({ content, ...row }) => ({
    ...row,
    snippet: substringSnippet(visibleStored(text(content) ?? ''), terms),
    route: 'substring',
  }))
}

function filtered({ sources, excludeSources, roles, limit, offset }: Filters) {
  return build
    .selectFrom('all_messages as messages')
    .where('messages.inactive', 'is not', 'undone')
    .innerJoin('sessions', 'sessions.id', 'messages.session_id')
    .select([
      'messages.id',
      'messages.session_id',
      'messages.role',
      'messages.timestamp',
      'messages.tool_name',
      'sessions.source',
      'sessions.model',
      'sessions.started_at as session_started',
    ])
    .$if(sources !== undefined, (query) => query.where(isOneOf('sessions.source', sources ?? [])))
    .$if(excludeSources !== undefined, (query) =>
      query.where((eb) => eb.not(isOneOf('sessions.source', excludeSources ?? []))),
    )
    .$if(roles !== undefined, (query) => query.where(isOneOf('messages.role', roles ?? [])))
    .limit(limit)
    .offset(offset)
}

function condition(tree: QueryTree): RawBuilder<SqlBool> {
  if (tree.kind === 'term') return containsText(tree.text)
  if (tree.kind === 'not') return sql`(${condition(tree.keep)} and not ${condition(tree.drop)})`
  return sql`(${sql.join(tree.items.map(condition), tree.kind === 'and' ? sql` and ` : sql` or `)})`
}

function contextOf(connection: Connection, { session_id, id }: Hit, size: number): ContextMessage[] {
  const before = connection.all(upToHit, { session_id, id, limit: size + 1 }).reverse()
  const after = connection.all(afterHit, { session_id, id, limit: size })
  return [...before, ...after].map((row) => ({
    id: row.id,
    role: row.role,
    content: Array.from(visibleStored(text(row.content) ?? ''))
      .slice(0, CONTEXT_LENGTH)
      .join(''),
  }))
}
