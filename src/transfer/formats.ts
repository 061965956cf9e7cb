import type { JsonValue } from '../json.ts'
import { fromAiSdk } from './ai-sdk.ts'
import { fromAnthropic } from './anthropic.ts'
import type { Conversation, Converted, FormatName, ImportedConversation } from './conversation.ts'
import { isArray, isObject } from './guards.ts'
import { fromOpenAi } from './openai.ts'
import { fromParts } from './parts.ts'
import { fromShareGpt, toShareGpt } from './sharegpt.ts'
import { fromSweAgent, toSweAgent } from './swe-agent.ts'
import { toAiSdk } from './to-ai-sdk.ts'
import { toAnthropic } from './to-anthropic.ts'
import { toOpenAi } from './to-openai.ts'
import { toParts } from './to-parts.ts'

/** How a chat format is read and written. */
export interface ChatFormat {
  from(value: unknown, where: string): ImportedConversation
  to(conversation: Conversation): Converted<object>
}

/** The chat formats by name. */
export const FORMATS: Readonly<Record<FormatName, ChatFormat>> = {
  openai: { from: fromOpenAi, to: toOpenAi },
  anthropic: { from: fromAnthropic, to: toAnthropic },
  'ai-sdk': { from: fromAiSdk, to: toAiSdk },
  sharegpt: { from: fromShareGpt, to: toShareGpt },
  'swe-agent': { from: fromSweAgent, to: toSweAgent },
  parts: { from: fromParts, to: toParts },
}

/** The format of a conversation by what is in it, or undefined if it is none. */
export function formatOf(value: JsonValue): FormatName | undefined {
  if (isObject(value)) {
    if (isArray(value.history)) return 'swe-agent'
    if (isArray(value.conversations)) return 'sharegpt'
  }
  const messages = isObject(value) ? value.messages : value
  if (!isArray(messages)) return undefined
  if (messages.some((message) => isObject(message) && isArray(message.parts))) return 'ai-sdk'
  const parts = messages.flatMap((message) =>
    isObject(message) && isArray(message.content) ? message.content : [],
  )
  // Parts of other formats have no `value`.
  if (parts.some((part) => isObject(part) && typeof part.value === 'string')) return 'parts'
  const isAnthropic = (isObject(value) && value.system !== undefined) || parts.some(isAnthropicBlock)
  return isAnthropic ? 'anthropic' : 'openai'
}

const ANTHROPIC_BLOCKS = new Set<JsonValue | undefined>([
  'thinking',
  'redacted_thinking',
  'tool_use',
  'tool_result',
  'image',
  'document',
])

function isAnthropicBlock(part: JsonValue): boolean {
  return isObject(part) && ANTHROPIC_BLOCKS.has(part.type)
}
