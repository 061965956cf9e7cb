import {
  checkId,
  checkObject,
  checkOptionalCount,
  checkOptionalText,
  checkTime,
  checkWord,
  now,
} from '../arguments.ts'
import type { NewMessageRow } from '../database/schema.ts'
import { UnsupportedSchemaError } from '../errors.ts'
import { type JsonText, type JsonValue, toJson } from '../json.ts'
import type { NewMessage, ToolCall } from './message-types.ts'
import { type StoredContent, toStoredContent } from './structured-content.ts'

/** A message as its INSERT takes it, checked and serialised before any transaction begins. */
export type MessageValues = Required<Omit<NewMessageRow, 'id'>>

export interface CheckedMessage extends Pick<StoredContent, 'structured'> {
  values: MessageValues
  client_id: string | null
  /** How many calls the message adds to the session's tool_call_count. */
  toolCalls: number
  /** Fields of the message that the file has no column for. */
  notStored: string[]
}

const FIELDS = new Set<string>([
  'client_id',
  'role',
  'content',
  'tool_call_id',
  'tool_calls',
  'tool_name',
  'timestamp',
  'token_count',
  'finish_reason',
  'reasoning',
  'reasoning_details',
  'codex_reasoning_items',
  // Of a message that was read from the store: a copy gets its own.
  'id',
  'session_id',
] satisfies (keyof NewMessage | 'id' | 'session_id')[])

/**
 * @throws TypeError naming the field and what it must be.
 * @throws UnsupportedSchemaError for a client id in a file that has no place for it.
 */
export function checkMessage(
  session_id: string,
  message: NewMessage,
  path: string,
  additions: boolean,
): CheckedMessage {
  const fields = checkObject(message, path)
  const calls = checkToolCalls(fields.tool_calls, `${path}.tool_calls`)
  const { content, structured } = toStoredContent(fields.content, `${path}.content`, additions)
  return {
    // Written out: a spread would cost more than everything else here, once for each message.
    values: {
      session_id,
      role: checkWord(fields.role, `${path}.role`),
      content,
      tool_call_id: checkOptionalText(fields.tool_call_id, `${path}.tool_call_id`),
      tool_calls: calls && calls.length > 0 ? toJson(calls, `${path}.tool_calls`) : null,
      tool_name: checkOptionalText(fields.tool_name, `${path}.tool_name`),
      timestamp: fields.timestamp === undefined ? now() : checkTime(fields.timestamp, `${path}.timestamp`),
      token_count: checkOptionalCount(fields.token_count, `${path}.token_count`),
      finish_reason: checkOptionalText(fields.finish_reason, `${path}.finish_reason`),
      reasoning: checkOptionalText(fields.reasoning, `${path}.reasoning`),
      reasoning_details: optionalJson(message.reasoning_details, `${path}.reasoning_details`),
      codex_reasoning_items: optionalJson(message.codex_reasoning_items, `${path}.codex_reasoning_items`),
    },
    client_id: checkClientId(fields.client_id, `${path}.client_id`, additions),
    structured,
    toolCalls: calls?.length ?? 0,
    notStored: Object.keys(fields).filter((name) => !FIELDS.has(name) && !isEmpty(fields[name])),
  }
}

function checkClientId(value: unknown, path: string, additions: boolean): string | null {
  if (value === undefined || value === null) return null
  const client_id = checkId(value, path)
  if (!additions)
    throw new UnsupportedSchemaError(
      `${path} is kept in a table that this file does not have, or that its later Hermes schema does not keep up: open a file of schema 6 with additions: true, or leave it out. Nothing was written.`,
    )
  return client_id
}

function checkToolCalls(value: unknown, path: string): ToolCall[] | undefined {
  if (value === undefined || value === null) return undefined
  if (!Array.isArray(value))
    throw new TypeError(
      `${path} must be an array of calls such as {id, type, function: {name, arguments}}; parse it first if it is JSON text.`,
    )
  for (const [index, call] of value.entries()) checkObject(call, `${path}[${index}]`)
  return value
}

function optionalJson(value: JsonValue | undefined, path: string): JsonText<JsonValue> | null {
  return value === undefined || value === null ? null : toJson(value, path)
}

/** Whether leaving the value out loses nothing: providers' messages carry `refusal: null`, `annotations: []`. */
function isEmpty(value: unknown): boolean {
  return value === undefined || value === null || value === '' || (Array.isArray(value) && value.length === 0)
}
