import { text } from '../database/cells.ts'
import type { Connection } from '../database/connection.ts'
import { build, fixedQuery, type Param } from '../database/fixed-query.ts'
import type { EventHandler } from '../events.ts'
import { isTooDeep, toJson } from '../json.ts'
import { type StoredMessage, toMessage } from '../messages/message-row.ts'
import type { Message } from '../messages/message-types.ts'
import { MESSAGE_COLUMNS } from '../messages/read.ts'
import { storedJson } from '../messages/structured-content.ts'
import { sessionById, toSession, WHOLE_COLUMNS } from '../sessions/session-row.ts'
import { isObject } from './guards.ts'
import { MESSAGE_JSON, type MessageJson, type MessageRecord, type SessionRecord } from './records.ts'

const sessionsAfter = fixedQuery((param: Param<{ id: string; limit: number }>) =>
  build
    .selectFrom('all_sessions as sessions')
    .select(WHOLE_COLUMNS)
    .where('id', '>', param('id'))
    .orderBy('id')
    .limit(param('limit')),
)

const messagesAfter = fixedQuery((param: Param<{ session_id: string; id: number; limit: number }>) =>
  build
    .selectFrom('all_messages as messages')
    .leftJoin('hs_structured_content as structured', 'structured.message_id', 'messages.id')
    .leftJoin('hs_client_ids as known', (join) =>
      join
        .onRef('known.message_id', '=', 'messages.id')
        .onRef('known.session_id', '=', 'messages.session_id'),
    )
    .select(MESSAGE_COLUMNS)
    .select('known.client_id')
    .where('messages.session_id', '=', param('session_id'))
    .where('messages.id', '>', param('id'))
    .orderBy('messages.id')
    .limit(param('limit')),
)

/** A session of an export, its messages still to come. */
export type SessionHead = Omit<SessionRecord, 'messages' | 'more'>

/** The sessions after an id, in order of id. */
export function readSessions(
  connection: Connection,
  after: string,
  limit: number,
  events: EventHandler,
): SessionHead[] {
  return connection.all(sessionsAfter, { id: after, limit }).map((row) => toHead(connection, row, events))
}

/** A session by its id. */
export function readSession(
  connection: Connection,
  id: string,
  events: EventHandler,
): SessionHead | undefined {
  const row = connection.get(sessionById, { id })
  return row && toHead(connection, row, events)
}

/** The messages of a session after an id, also those that Hermes has taken back, in order. */
export function readMessages(
  connection: Connection,
  session_id: string,
  after: number,
  limit: number,
  events: EventHandler,
): MessageRecord[] {
  return connection
    .all(messagesAfter, { session_id, id: after, limit })
    .map((row) => toMessageRecord(row, events))
}

function toHead(
  connection: Connection,
  row: Parameters<typeof toSession>[1],
  events: EventHandler,
): SessionHead {
  const head: SessionHead = { type: 'session', ...toSession(connection, row, events) }
  const model_config = text(row.model_config)
  // A list or a number reads as null.
  if (model_config !== null && (head.model_config === null || lossy(model_config) !== undefined))
    head.raw = { model_config }
  if (isTooDeep(head.model_config)) head.model_config = null
  return head
}

function toMessageRecord(
  row: StoredMessage & { client_id: string | null },
  events: EventHandler,
): MessageRecord {
  const { session_id: _, inactive, ...message } = toMessage(row, events)
  const record: MessageRecord = { role: message.role, timestamp: message.timestamp }
  const fields: [string, unknown][] = Object.entries(message)
  for (const [name, value] of fields) if (value !== null) Object.assign(record, { [name]: value })
  if (row.client_id !== null) record.client_id = row.client_id
  if (inactive) record.inactive = inactive
  const raw = rawOf(row, message)
  if (raw) record.raw = raw
  // JSON.stringify would run out of stack.
  for (const column of MESSAGE_JSON) if (raw?.[column] && isTooDeep(record[column])) delete record[column]
  return record
}

function rawOf(row: StoredMessage, message: Pick<Message, 'content' | 'tool_calls'>): MessageRecord['raw'] {
  let raw: MessageRecord['raw']
  const keep = (column: MessageJson, json: string | null) => {
    const text = lossy(json)
    if (text !== undefined) raw = { ...raw, [column]: text }
  }
  // Broken content reads as its text, which is all there is.
  if (message.content !== text(row.content)) {
    const json = storedJson(text(row.content), row.structured)
    // Half a character stays one only within JSON.
    if (json !== null && typeof message.content === 'string' && !message.content.isWellFormed())
      raw = { content: json }
    else keep('content', json)
  }
  const calls = text(row.tool_calls)
  // An object reads as no calls, a list may hold what is none, and one without calls is not stored.
  if (calls !== null && !(message.tool_calls?.length && message.tool_calls.every(isObject)))
    raw = { ...raw, tool_calls: calls }
  else keep('tool_calls', calls)
  keep('reasoning_details', text(row.reasoning_details))
  keep('codex_reasoning_items', text(row.codex_reasoning_items))
  return raw
}

/**
 * A JSON text whose value would not bring it back, white space and escapes aside: broken, `1.0`, `1e400`, a key twice;
 * `null`, which is left out; and what is not taken as a value: integers from 2^53 on, more than 900 levels.
 */
function lossy(json: string | null): string | undefined {
  if (json === null) return undefined
  try {
    const value: unknown = JSON.parse(json)
    const again = toJson(value, 'It')
    return value !== null && (again === json || again === compact(json)) ? undefined : json
  } catch {
    return json
  }
}

function compact(json: string): string {
  return json.replaceAll(/"(?:[^"\\]|\\.)*"|\s+/g, (part) =>
    part.startsWith('"') ? JSON.stringify(JSON.parse(part)) : '',
  )
}
