import { checkCount, checkId, checkObject } from '../arguments.ts'
import type { Connection } from '../database/connection.ts'
import type { Batch } from '../database/executor.ts'
import { build, fixedQuery, type Param } from '../database/fixed-query.ts'
import { ROWS_AT_ONCE, STEP } from '../database/limits.ts'
import { assertOwnSchema, type RepositoryContext } from '../database/repository.ts'
import type { IndexHealth } from '../search/index-health.ts'
import {
  type Append,
  type Appended,
  addToCounters,
  appendBatch,
  appended,
  insert,
  repeated,
  reportAppended,
} from './append.ts'
import { archiveAll, deleteAll } from './clear.ts'
import { assertOwnClientIds, storedId } from './client-ids.ts'
import { mergeUserTurns, toConversationMessage } from './conversation.ts'
import { assertLastId, checkExpectedLastId, type ExpectedLastId } from './last-message.ts'
import type { ConversationMessage, Message, NewMessage } from './message-types.ts'
import { type CheckedMessage, checkMessage } from './message-values.ts'
import { readMessage, readPage } from './read.ts'

/** A place in a conversation: a message, or its id. */
export type MessageCursor = number | Pick<Message, 'id'>

export interface AppendOptions {
  /** Reject with {@link SessionEndedError} when the session has ended, instead of storing with an event. */
  requireOpen?: boolean
}

export interface ExpectOptions {
  /**
   * The id of the last message that the caller knows of; null or 0 for none. Where the session has another one,
   * {@link ConflictError} is thrown and nothing is written. Default: not checked.
   */
  expectedLastId?: ExpectedLastId
}

export interface AppendManyOptions extends AppendOptions, ExpectOptions {}

export interface ReplaceOptions extends ExpectOptions {
  /**
   * The id of a new session that gets the messages which are replaced, instead of their being deleted: as they are,
   * with their ids, times and client ids. It is a branch of the session, with its source, user and model, without a
   * title, begun with the first of them and ended now by `replaced`. Not made where there are none. Default: they are
   * deleted.
   */
  archiveAs?: string
}

export interface ListMessagesOptions {
  /** Only messages after this one: the last item of the page before. */
  after?: MessageCursor
  /** Only messages before this one. With `limit` and without `after`: the page right before it. */
  before?: MessageCursor
  /** The newest so many messages. */
  latest?: number
  /** At most so many messages. Default: all. */
  limit?: number
  /** Also those that a later Hermes version has taken back or summarised away. Default false. */
  includeInactive?: boolean
}

const MAX_ID = Number.MAX_SAFE_INTEGER

const counts = (view: 'live_messages' | 'all_messages') => ({
  file: fixedQuery((_: Param<object>) =>
    build.selectFrom(view).select((eb) => eb.fn.countAll<number>().as('count')),
  ),
  session: fixedQuery((param: Param<{ session_id: string }>) =>
    build
      .selectFrom(view)
      .select((eb) => eb.fn.countAll<number>().as('count'))
      .where('session_id', '=', param('session_id')),
  ),
})

const liveCounts = counts('live_messages')
const allCounts = counts('all_messages')

/** The messages of sessions: `store.messages`, and `tx.messages` inside a transaction. */
export class MessageRepository {
  readonly #context: RepositoryContext
  readonly #appendBatch: Batch<Append, Appended>

  /** @internal */
  constructor(context: RepositoryContext) {
    this.#context = context
    this.#appendBatch = (connection, appends) => appendBatch(connection, appends, context.indexes)
  }

  /**
   * Stores a message and counts it in its session, in one transaction. Appends that arrive together share a
   * commit. When the promise resolves, the message is on disk.
   *
   * @returns the id of the message.
   * @throws TypeError for a message that cannot be stored, SessionNotFoundError, StateStoreBusyError.
   * @example
   * await store.messages.append(id, { role: 'user', content: 'Why does the build fail?' })
   */
  async append(sessionId: string, message: NewMessage, options: AppendOptions = {}): Promise<number> {
    checkId(sessionId, 'sessionId')
    const { executor, events, additions } = this.#context
    const checked = checkMessage(sessionId, message, 'message', additions)
    const append = { message: checked, requireOpen: options.requireOpen ?? false }
    const stored = await executor.writeBatched(append, this.#appendBatch)
    reportAppended(sessionId, stored, events)
    return stored.ids[0]!
  }

  /**
   * Stores messages in order, all or none. Those that are stored under their `client_id` already are not stored
   * again; where all are, that is so whatever the options say.
   *
   * @returns their ids, in the order given.
   * @throws TypeError, also for a `client_id` that is given twice; ConflictError, SessionNotFoundError,
   * SessionEndedError, UnsupportedSchemaError for a `client_id` without the additions.
   */
  async appendMany(
    sessionId: string,
    messages: readonly NewMessage[],
    options: AppendManyOptions = {},
  ): Promise<number[]> {
    const checked = this.#check(sessionId, messages)
    const { executor, events, indexes } = this.#context
    const conditions = {
      requireOpen: options.requireOpen ?? false,
      expectedLastId: checkExpectedLastId(options.expectedLastId),
    }
    const steps = (connection: Connection) => insertAll(connection, sessionId, checked, conditions, indexes)
    const stored = await (checked.length <= STEP
      ? executor.write((connection) => atOnce(steps(connection)))
      : executor.writeInSteps(steps))
    reportAppended(sessionId, stored, events)
    return stored.ids
  }

  /**
   * Replaces the whole conversation of a session, or leaves it as it was. Tokens, title and end stay. The client
   * ids of the messages that were there are free again.
   *
   * @returns the ids of the new messages.
   * @throws TypeError, ConflictError, SessionNotFoundError, SessionExistsError where there is a session `archiveAs`,
   * whether or not there is anything to archive.
   * @example
   * await store.messages.replaceAll(id, summary, { expectedLastId: last.id, archiveAs: `${id}-before` })
   */
  async replaceAll(
    sessionId: string,
    messages: readonly NewMessage[],
    options: ReplaceOptions = {},
  ): Promise<number[]> {
    assertOwnSchema(this.#context, 'messages.replaceAll()')
    const checked = this.#check(sessionId, messages)
    const expectedLastId = checkExpectedLastId(options.expectedLastId)
    const { archiveAs } = options
    if (archiveAs !== undefined) checkId(archiveAs, 'archiveAs')
    const { executor, events, indexes } = this.#context
    const stored = await executor.writeInSteps(function* (connection) {
      assertLastId(connection, sessionId, expectedLastId)
      if (archiveAs === undefined) yield* deleteAll(connection, sessionId)
      else yield* archiveAll(connection, sessionId, archiveAs)
      return yield* insertAll(connection, sessionId, checked, { requireOpen: false }, indexes)
    })
    reportAppended(sessionId, stored, events)
    return stored.ids
  }

  /**
   * Deletes all messages of a session and sets its message counters to 0. Tokens, title and end stay.
   *
   * @returns how many messages were deleted.
   * @throws SessionNotFoundError
   */
  async clear(sessionId: string): Promise<number> {
    assertOwnSchema(this.#context, 'messages.clear()')
    checkId(sessionId, 'sessionId')
    return this.#context.executor.writeInSteps((connection) => deleteAll(connection, sessionId))
  }

  /** The messages of a session in order. A session that does not exist has none. */
  async list(sessionId: string, options: ListMessagesOptions = {}): Promise<Message[]> {
    checkId(sessionId, 'sessionId')
    const { after, before, latest } = options
    if (latest !== undefined && options.limit !== undefined)
      throw new TypeError('latest and limit exclude each other: latest is itself the number of messages.')
    const limit = checkCount(latest ?? options.limit ?? MAX_ID, latest === undefined ? 'limit' : 'latest')
    const range = {
      session_id: sessionId,
      after: after === undefined ? 0 : checkCursor(after, 'after'),
      before: before === undefined ? MAX_ID : checkCursor(before, 'before'),
      limit,
    }
    const fromEnd = latest !== undefined || (before !== undefined && after === undefined)
    const kind = {
      from: fromEnd ? 'end' : 'start',
      includeInactive: options.includeInactive ?? false,
    } as const
    const { executor, events } = this.#context
    return executor.read((connection) => readPage(connection, range, kind, events))
  }

  /** Every message of a session in order, read page by page: memory stays bounded, other calls get their turn. */
  async *iterate(
    sessionId: string,
    options: { includeInactive?: boolean } = {},
  ): AsyncGenerator<Message, void, undefined> {
    let page: Message[] = []
    do {
      page = await this.list(sessionId, { ...options, after: page.at(-1), limit: STEP })
      yield* page
    } while (page.length === STEP)
  }

  /** One message by its id, or null. */
  async get(id: number): Promise<Message | null> {
    checkCount(id, 'id')
    const { executor, events } = this.#context
    return executor.read((connection) => readMessage(connection, id, events))
  }

  /**
   * The messages of a session as a provider wants them back. `appendMany` takes the result.
   *
   * @param options.mergeUserTurns Make one message of user messages that follow each other, as providers that
   * insist on turns need it after a lost answer. The stored messages stay as they are. Default false.
   * @param options.includeInactive As in `list`.
   */
  async conversation(
    sessionId: string,
    options: { mergeUserTurns?: boolean; includeInactive?: boolean } = {},
  ): Promise<ConversationMessage[]> {
    const { includeInactive } = options
    const messages = (await this.list(sessionId, { includeInactive })).map(toConversationMessage)
    return options.mergeUserTurns ? mergeUserTurns(messages) : messages
  }

  /** How many messages a session has, or the whole file: counted, not read from the session's counter. */
  async count(sessionId?: string, options: { includeInactive?: boolean } = {}): Promise<number> {
    if (sessionId !== undefined) checkId(sessionId, 'sessionId')
    const { file, session } = options.includeInactive ? allCounts : liveCounts
    return this.#context.executor.read((connection) => {
      const row =
        sessionId === undefined
          ? connection.get(file, {})
          : connection.get(session, { session_id: sessionId })
      return row?.count ?? 0
    })
  }

  #check(sessionId: string, messages: readonly NewMessage[]): CheckedMessage[] {
    checkId(sessionId, 'sessionId')
    if (!Array.isArray(messages)) throw new TypeError('messages must be an array of messages.')
    const checked = messages.map((message, index) =>
      checkMessage(sessionId, message, `messages[${index}]`, this.#context.additions),
    )
    assertOwnClientIds(checked)
    return checked
  }
}

/** Stores the messages that are not stored under their client ids yet. Returns the ids of all, in their order. */
function* insertAll(
  connection: Connection,
  sessionId: string,
  messages: CheckedMessage[],
  { requireOpen, expectedLastId }: { requireOpen: boolean; expectedLastId?: ExpectedLastId },
  indexes: IndexHealth,
): Generator<void, Appended> {
  const known: (number | undefined)[] = []
  for (const message of messages) {
    if (known.length > 0 && known.length % STEP === 0) yield
    known.push(storedId(connection, message))
  }
  const stored = messages.filter((_, index) => known[index] === undefined)
  if (stored.length === 0 && messages.length > 0) return repeated(known.filter((id) => id !== undefined))
  assertLastId(connection, sessionId, expectedLastId)
  const session = addToCounters(connection, sessionId, stored, requireOpen)
  if (session instanceof Error) throw session
  const added: number[] = []
  while (added.length < stored.length) {
    if (added.length > 0 && added.length % STEP === 0) yield
    added.push(...insert(connection, stored.slice(added.length, added.length + ROWS_AT_ONCE), indexes))
  }
  let next = 0
  const ids = known.map((id) => id ?? added[next++]!)
  return appended(connection, sessionId, session, { ids, stored, last_id: added.at(-1) })
}

/** Runs steps without a pause: for work that is short enough for one tick. */
function atOnce<T>(steps: Generator<void, T>): T {
  for (;;) {
    const step = steps.next()
    if (step.done) return step.value
  }
}

export function checkCursor(cursor: MessageCursor, name: string): number {
  return checkCount(typeof cursor === 'number' ? cursor : checkObject(cursor, name).id, name)
}
