import type { JsonValue } from '../json.ts'
import type { NewMessage } from '../messages/message-types.ts'
import { contentText } from './content.ts'
import { isArray, isObject, optionalText, parseJson } from './guards.ts'

/** A conversation outside the store: what every chat format is read into and written from. */
export interface Conversation {
  title?: string
  model?: string
  /** Where the conversation took place, if the transcript says so: `cli`, `telegram`, `cron`, … */
  source?: string
  /** The text of a leading system message, which is then not among `messages`. */
  system_prompt?: string
  /** The tools the model was offered, parsed where the transcript holds them as JSON text. */
  tools?: JsonValue
  messages: readonly NewMessage[]
}

/** A conversation read from a transcript: the columns of its session, and its messages in order. */
export interface ImportedConversation extends Conversation {
  source_format: FormatName
  messages: NewMessage[]
}

/** The names of the chat formats that are read and written. */
export type FormatName = 'openai' | 'anthropic' | 'ai-sdk' | 'sharegpt' | 'swe-agent' | 'parts'

/** A conversation in a chat format, and what of it the format has no place for. */
export interface Converted<T> {
  value: T
  not_carried: NotCarried
}

/**
 * How many values of each field a format could not carry: `{ title: 1, 'messages.timestamp': 12 }`. A value counts
 * where it would not come back equal; empty ones (null, `''`, no calls) never do, a list of one text part is the
 * same as its text, and the arguments of a call are the same as other JSON text of the same value.
 *
 * `messages` counts the messages that do not come back as one message in their place: joined with the one before,
 * split, moved, or left out because they are empty.
 */
export type NotCarried = Readonly<Record<string, number>>

/** What a transcript says about its session beside the messages: `title`, `model`, `source` and `tools`. */
export function sessionFields(
  conversation: unknown,
  where: string,
): Pick<Conversation, 'title' | 'model' | 'source' | 'tools'> {
  if (!isObject(conversation)) return {}
  const { title, model, source, tools } = conversation
  return {
    title: optionalText(title, `${where}: title`),
    model: optionalText(model, `${where}: model`),
    source: optionalText(source, `${where}: source`),
    tools: toTools(tools),
  }
}

/** Tools as a value: parsed where they are JSON text, undefined where there are none. */
export function toTools(value: JsonValue | undefined): JsonValue | undefined {
  if (value === null || value === '') return undefined
  return typeof value === 'string' ? (parseJson(value) ?? value) : value
}

/**
 * Takes a leading system message off the messages and makes it the system prompt. One that holds more than
 * text stays a message, as do system messages further on.
 */
export function splitSystemPrompt(
  messages: NewMessage[],
): Pick<ImportedConversation, 'system_prompt' | 'messages'> {
  const [first, ...rest] = messages
  const prompt = first?.role === 'system' || first?.role === 'developer' ? textOf(first.content) : undefined
  return prompt === undefined ? { messages } : { system_prompt: prompt, messages: rest }
}

function textOf(content: NewMessage['content']): string | undefined {
  if (typeof content === 'string') return content
  if (!isArray(content)) return undefined
  const texts = content.map((part) => (isObject(part) && part.type === 'text' ? part.text : undefined))
  return texts.every((text) => typeof text === 'string') ? texts.join('\n') : undefined
}

/**
 * A conversation's system prompt, for formats that have a place for it beside the messages: if it has none, the words
 * of a leading system message, which is then not among the messages.
 */
export function takePrompt({ system_prompt, messages }: Conversation): {
  prompt: string | undefined
  messages: readonly NewMessage[]
} {
  const [first, ...rest] = messages
  const isPrompt = first?.role === 'system' || first?.role === 'developer'
  const prompt = system_prompt || (isPrompt && contentText(first)) || undefined
  return { prompt, messages: system_prompt || !prompt ? messages : rest }
}
