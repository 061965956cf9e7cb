import { checkCount, checkId, checkOptionalText, checkText, checkWord, now } from '../arguments.ts'
import { build, type FixedQuery, fixedQuery, type Param } from '../database/fixed-query.ts'
import { assertOwnSchema, type RepositoryContext } from '../database/repository.ts'
import { type Continuation, checkContinuation, continueSession } from './continue.ts'
import { checkSession, createSession, UNKNOWN_SOURCE } from './create.ts'
import { endSession } from './end.ts'
import { matchingIds } from './ids.ts'
import { checkListOptions, type ListSessionsOptions, listSessions } from './list.ts'
import { type PruneOptions, type PruneResult, pruneSessions } from './prune.ts'
import { recountSession } from './recount.ts'
import { exists, removeSessions } from './removal.ts'
import { sessionById, toSession } from './session-row.ts'
import type { NewSession, Session, SessionSummary } from './session-types.ts'

const existing = fixedQuery((param: Param<{ id: string }>) =>
  build.selectFrom('sessions').select('id').where('id', '=', param('id')),
)

const counts = (view: 'listed_sessions' | 'all_sessions') => ({
  file: fixedQuery((_: Param<object>) =>
    build.selectFrom(view).select((eb) => eb.fn.countAll<number>().as('count')),
  ),
  source: fixedQuery((param: Param<{ source: string }>) =>
    build
      .selectFrom(view)
      .select((eb) => eb.fn.countAll<number>().as('count'))
      .where('source', '=', param('source')),
  ),
})

const listedCounts = counts('listed_sessions')
const allCounts = counts('all_sessions')

const reopen = fixedQuery((param: Param<{ id: string }>) =>
  build
    .updateTable('sessions')
    .set({ ended_at: null, end_reason: null })
    .where('id', '=', param('id'))
    .where('ended_at', 'is not', null),
)

const setSystemPrompt = fixedQuery((param: Param<{ id: string; system_prompt: string | null }>) =>
  build
    .updateTable('sessions')
    .set({ system_prompt: param('system_prompt') })
    .where('id', '=', param('id')),
)

const setModel = fixedQuery((param: Param<{ id: string; model: string }>) =>
  build
    .updateTable('sessions')
    .set({ model: param('model') })
    .where('id', '=', param('id')),
)

const deleteIfEmpty = fixedQuery((param: Param<{ id: string }>) =>
  build
    .deleteFrom('sessions')
    .where('id', '=', param('id'))
    .where('title', 'is', null)
    .where((eb) =>
      eb.not(
        eb.or([
          eb.exists(eb.selectFrom('messages').select('messages.id').where('session_id', '=', param('id'))),
          eb.exists(
            eb
              .selectFrom('sessions as child')
              .select('child.id')
              .where('child.parent_session_id', '=', param('id')),
          ),
        ]),
      ),
    ),
)

/** The sessions of a file: `store.sessions`, and `tx.sessions` inside a transaction. */
export class SessionRepository {
  readonly #context: RepositoryContext

  /** @internal */
  constructor(context: RepositoryContext) {
    this.#context = context
  }

  /**
   * Creates a session. Where the id exists, only what its row lacks is filled (null fields, the source
   * `unknown`, the parent), and nothing is overwritten: calling it twice is safe.
   *
   * @returns the id.
   * @throws TypeError, ParentNotFoundError, LineageCycleError
   * @example
   * const id = await store.sessions.create({ source: 'cli', model: 'claude-sonnet-4-5' })
   */
  async create(session: NewSession): Promise<string> {
    const values = checkSession(session)
    await this.#context.executor.write((connection) => createSession(connection, values))
    return values.id
  }

  /** Makes sure that a session exists, for recovery: a message must not be lost because its session is missing. */
  async ensure(session: { id: string; source?: string; model?: string | null }): Promise<string> {
    return this.create({
      id: checkId(session.id, 'session.id'),
      source: session.source ?? UNKNOWN_SOURCE,
      model: session.model,
    })
  }

  async get(id: string): Promise<Session | null> {
    checkId(id, 'id')
    const { executor, events } = this.#context
    return executor.read((connection) => {
      const row = connection.get(sessionById, { id })
      return row ? toSession(connection, row, events) : null
    })
  }

  async exists(id: string): Promise<boolean> {
    checkId(id, 'id')
    return this.#context.executor.read((connection) => connection.get(existing, { id }) !== undefined)
  }

  /**
   * Ends a session. The first end wins until `reopen()`.
   *
   * @param reason `compression`, `user_exit`, `session_reset`, … Hermes continues sessions ended by `compression`.
   * @returns whether the session was open.
   */
  async end(id: string, reason: string): Promise<boolean> {
    checkId(id, 'id')
    return this.#change(endSession, { id, ended_at: now(), end_reason: checkWord(reason, 'reason') })
  }

  /**
   * Ends a session with the reason `compression` and creates the session in which its conversation goes on, in one
   * transaction: of several that try at once, one continues it. Where it has ended by compression and nobody
   * continues it, only the new session is made.
   *
   * @returns the id of the new session.
   * @throws SessionContinuedError naming the session that continues it already, SessionEndedError where it has
   * ended for another reason, SessionNotFoundError, SessionExistsError, TitleInUseError, TypeError.
   * @example
   * const next = await store.sessions.continueAs(id, { system_prompt: summary })
   */
  async continueAs(id: string, continuation: Continuation = {}): Promise<string> {
    const checked = checkContinuation(checkId(id, 'id'), continuation)
    await this.#context.executor.write((connection) => continueSession(connection, id, checked))
    return checked.session.id
  }

  /** @returns whether the session had ended. */
  async reopen(id: string): Promise<boolean> {
    return this.#change(reopen, { id: checkId(id, 'id') })
  }

  /** @returns whether the session exists. */
  async setSystemPrompt(id: string, prompt: string | null): Promise<boolean> {
    checkId(id, 'id')
    return this.#change(setSystemPrompt, { id, system_prompt: checkOptionalText(prompt, 'prompt') })
  }

  /** @returns whether the session exists. */
  async setModel(id: string, model: string): Promise<boolean> {
    checkId(id, 'id')
    return this.#change(setModel, { id, model: checkWord(model, 'model') })
  }

  /**
   * A page of sessions, without their system prompts. The next page is the one `after` the last item.
   *
   * @example
   * const page = await store.sessions.list({ orderBy: 'lastActive', excludeSources: ['cron'] })
   * const next = await store.sessions.list({ orderBy: 'lastActive', excludeSources: ['cron'], after: page.at(-1) })
   */
  async list(options: ListSessionsOptions = {}): Promise<SessionSummary[]> {
    const checked = checkListOptions(options)
    const { executor, events } = this.#context
    return executor.read((connection) => listSessions(connection, checked, events))
  }

  /** The id that a text means: an id itself, or the beginning (four characters or more) of only one; else null. */
  async resolveId(idOrPrefix: string): Promise<string | null> {
    const [only, ...others] = await this.matchPrefix(idOrPrefix, { limit: 2 })
    return others.length === 0 ? (only ?? null) : null
  }

  /**
   * The ids that begin with a text of at least four characters, in order: the candidates where `resolveId` finds
   * more than one. A text that is a whole id matches only itself.
   */
  async matchPrefix(prefix: string, options: { limit?: number } = {}): Promise<string[]> {
    checkText(prefix, 'prefix')
    const limit = checkCount(options.limit ?? 10, 'limit')
    return this.#context.executor.read((connection) => matchingIds(connection, prefix, limit))
  }

  /**
   * How many sessions there are.
   *
   * @param options.includeArchived Also those that a later Hermes version has archived or hidden. Default false.
   */
  async count(options: { source?: string; includeArchived?: boolean } = {}): Promise<number> {
    const source = options.source === undefined ? undefined : checkText(options.source, 'source')
    return this.#context.executor.read((connection) => {
      const counted = options.includeArchived ? allCounts : listedCounts
      const row =
        source === undefined ? connection.get(counted.file, {}) : connection.get(counted.source, { source })
      return row?.count ?? 0
    })
  }

  /**
   * Deletes a session with its messages; its children stay, without a parent. Above 500 messages it goes in
   * several transactions, so that others can write in between.
   *
   * @returns whether there was such a session.
   */
  async delete(id: string): Promise<boolean> {
    checkId(id, 'id')
    return (await removeSessions(this.#context.executor, [id], exists)) > 0
  }

  /**
   * Deletes a session that nobody has used: without messages, title and children.
   *
   * @returns whether it was deleted.
   */
  async deleteIfEmpty(id: string): Promise<boolean> {
    return this.#change(deleteIfEmpty, { id: checkId(id, 'id') })
  }

  /**
   * Deletes ended sessions that were last active long ago. Sessions that never ended stay and are counted.
   *
   * @throws TypeError for an age that is not above 0.
   */
  async prune(options: PruneOptions = {}): Promise<PruneResult> {
    assertOwnSchema(this.#context, 'sessions.prune()')
    if (options.source !== undefined) checkText(options.source, 'source')
    return pruneSessions(this.#context.executor, options)
  }

  /** Counts a session's messages and tool calls again: other programs let the counters drift. */
  async recount(id: string): Promise<boolean> {
    assertOwnSchema(this.#context, 'sessions.recount()')
    return this.#change(recountSession, { id: checkId(id, 'id') })
  }

  async #change<Args extends object>(query: FixedQuery<Args, unknown>, args: Args): Promise<boolean> {
    return this.#context.executor.write((connection) => connection.run(query, args).changes > 0)
  }
}
