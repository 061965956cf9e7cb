import { checkCount, checkId, checkOptionalText, checkText, checkWord, now } from '../arguments.ts'
import { build, type FixedQuery, fixedQuery, type Param } from '../database/fixed-query.ts'
import type { RepositoryContext } from '../database/repository.ts'
import { checkSession, createSession, UNKNOWN_SOURCE } from './create.ts'
import { type ListSessionsOptions, listSessions } from './list.ts'
import { toSession } from './session-row.ts'
import type { NewSession, Session, SessionSummary } from './session-types.ts'

const byId = fixedQuery((param: Param<{ id: string }>) =>
  build.selectFrom('sessions').selectAll().where('id', '=', param('id')),
)

const existing = fixedQuery((param: Param<{ id: string }>) =>
  build.selectFrom('sessions').select('id').where('id', '=', param('id')),
)

const countOf = fixedQuery((param: Param<{ source: string | null }>) =>
  build
    .selectFrom('sessions')
    .select((eb) => eb.fn.countAll<number>().as('count'))
    .where((eb) => eb.or([eb(param('source'), 'is', null), eb('source', '=', param('source'))])),
)

const end = fixedQuery((param: Param<{ id: string; ended_at: number; end_reason: string }>) =>
  build
    .updateTable('sessions')
    .set({ ended_at: param('ended_at'), end_reason: param('end_reason') })
    .where('id', '=', param('id'))
    .where('ended_at', 'is', null),
)

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
      const row = connection.get(byId, { id })
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
    return this.#change(end, { id, ended_at: now(), end_reason: checkWord(reason, 'reason') })
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

  /** Sessions, the latest started first. */
  async list(options: ListSessionsOptions = {}): Promise<SessionSummary[]> {
    const range = {
      source: options.source === undefined ? null : checkText(options.source, 'source'),
      limit: checkCount(options.limit ?? 20, 'limit'),
      offset: checkCount(options.offset ?? 0, 'offset'),
    }
    const { executor, events } = this.#context
    return executor.read((connection) => listSessions(connection, range, events))
  }

  async count(options: { source?: string } = {}): Promise<number> {
    const source = options.source === undefined ? null : checkText(options.source, 'source')
    return this.#context.executor.read((connection) => connection.get(countOf, { source })?.count ?? 0)
  }

  async #change<Args extends object>(query: FixedQuery<Args, unknown>, args: Args): Promise<boolean> {
    return this.#context.executor.write((connection) => connection.run(query, args).changes > 0)
  }
}
