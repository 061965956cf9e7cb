import type { JsonArray, JsonObject, JsonValue } from '../json.ts'

/** The roles of the OpenAI wire format. Any other non-empty string is stored too, with an event. */
export type Role = 'system' | 'user' | 'assistant' | 'tool' | (string & {})

/** A call of a tool, as OpenAI's chat completions write it; further fields are kept. `arguments` is JSON text. */
export interface ToolCall {
  readonly id?: string
  readonly type?: string
  readonly function: { readonly name: string; readonly arguments: string }
}

/** Plain text, or structured content: an array of parts or an object. */
export type MessageContent = string | JsonArray | JsonObject

/**
 * A message to store. What `messages.list()` and `messages.conversation()` return is one too: copying a
 * conversation is reading it and appending it. A lone surrogate in text is stored as U+FFFD: SQLite's own
 * tools and Python cannot read a file with half a character in it.
 */
export interface NewMessage {
  role: Role
  /**
   * A name for the message, chosen by who sends it and unique in its session. An append that is sent again with the
   * same one stores nothing and returns the id of the first. It is not read back. Needs the additions.
   */
  client_id?: string | null
  content?: MessageContent | null
  /** On a tool result: the id of the call it answers. */
  tool_call_id?: string | null
  /** On a tool result: the name of the tool. */
  tool_name?: string | null
  /** On an assistant message: the calls it makes. An empty array is stored as none. */
  tool_calls?: readonly ToolCall[] | null
  /** Seconds since 1970. Default: now. */
  timestamp?: number
  /** Tokens of this message. */
  token_count?: number | null
  /** Why the model stopped. */
  finish_reason?: string | null
  /** The thinking as plain text. */
  reasoning?: string | null
  /** Reasoning blocks as the provider sent them; they come back exactly. */
  reasoning_details?: JsonValue
  codex_reasoning_items?: JsonValue
}

/**
 * Why a message is no longer part of its conversation, in files of later Hermes versions: the turn was taken back,
 * or summarised away.
 */
export type Inactive = 'undone' | 'compacted'

/** A stored message, its JSON columns parsed. */
export interface Message {
  /** Never reused; the order of the conversation. */
  id: number
  session_id: string
  role: Role
  content: MessageContent | null
  tool_call_id: string | null
  /** `[]` where the stored JSON is broken. */
  tool_calls: ToolCall[] | null
  tool_name: string | null
  /** Seconds since 1970. */
  timestamp: number
  token_count: number | null
  finish_reason: string | null
  reasoning: string | null
  reasoning_details: JsonValue
  codex_reasoning_items: JsonValue
  /** Set where the message is not part of the conversation any more. */
  inactive?: Inactive
}

/**
 * A message as a provider wants it back: `{ role, content }`, with the tool fields where present, and on
 * assistant messages the reasoning fields and `finish_reason` where present.
 */
export interface ConversationMessage {
  role: Role
  content: MessageContent | null
  tool_call_id?: string
  tool_name?: string
  tool_calls?: ToolCall[]
  finish_reason?: string
  reasoning?: string
  reasoning_details?: JsonValue
  codex_reasoning_items?: JsonValue
}
