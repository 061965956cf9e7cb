import type { JsonValue } from '../json.ts'
import type { NewMessage } from '../messages/message-types.ts'
import { isArray, isObject, optionalText, parseJson } from './guards.ts'

/** A conversation read from a transcript: the columns of its session, and its messages in order. */
export interface ImportedConversation {
  source_format: 'openai' | 'sharegpt' | 'parts' | 'swe-agent'
  title?: string
  model?: string
  /** Where the conversation took place, if the transcript says so: `cli`, `telegram`, `cron`, … */
  source?: string
  /** The text of a leading system message, which is then not among `messages`. */
  system_prompt?: string
  /** The tools the model was offered, parsed where the transcript holds them as JSON text. */
  tools?: JsonValue
  messages: NewMessage[]
}

/** What a transcript says about its session beside the messages: `title`, `model`, `source` and `tools`. */
export function sessionFields(
  conversation: unknown,
  where: string,
): Pick<ImportedConversation, 'title' | 'model' | 'source' | 'tools'> {
  if (!isObject(conversation)) return {}
  const { title, model, source, tools } = conversation
  return {
    title: optionalText(title, `${where}: title`),
    model: optionalText(model, `${where}: model`),
    source: optionalText(source, `${where}: source`),
    tools: toTools(tools),
  }
}

function toTools(value: JsonValue | undefined): JsonValue | undefined {
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
