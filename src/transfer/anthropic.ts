import { checkText, checkWord } from '../arguments.ts'
import type { JsonArray, JsonObject, JsonValue } from '../json.ts'
import type { MessageContent, NewMessage, ToolCall } from '../messages/message-types.ts'
import { argumentsText, nameOfCall } from './calls.ts'
import { isTextPart, plainText } from './content.ts'
import { type ImportedConversation, sessionFields } from './conversation.ts'
import { checkJsonArray, checkJsonObject, isArray, isObject } from './guards.ts'
import { imagePart } from './images.ts'

/**
 * Reads a conversation of Anthropic's Messages API: `{ messages, system?, model?, tools?, title?, source? }`, or the
 * array of messages alone. https://docs.anthropic.com/en/api/messages
 *
 * - `system`, text or text blocks, becomes `system_prompt`.
 * - `thinking` and `redacted_thinking` blocks are kept whole in `reasoning_details`, for their signatures; the
 *   text of the former is `reasoning` too, joined by newlines.
 * - `tool_use` blocks become `tool_calls`, their `input` as JSON text.
 * - A `tool_result` becomes a tool message with the name of the call it answers. `is_error` becomes a mark on the
 *   first part of its content.
 * - Of the other blocks, one of text alone becomes text, more become a list. Images become OpenAI's
 *   `image_url` parts where these say as much; documents, searches and other blocks stay as they are.
 * - A message whose blocks have another order than thinking, content, calls becomes several: {@link toAnthropic}
 *   puts them together again.
 *
 * Other fields are left out: `cache_control` on the system prompt, on calls and on results, and what a response
 * says about itself (`id`, `usage`, `stop_reason`).
 *
 * @param where names the conversation in errors, for instance `chats.json, conversation 3`.
 * @throws TypeError naming the message and what it must be.
 */
export function fromAnthropic(conversation: unknown, where: string): ImportedConversation {
  const values = checkJsonArray(
    isObject(conversation) ? conversation.messages : conversation,
    where,
    'an array of Anthropic messages, or an object with such an array in messages',
  )
  const messages: NewMessage[] = []
  for (const [index, value] of values.entries()) {
    const at = `${where}, message ${index + 1}`
    const message = checkJsonObject(value, at, 'an object such as {role, content}')
    messages.push(...readMessages(checkWord(message.role, `${at}: role`), message.content, at, messages))
  }
  return {
    source_format: 'anthropic',
    ...sessionFields(conversation, where),
    system_prompt: isObject(conversation) ? readSystem(conversation.system, where) : undefined,
    messages,
  }
}

/** The messages that one of Anthropic's becomes; `earlier` holds the calls that its results may answer. */
export function readMessages(
  role: string,
  content: unknown,
  where: string,
  earlier: readonly NewMessage[],
): NewMessage[] {
  if (typeof content === 'string') return [{ role, content }]
  const groups: JsonObject[][] = []
  const blocks = checkJsonArray(content, `${where}: content`, 'text or an array of blocks such as {type}')
  for (const [index, item] of blocks.entries()) {
    const block = checkJsonObject(item, `${where}: content[${index}]`, 'a block such as {type}')
    const group = groups.at(-1)
    const last = group?.at(-1)
    if (group && last && isSameMessage(last, block)) group.push(block)
    else groups.push([block])
  }
  if (groups.length === 0) return [{ role, content: null }]
  return groups.map((group) => readGroup(role, group, where, earlier))
}

/** Whether a block is read into the same message as the one before it. */
export function isSameMessage(last: JsonObject, block: JsonObject): boolean {
  return last.type !== 'tool_result' && stageOf(block) >= stageOf(last)
}

function stageOf({ type }: JsonObject): number {
  if (type === 'tool_result') return -1
  if (type === 'thinking' || type === 'redacted_thinking') return 0
  return type === 'tool_use' ? 2 : 1
}

function readGroup(
  role: string,
  blocks: readonly JsonObject[],
  where: string,
  earlier: readonly NewMessage[],
): NewMessage {
  const [first] = blocks
  if (first?.type === 'tool_result') return readResult(first, where, earlier)
  const thinking = blocks.filter((block) => stageOf(block) === 0)
  const texts = thinking.flatMap((block) => (block.type === 'thinking' ? [block.thinking] : []))
  const calls = blocks.filter((block) => block.type === 'tool_use')
  return {
    role,
    content: readContent(blocks.filter((block) => stageOf(block) === 1)),
    reasoning:
      texts.length > 0 ? texts.map((text) => checkText(text, `${where}: thinking`)).join('\n') : undefined,
    reasoning_details: thinking.length > 0 ? thinking : undefined,
    tool_calls: calls.length > 0 ? calls.map((block) => readCall(block, where)) : undefined,
  }
}

function readCall({ id, name, input }: JsonObject, where: string): ToolCall {
  return {
    id: checkWord(id, `${where}: id of tool_use`),
    type: 'function',
    function: {
      name: checkText(name, `${where}: name of tool_use`),
      arguments: argumentsText(input, `${where}: input of tool_use`),
    },
  }
}

function readResult(block: JsonObject, where: string, earlier: readonly NewMessage[]): NewMessage {
  const id = checkWord(block.tool_use_id, `${where}: tool_use_id`)
  return {
    role: 'tool',
    content: block.is_error === true ? markError(block.content) : readContent(block.content),
    tool_call_id: id,
    tool_name: nameOfCall(id, earlier),
  }
}

function markError(content: JsonValue | undefined): JsonArray {
  const [first, ...rest] = isArray(content) ? content : [{ type: 'text', text: content ?? '' }]
  return [
    { ...(isObject(first) ? first : { type: 'text', text: '' }), is_error: true },
    ...rest.map(readPart),
  ]
}

function readContent(content: JsonValue | undefined): MessageContent | null {
  if (!isArray(content)) return typeof content === 'string' ? content : null
  return content.length === 0 ? null : (plainText(content.map(readPart)) ?? null)
}

function readPart(block: JsonValue): JsonValue {
  // A response has `citations: null` on every text.
  if (isTextPart(block))
    return Object.fromEntries(Object.entries(block).filter(([, value]) => value !== null))
  if (!isObject(block) || block.type !== 'image' || Object.keys(block).length > 2) return block
  const source = isObject(block.source) ? block.source : {}
  const { type, url, media_type, data, ...further } = source
  if (Object.keys(further).length > 0) return block
  if (type === 'url' && typeof url === 'string') return imagePart(url)
  return type === 'base64' && typeof data === 'string'
    ? imagePart(`data:${media_type};base64,${data}`)
    : block
}

function readSystem(system: JsonValue | undefined, where: string): string | undefined {
  if (system === undefined || system === null) return undefined
  if (!isArray(system)) return checkText(system, `${where}: system`)
  return system
    .map((block, index) => checkText(isObject(block) ? block.text : block, `${where}: system[${index}].text`))
    .join('\n')
}
