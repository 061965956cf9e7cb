import { type Expression, type RawBuilder, sql } from 'kysely'
import type { Connection } from '../database/connection.ts'
import { build, fixedQuery, fixedRows, type Param } from '../database/fixed-query.ts'
import { SessionEndedError, SessionNotFoundError } from '../errors.ts'
import type { EventHandler } from '../events.ts'
import { bigramText, indexAppended } from '../search/bigram-index.ts'
import type { IndexHealth } from '../search/index-health.ts'
import { tipOf } from '../sessions/tip.ts'
import { keepClientId, storedId } from './client-ids.ts'
import type { CheckedMessage, MessageValues } from './message-values.ts'

const insertMessages = fixedRows(
  (param: Param<MessageValues>) => ({
    session_id: param('session_id'),
    role: param('role'),
    content: param('content'),
    tool_call_id: param('tool_call_id'),
    tool_calls: param('tool_calls'),
    tool_name: param('tool_name'),
    timestamp: param('timestamp'),
    token_count: param('token_count'),
    finish_reason: param('finish_reason'),
    reasoning: param('reasoning'),
    reasoning_details: param('reasoning_details'),
    codex_reasoning_items: param('codex_reasoning_items'),
  }),
  (rows) => build.insertInto('messages').values(rows),
)

const insertStructured = fixedQuery((param: Param<{ message_id: number; content: string }>) =>
  build
    .insertInto('hs_structured_content')
    .values({ message_id: param('message_id'), content: param('content') }),
)

// Cells that other programs left NULL count as 0.
const plus = (column: Expression<number | null>, delta: Expression<number>): RawBuilder<number> =>
  sql<number>`coalesce(${column}, 0) + ${delta}`

const countMessages = fixedQuery(
  (param: Param<{ session_id: string; messages: number; toolCalls: number; requireOpen: number }>) =>
    build
      .updateTable('sessions')
      .set((eb) => ({
        message_count: plus(eb.ref('message_count'), param('messages')),
        tool_call_count: plus(eb.ref('tool_call_count'), param('toolCalls')),
      }))
      .where('id', '=', param('session_id'))
      .where((eb) => eb.or([eb(param('requireOpen'), '=', 0), eb('ended_at', 'is', null)]))
      .returning(['ended_at', 'end_reason']),
)

const endOf = fixedQuery((param: Param<{ session_id: string }>) =>
  build.selectFrom('sessions').select('end_reason').where('id', '=', param('session_id')),
)

/** How a session stood when messages were added to it. */
type SessionEnd = { ended_at: number | null; end_reason: string | null }

function tipAfter(
  connection: Connection,
  session_id: string,
  { end_reason }: Pick<SessionEnd, 'end_reason'>,
): string | null {
  return end_reason === 'compression' ? tipOf(connection, session_id) : null
}

/** Adds to the counters of a session; an error, and nothing is written, where it does not take the messages. */
export function addToCounters(
  connection: Connection,
  session_id: string,
  messages: readonly CheckedMessage[],
  requireOpen: boolean,
): SessionEnd | SessionNotFoundError | SessionEndedError {
  const toolCalls = messages.reduce((sum, message) => sum + message.toolCalls, 0)
  const session = connection.get(countMessages, {
    session_id,
    messages: messages.length,
    toolCalls,
    requireOpen: Number(requireOpen),
  })
  if (session) return session
  const ended = connection.get(endOf, { session_id })
  if (!ended) return new SessionNotFoundError(session_id)
  const tip = tipAfter(connection, session_id, ended)
  return new SessionEndedError(session_id, ended.end_reason, tip === session_id ? null : tip)
}

/**
 * Inserts up to {@link ROWS_AT_ONCE} messages, also of several sessions, and returns their ids. `bigrams` are their texts
 * for the index of scripts without spaces, where those were made before.
 */
export function insert(
  connection: Connection,
  messages: readonly CheckedMessage[],
  indexes: IndexHealth,
  bigrams?: readonly string[],
): number[] {
  const rows = messages.map(({ values }) => values)
  // AUTOINCREMENT gives each row of a statement the id after the one before it.
  const last = Number(connection.run(insertMessages(rows.length), rows).lastInsertRowid)
  const ids = rows.map((_, index) => last - rows.length + 1 + index)
  for (const [index, message] of messages.entries()) {
    const message_id = ids[index]!
    if (message.structured !== null)
      connection.run(insertStructured, { message_id, content: message.structured })
    keepClientId(connection, message, message_id)
  }
  if (indexes.bigrams) indexAppended(connection, ids, () => bigrams ?? rows.map(bigramText))
  connection.stored.push(...ids)
  return ids
}

/** What came of messages for a session. */
export interface Appended {
  /** One for each message, also for those that had been stored before. */
  ids: number[]
  /** Those that were stored now, and the id of the last; undefined where it is none. */
  stored: readonly CheckedMessage[]
  last_id: number | undefined
  session: SessionEnd
  /** Where the conversation goes on, if the session was ended by compression. */
  tip: string | null
}

export function appended(
  connection: Connection,
  session_id: string,
  session: SessionEnd,
  { ids, stored, last_id }: Pick<Appended, 'ids' | 'stored' | 'last_id'>,
): Appended {
  // Written out: a spread would cost more than all else here, once for each message.
  return { ids, stored, last_id, session, tip: tipAfter(connection, session_id, session) }
}

/** Of messages that had all been stored before: how their session stands now is nothing to tell. */
export function repeated(ids: number[]): Appended {
  return { ids, stored: [], last_id: undefined, session: { ended_at: null, end_reason: null }, tip: null }
}

/** One message for a session. */
export interface Append {
  message: CheckedMessage
  requireOpen: boolean
}

/**
 * Stores messages that were appended one by one, up to {@link ROWS_AT_ONCE}: FTS5 writes a segment of its index
 * for each statement that inserts into `messages`, however many rows that has. A message that is stored, or comes
 * earlier in the batch, under the same client id is not stored again.
 */
export function appendBatch(
  connection: Connection,
  appends: readonly Append[],
  indexes: IndexHealth,
): (Appended | SessionNotFoundError | SessionEndedError)[] {
  const taken: CheckedMessage[] = []
  const places = new Map<string, number>()
  const outcomes = appends.map(({ message, requireOpen }) => {
    const key = message.client_id === null ? undefined : `${message.values.session_id}\0${message.client_id}`
    const place = key === undefined ? undefined : places.get(key)
    if (place !== undefined) return { place, session: undefined }
    const id = storedId(connection, message)
    if (id !== undefined) return repeated([id])
    const session = addToCounters(connection, message.values.session_id, [message], requireOpen)
    if (session instanceof Error) return session
    if (key !== undefined) places.set(key, taken.length)
    return { place: taken.push(message) - 1, session }
  })
  const ids = taken.length > 0 ? insert(connection, taken, indexes) : []
  return outcomes.map((outcome) => {
    if (!('place' in outcome)) return outcome
    const { place, session } = outcome
    const id = ids[place]!
    const message = taken[place]!
    return session
      ? appended(connection, message.values.session_id, session, {
          ids: [id],
          stored: [message],
          last_id: id,
        })
      : repeated([id])
  })
}

const KNOWN_ROLES = new Set(['system', 'user', 'assistant', 'tool'])

/**
 * Says what a caller should know of messages that were stored: a session that had ended, a role that replay
 * may not understand, a field the file has no column for.
 */
export function reportAppended(
  session_id: string,
  { stored, last_id: message_id, session: { ended_at, end_reason }, tip }: Appended,
  events: EventHandler,
): void {
  if (ended_at !== null && message_id !== undefined) {
    const advice = tip !== null && tip !== session_id ? `: the conversation goes on in '${tip}'` : ''
    events({
      level: 'warning',
      type: 'append-to-ended-session',
      message: `A message was stored in session '${session_id}', which has ended (${end_reason ?? 'no reason given'})${advice}.`,
      session_id,
      message_id,
      end_reason,
      tip,
    })
  }
  for (const { values, notStored } of stored) {
    if (!KNOWN_ROLES.has(values.role))
      events({
        level: 'info',
        type: 'unusual-role',
        message: `A message with the role '${values.role}' was stored: providers know system, user, assistant and tool.`,
        role: values.role,
      })
    for (const field of notStored)
      events({
        level: 'warning',
        type: 'field-not-stored',
        message: `Messages have no column for the field '${field}': it was left out. Put it into reasoning_details or structured content to keep it.`,
        field,
      })
  }
}
