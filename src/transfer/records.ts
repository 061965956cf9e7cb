import { z } from 'zod'
import type { JsonValue } from '../json.ts'
import type { Inactive, NewMessage, ToolCall } from '../messages/message-types.ts'
import type { Session } from '../sessions/session-types.ts'

/** The version of the bundle's form that this package writes. It reads this one and those before it. */
export const BUNDLE_VERSION = 1

/** The columns of a message that hold JSON. */
export const MESSAGE_JSON = ['content', 'tool_calls', 'reasoning_details', 'codex_reasoning_items'] as const
export type MessageJson = (typeof MESSAGE_JSON)[number]

/** A message in a bundle: what is null is left out. */
export interface MessageRecord extends Omit<NewMessage, 'timestamp'> {
  /** The id it had. Imported messages get new ones, in the same order. */
  id?: number
  /** Seconds since 1970. */
  timestamp: number
  /** Set where a later Hermes version has taken the message back or summarised it away. */
  inactive?: Inactive
  /** The text of a JSON column as it is stored, where it is broken or its value would lose something of it. */
  raw?: { [Column in MessageJson]?: string }
}

/** A session in a bundle: every column of its row, and its messages in order. */
export interface SessionRecord extends Session {
  type: 'session'
  messages: MessageRecord[]
  /** Records of type `messages` follow with more of its messages. */
  more?: true
  raw?: { model_config?: string }
}

/** More messages of the session before it. */
export interface MessagesRecord {
  type: 'messages'
  session_id: string
  messages: MessageRecord[]
  more?: true
}

/** The first record of a bundle. */
export interface HeaderRecord {
  type: 'header'
  format: 'hermes-state'
  version: number
  /** Seconds since 1970. */
  exported_at: number
  /** Of the file it was exported from. */
  schema_version: number | null
  /** What follows. */
  sessions: number
  messages: number
}

/** The last record of a bundle: without it, the bundle is cut off. */
export interface EndRecord {
  type: 'end'
  sessions: number
  messages: number
  /** SHA-256, in hexadecimal, of all lines before it with their line feeds, in UTF-8. */
  sha256: string
}

/** A line of a bundle. */
export type BundleRecord = HeaderRecord | SessionRecord | MessagesRecord | EndRecord

const text = z.string().nullish()
const count = z.int().nullish()
const time = z.number()
const dollars = z.number().nullish()
const json: z.ZodType<JsonValue, JsonValue> = z.any()
// Providers have their own fields, and what was stored once comes back.
const call: z.ZodType<ToolCall, ToolCall> = z.any().meta({ type: 'object' })

const message = z
  .looseObject({
    id: z.int().optional().meta({ description: 'The id it had: imported messages get new ones.' }),
    role: z.string().min(1),
    content: z.union([z.string(), z.array(json), z.record(z.string(), json)]).nullish(),
    tool_call_id: text,
    tool_calls: z.array(call).nullish(),
    tool_name: text,
    timestamp: time.meta({ description: 'Seconds since 1970.' }),
    token_count: count,
    finish_reason: text,
    reasoning: text,
    reasoning_details: json.optional(),
    codex_reasoning_items: json.optional(),
    client_id: text,
    inactive: z.enum(['undone', 'compacted']).optional(),
    raw: z
      .strictObject({
        content: z.string().optional(),
        tool_calls: z.string().optional(),
        reasoning_details: z.string().optional(),
        codex_reasoning_items: z.string().optional(),
      } satisfies Record<MessageJson, z.ZodType>)
      .optional()
      .meta({ description: 'JSON columns as they are stored, where their value would lose something.' }),
  } satisfies Record<keyof MessageRecord, z.ZodType>)
  .meta({ id: 'message' })

const columns = {
  id: z.string().min(1),
  source: z.string().min(1),
  user_id: text,
  model: text,
  model_config: z.record(z.string(), json).nullish(),
  system_prompt: text,
  parent_session_id: text,
  started_at: time.meta({ description: 'Seconds since 1970.' }),
  ended_at: time.nullish(),
  end_reason: text,
  title: text,
  message_count: count,
  tool_call_count: count,
  input_tokens: count,
  output_tokens: count,
  cache_read_tokens: count,
  cache_write_tokens: count,
  reasoning_tokens: count,
  billing_provider: text,
  billing_base_url: text,
  billing_mode: text,
  estimated_cost_usd: dollars,
  actual_cost_usd: dollars,
  cost_status: text,
  cost_source: text,
  pricing_version: text,
} satisfies Record<keyof Session, z.ZodType>

/** The names of a session's columns. */
export const SESSION_COLUMNS = Object.keys(columns) as (keyof Session)[]

const more = z.literal(true).optional()

export const headerSchema = z.looseObject({
  type: z.literal('header'),
  format: z.literal('hermes-state'),
  version: z.int().min(1).max(BUNDLE_VERSION),
  exported_at: time,
  schema_version: z.int().nullable(),
  sessions: z.int().min(0),
  messages: z.int().min(0),
} satisfies Record<keyof HeaderRecord, z.ZodType>)

export const sessionSchema = z.looseObject({
  ...columns,
  type: z.literal('session').optional(),
  messages: z.array(message),
  more,
  raw: z.strictObject({ model_config: z.string().optional() }).optional(),
} satisfies Record<keyof SessionRecord, z.ZodType>)

export const messagesSchema = z.looseObject({
  type: z.literal('messages'),
  session_id: z.string().min(1),
  messages: z.array(message),
  more,
} satisfies Record<keyof MessagesRecord, z.ZodType>)

export const endSchema = z.looseObject({
  type: z.literal('end'),
  sessions: z.int().min(0),
  messages: z.int().min(0),
  sha256: z.string().regex(/^[0-9a-f]{64}$/),
} satisfies Record<keyof EndRecord, z.ZodType>)

/** A session as it can be imported: of its columns only `id`, `source` and `started_at` must be there. */
export type ImportedSession = z.input<typeof sessionSchema>

/** The JSON Schema of a line of a bundle, as it can be imported. */
export function bundleSchema(): object {
  const record = z.union([headerSchema, sessionSchema, messagesSchema, endSchema])
  return z.toJSONSchema(record.meta({ title: 'A line of a hermes-state bundle' }), { io: 'input' })
}
