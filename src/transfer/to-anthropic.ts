import type { JsonObject, JsonValue } from '../json.ts'
import type { NewMessage } from '../messages/message-types.ts'
import { fromAnthropic, isSameMessage, readMessages } from './anthropic.ts'
import { argumentsValue, checkConversation, withCallIds } from './calls.ts'
import { fittingContent, isError, isTextPart, type TextPart } from './content.ts'
import { type Conversation, type Converted, takePrompt, toTools } from './conversation.ts'
import { isArray, isObject } from './guards.ts'
import { imageUrl, parseDataUrl } from './images.ts'
import { notCarried } from './not-carried.ts'

/** A conversation as the body of a request to Anthropic's Messages API: https://docs.anthropic.com/en/api/messages */
export interface AnthropicConversation {
  model?: string
  system?: string
  /** As the conversation holds them, parsed. */
  tools?: JsonValue
  messages: AnthropicMessage[]
}

/** A message of Anthropic's Messages API; the roles alternate. */
export interface AnthropicMessage {
  role: 'user' | 'assistant'
  content: string | AnthropicBlock[]
}

/** A block of a message that holds what the store has a place for. */
export type AnthropicBlock =
  | AnthropicPart
  | { type: 'thinking'; thinking: string; signature: string }
  | { type: 'redacted_thinking'; data: string }
  | { type: 'tool_use'; id: string; name: string; input: JsonObject }
  | { type: 'tool_result'; tool_use_id: string; content?: string | AnthropicPart[]; is_error?: boolean }

/** A block of content; those of Anthropic's own tools (`server_tool_use`, `web_search_tool_result`, …) pass as well. */
export type AnthropicPart = TextPart | AnthropicImage | AnthropicDocument

/** An image block. */
export type AnthropicImage = {
  type: 'image'
  source:
    | { type: 'url'; url: string }
    | { type: 'base64'; media_type: 'image/jpeg' | 'image/png' | 'image/gif' | 'image/webp'; data: string }
}

/** A document block. */
export type AnthropicDocument = {
  type: 'document'
  source:
    | { type: 'url'; url: string }
    | { type: 'base64'; media_type: 'application/pdf'; data: string }
    | { type: 'text'; media_type: 'text/plain'; data: string }
}

/**
 * Writes a conversation as a request of Anthropic's Messages API: {@link fromAnthropic} the other way round.
 *
 * - `system_prompt`, or a leading system message, is `system`.
 * - `reasoning_details` that are Anthropic's own blocks come back exactly. Reasoning without a signature is not
 *   carried: the API refuses it.
 * - The API demands that roles alternate and that results come first: messages of one role in a row become one, a
 *   message with nothing in it is left out.
 * - Images and the blocks that Anthropic knows stay; of other parts the words.
 * - Calls without an id are given one, and results that name no call the id of the call they answer. Arguments
 *   that are no object are written as `{ arguments: text }`.
 * - A result without a call, and a message of another role (a later system message), is said by the user.
 * - Not carried: `title`, `source`, a tool's name that is not that of its call, `finish_reason`, times and counts.
 *
 * @throws TypeError for messages that are none.
 * @example
 * const { value, not_carried } = toAnthropic({ messages: [{ role: 'user', content: 'Hi' }] })
 */
export function toAnthropic(conversation: Conversation): Converted<AnthropicConversation> {
  checkConversation(conversation)
  const { prompt, messages } = takePrompt(conversation)
  const written: { role: 'user' | 'assistant'; content: AnthropicBlock[] }[] = []
  const read: NewMessage[] = []
  let moved = 0
  for (const message of withCallIds(messages)) {
    const role = message.role === 'assistant' ? 'assistant' : 'user'
    const blocks = writeBlocks(message)
    const last = written.at(-1)
    read.push(...readMessages(role, blocks, 'the conversation', read).slice(0, 1))
    if (blocks.length === 0) moved++
    else if (last?.role === role) moved += join(last.content, blocks)
    else written.push({ role, content: blocks })
  }
  const value = {
    model: conversation.model,
    system: prompt,
    tools: toTools(conversation.tools),
    messages: written.map(({ role, content }) => ({ role, content: textAlone(content) ?? content })),
  }
  const fields = fromAnthropic({ ...value, messages: [] }, 'the conversation')
  return { value, not_carried: notCarried(conversation, { ...fields, messages: read }, moved) }
}

/** Adds the blocks of a message to those before it; returns how many messages lose their place or their bounds. */
function join(before: AnthropicBlock[], blocks: AnthropicBlock[]): number {
  const last = before.at(-1)
  const [first] = blocks
  if (first?.type === 'tool_result') {
    before.splice(before.findLastIndex(({ type }) => type === 'tool_result') + 1, 0, ...blocks)
    return last?.type === 'tool_result' ? 0 : 1
  }
  before.push(...blocks)
  return last && first && isSameMessage(last, first) ? 1 : 0
}

function textAlone(blocks: readonly AnthropicBlock[]): string | undefined {
  const [block] = blocks
  return blocks.length === 1 && block?.type === 'text' && Object.keys(block).length === 2
    ? block.text
    : undefined
}

function writeBlocks(message: NewMessage): AnthropicBlock[] {
  const { role, reasoning_details: details, tool_calls, tool_call_id } = message
  if (role === 'tool' && tool_call_id) return [writeResult(message, tool_call_id)]
  const content = writeContent(message)
  if (role !== 'assistant') return content
  return [
    ...(isArray(details) && details.every(isThinking) ? details : []),
    ...content,
    ...(tool_calls ?? []).map(({ id = '', function: { name, arguments: text } }): AnthropicBlock => {
      const input = argumentsValue(text)
      return { type: 'tool_use', id, name, input: isObject(input) ? input : { arguments: text } }
    }),
  ]
}

function writeResult(message: NewMessage, id: string): AnthropicBlock {
  const parts = isArray(message.content) ? message.content.map(withoutMark) : message.content
  const content = writeContent({ ...message, content: parts })
  return {
    type: 'tool_result',
    tool_use_id: id,
    ...(content.length > 0 && { content: textAlone(content) ?? content }),
    ...(isError(message) && { is_error: true }),
  }
}

function withoutMark(part: JsonValue): JsonValue {
  if (!isObject(part)) return part
  const { is_error: _mark, ...rest } = part
  return rest
}

/** The API refuses a text block without text. */
function writeContent(message: NewMessage): AnthropicPart[] {
  const content = isArray(message.content) ? message.content.map(writeImage) : message.content
  const fitting = fittingContent({ ...message, content }, isPart)
  const parts = typeof fitting === 'string' ? [textPart(fitting)] : fitting
  return parts.filter((part) => part.type !== 'text' || part.text !== '')
}

function textPart(text: string): TextPart {
  return { type: 'text', text }
}

function writeImage(part: JsonValue): JsonValue {
  const url = imageUrl(part)
  if (url === undefined) return part
  if (!url.startsWith('data:')) return { type: 'image', source: { type: 'url', url } }
  const { mediaType, data } = parseDataUrl(url) ?? {}
  return mediaType && IMAGES.has(mediaType)
    ? { type: 'image', source: { type: 'base64', media_type: mediaType, data } }
    : part
}

const IMAGES = new Set(['image/jpeg', 'image/png', 'image/gif', 'image/webp'])

/** Blocks that are content. What they hold is as it was read. */
const PARTS = new Set<JsonValue | undefined>([
  'image',
  'document',
  'search_result',
  'server_tool_use',
  'web_search_tool_result',
  'web_fetch_tool_result',
  'code_execution_tool_result',
  'bash_code_execution_tool_result',
  'text_editor_code_execution_tool_result',
  'tool_search_tool_result',
  'tool_reference',
  'container_upload',
])

function isPart(part: JsonValue): part is AnthropicPart & JsonObject {
  return isTextPart(part) || (isObject(part) && PARTS.has(part.type))
}

function isThinking(
  block: JsonValue,
): block is Extract<AnthropicBlock, { type: 'thinking' | 'redacted_thinking' }> {
  if (!isObject(block)) return false
  return block.type === 'thinking'
    ? typeof block.thinking === 'string' && typeof block.signature === 'string'
    : block.type === 'redacted_thinking' && typeof block.data === 'string'
}
