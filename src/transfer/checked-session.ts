import type { ZodError, ZodType } from 'zod'
import { checkId, checkTime } from '../arguments.ts'
import type { SessionRow } from '../database/schema.ts'
import { toJson } from '../json.ts'
import { type CheckedMessage, checkMessage } from '../messages/message-values.ts'
import { fromJsonText } from '../messages/structured-content.ts'
import { type Counts, count } from './counts.ts'
import { isArray, parseJson } from './guards.ts'
import { type ImportedSession, messagesSchema, SESSION_COLUMNS, sessionSchema } from './records.ts'

/** A session as its row is written. */
export interface CheckedSession {
  /** Counters that it came without are null. */
  row: SessionRow
  messages: CheckedMessage[]
  /** Whether more of its messages follow. */
  more: boolean
}

/** A record of messages, checked. */
export type CheckedMessages = Pick<CheckedSession, 'messages' | 'more'> & { session_id: string }

const RECORD_FIELDS = new Set<string>([...SESSION_COLUMNS, 'type', 'messages', 'more', 'raw'])

/** What an import goes by. */
export interface Checking {
  /** Whether the file it goes to has the tables of the additions. */
  additions: boolean
  /** Gets what could not be carried. */
  notCarried: Counts
  /** Those of the session so far. */
  clientIds: Set<string>
}

/** @throws TypeError naming the field and what it must be. */
export function checkSessionRecord(record: unknown, checking: Checking): CheckedSession {
  if (!isValid(record, sessionSchema)) throw problemOf(record, sessionSchema)
  const { raw, model_config } = record
  const row: SessionRow = {
    id: checkId(record.id, 'id'),
    source: record.source,
    user_id: record.user_id ?? null,
    model: record.model ?? null,
    model_config: raw?.model_config ?? (model_config ? toJson(model_config, 'model_config') : null),
    system_prompt: record.system_prompt ?? null,
    parent_session_id: record.parent_session_id ?? null,
    started_at: checkTime(record.started_at, 'started_at'),
    ended_at: record.ended_at ?? null,
    end_reason: record.end_reason ?? null,
    title: record.title ?? null,
    message_count: record.message_count ?? null,
    tool_call_count: record.tool_call_count ?? null,
    input_tokens: record.input_tokens ?? 0,
    output_tokens: record.output_tokens ?? 0,
    cache_read_tokens: record.cache_read_tokens ?? 0,
    cache_write_tokens: record.cache_write_tokens ?? 0,
    reasoning_tokens: record.reasoning_tokens ?? 0,
    billing_provider: record.billing_provider ?? null,
    billing_base_url: record.billing_base_url ?? null,
    billing_mode: record.billing_mode ?? null,
    estimated_cost_usd: record.estimated_cost_usd ?? null,
    actual_cost_usd: record.actual_cost_usd ?? null,
    cost_status: record.cost_status ?? null,
    cost_source: record.cost_source ?? null,
    pricing_version: record.pricing_version ?? null,
  }
  const messages = checkMessages(row.id, record.messages, checking)
  for (const [name, value] of Object.entries(record))
    if (!RECORD_FIELDS.has(name) && value) count(checking.notCarried, name)
  return { row, messages, more: record.more ?? false }
}

/** @throws TypeError naming the field and what it must be. */
export function checkMessagesRecord(record: unknown, checking: Checking): CheckedMessages {
  if (!isValid(record, messagesSchema)) throw problemOf(record, messagesSchema)
  const { session_id, messages, more = false } = record
  return { session_id, messages: checkMessages(session_id, messages, checking), more }
}

function checkMessages(
  session_id: string,
  messages: ImportedSession['messages'],
  { additions, notCarried, clientIds }: Checking,
): CheckedMessage[] {
  const checked: CheckedMessage[] = []
  for (const [index, { raw, inactive, ...fields }] of messages.entries()) {
    const path = `messages[${index}]`
    // Schema 6 has no place for what is not part of the conversation any more.
    if (inactive) {
      count(notCarried, 'messages.inactive')
      continue
    }
    if (!additions && fields.client_id) {
      count(notCarried, 'messages.client_id')
      fields.client_id = null
    }
    // Where there is a text, its value is for readers of the bundle.
    for (const column of Object.keys(raw ?? {})) delete fields[column]
    const message = checkMessage(session_id, fields, path, additions)
    const { content, ...texts } = raw ?? {}
    Object.assign(message.values, texts)
    if (texts.tool_calls !== undefined) {
      const calls = parseJson(texts.tool_calls)
      message.toolCalls = isArray(calls) ? calls.length : 0
    }
    if (content !== undefined) {
      const stored = fromJsonText(content, `${path}.raw.content`, additions)
      message.values.content = stored.content
      message.structured = stored.structured
    }
    const { client_id } = message
    if (client_id !== null) {
      if (clientIds.has(client_id))
        throw new TypeError(`${path}.client_id is that of an earlier message: give each message its own.`)
      clientIds.add(client_id)
    }
    for (const name of message.notStored) count(notCarried, `messages.${name}`)
    checked.push(message)
  }
  return checked
}

/** Whether it is of this form: the value itself is used then, for what a schema returns is a copy of it. */
function isValid<T>(value: unknown, schema: ZodType<unknown, T>): value is T {
  return schema.safeParse(value).success
}

function problemOf(value: unknown, schema: ZodType): TypeError {
  const { error } = schema.safeParse(value)
  return new TypeError(error ? sentence(error) : 'It is not of the form that is expected.')
}

/** The first problem as `messages[3].timestamp: Invalid input: expected number, received string.` */
function sentence({ issues: [issue] }: ZodError): string {
  if (!issue) return 'It is not of the form that is expected.'
  const path = issue.path.map((key) => (typeof key === 'number' ? `[${key}]` : `.${String(key)}`)).join('')
  return `${path.replace(/^\./, '') || 'The record'}: ${issue.message}.`
}
