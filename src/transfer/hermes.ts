import type { JsonObject, JsonValue } from '../json.ts'
import type { Inactive, Message, ToolCall } from '../messages/message-types.ts'
import { fromStoredContent, MARKER, storedJson, toStoredContent } from '../messages/structured-content.ts'
import type { Session } from '../sessions/session-types.ts'
import type { Converted } from './conversation.ts'
import { type Counts, count } from './counts.ts'
import { checkJsonArray, checkJsonObject } from './guards.ts'
import type { MessageRecord, SessionRecord } from './records.ts'

/** A session as `hermes sessions export` writes it, one on each line: the columns of its row, and `messages`. */
export interface HermesSession extends Omit<Session, 'model_config'> {
  /** JSON text. */
  model_config: string | null
  messages: HermesMessage[]
}

export interface HermesMessage extends Omit<Message, 'tool_calls' | 'inactive'> {
  /** Text where what is stored is no list of calls. */
  tool_calls: readonly ToolCall[] | string | null
  /** 0 where it was taken back. */
  active?: 0
  /** 1 where it was summarised away. */
  compacted?: 1
}

/** JSON columns of messages; Hermes writes some as text and some as values, its versions not the same ones. */
const JSON_COLUMNS = ['tool_calls', 'reasoning_details', 'codex_reasoning_items'] as const

/** Whether a value is a session of `hermes sessions export`; OpenAI conversations have messages, too. */
export function isHermesSession(value: unknown): boolean {
  return (
    typeof value === 'object' &&
    value !== null &&
    'id' in value &&
    'source' in value &&
    'started_at' in value &&
    'messages' in value
  )
}

/**
 * Reads a session of `hermes sessions export`, of any version up to 26, as a record to import.
 *
 * - JSON columns may be text or values; text is kept as it is, also where it is broken.
 * - Content that begins with NUL and `json:` is structured content.
 * - Messages with `active: 0` were taken back, those with `compacted: 1` summarised away.
 * - Other fields have no place in schema 6: the import counts them in `not_carried`.
 *
 * @param where names the session in errors, for instance `sessions.jsonl, line 3`.
 * @throws TypeError where it is no session.
 */
export function fromHermes(value: unknown, where: string): JsonObject {
  const { model_config, messages, ...columns } = checkJsonObject(value, where, 'a session with its messages')
  const config = typeof model_config === 'string' ? { raw: { model_config } } : { model_config }
  return {
    ...columns,
    ...config,
    type: 'session',
    messages: checkJsonArray(messages, `${where}: messages`, 'an array').map((message, index) =>
      toRecord(message, `${where}: messages[${index}]`),
    ),
  }
}

function toRecord(value: JsonValue, where: string): JsonObject {
  const { active, compacted, content, ...fields } = checkJsonObject(value, where, 'an object')
  const raw: Record<string, string> = {}
  const record: Record<string, JsonValue | undefined> = { ...fields, content }
  const json = typeof content === 'string' ? storedJson(content, null) : null
  // Broken content is text, as where it is read from a file.
  if (json !== null && fromStoredContent(null, json) !== undefined) {
    raw.content = json
    delete record.content
  }
  for (const column of JSON_COLUMNS) {
    const text = fields[column]
    if (typeof text !== 'string') continue
    raw[column] = text
    delete record[column]
  }
  // What a flag says by 0 is nothing to carry.
  for (const [name, field] of Object.entries(fields))
    if (field === 0 && name !== 'timestamp' && name !== 'token_count') delete record[name]
  if (Object.keys(raw).length > 0) record.raw = raw
  if (compacted === 1) record.inactive = 'compacted' satisfies Inactive
  else if (active === 0) record.inactive = 'undone' satisfies Inactive
  return record
}

/**
 * Writes a session as `hermes sessions export` does: `model_config` as text, the JSON of messages as values, or as text
 * where the value would lose something of what is stored. Only client ids are not carried.
 */
export function toHermes(session: SessionRecord): Converted<HermesSession> {
  const { type: _, more: _more, raw, messages, model_config, ...columns } = session
  const not_carried: Counts = {}
  for (const { client_id } of messages) if (client_id) count(not_carried, 'messages.client_id')
  const value = {
    ...columns,
    model_config: raw?.model_config ?? (model_config ? JSON.stringify(model_config) : null),
    messages: messages.map((message) => toHermesMessage(session.id, message)),
  }
  return { value, not_carried }
}

function toHermesMessage(session_id: string, message: MessageRecord): HermesMessage {
  const { raw, inactive, client_id: _, content: _content, ...fields } = message
  return {
    id: fields.id ?? 0,
    session_id,
    role: fields.role,
    content: contentOf(message),
    tool_call_id: fields.tool_call_id ?? null,
    tool_calls: raw?.tool_calls ?? fields.tool_calls ?? null,
    tool_name: fields.tool_name ?? null,
    timestamp: fields.timestamp,
    token_count: fields.token_count ?? null,
    finish_reason: fields.finish_reason ?? null,
    reasoning: fields.reasoning ?? null,
    reasoning_details: raw?.reasoning_details ?? asValue(fields.reasoning_details),
    codex_reasoning_items: raw?.codex_reasoning_items ?? asValue(fields.codex_reasoning_items),
    ...(inactive === 'undone' && { active: 0 }),
    ...(inactive === 'compacted' && { compacted: 1 }),
  }
}

/** Content as a value, but for what Hermes would not store the same. */
function contentOf({ raw, content = null }: MessageRecord): HermesMessage['content'] {
  if (raw?.content !== undefined) return MARKER + raw.content
  // Text that begins like structured content must not be taken for it.
  return typeof content === 'string' ? toStoredContent(content, 'content', false).content : content
}

/** A text as JSON text, which a text in such a column is taken for. */
function asValue(value: JsonValue | undefined): JsonValue {
  return typeof value === 'string' ? JSON.stringify(value) : (value ?? null)
}
