import { checkText, checkWord } from '../arguments.ts'
import { type JsonArray, type JsonObject, type JsonValue, toJson } from '../json.ts'
import type { MessageContent, NewMessage } from '../messages/message-types.ts'
import { type NumberedCall, readCalls, toolResult } from './calls.ts'
import { type ImportedConversation, sessionFields, splitSystemPrompt } from './conversation.ts'
import { checkJsonArray, checkJsonObject, isArray, isObject, parseJson } from './guards.ts'

/**
 * Reads a conversation whose messages are lists of parts: `{ messages: [{ role, content: [{ type, value }] }],
 * tools?, title?, model?, source? }`, or the array of messages alone.
 *
 * - `text` parts become `content`, `reasoning` parts `reasoning`; several are joined by newlines. If there are
 *   parts of other kinds, `content` is the array of all that are neither reasoning nor calls.
 * - `tool_call` parts, the JSON text of `{ name, arguments }`, become `tool_calls`. One whose value is something
 *   else stays in the content as text.
 * - A `tool` message answers the first call still open since the last user message. One whose text is the JSON
 *   of `[{ tool_call_id?, name, content }]`, one for each open call in order, becomes a tool message for each,
 *   and the calls take the ids it names.
 * - A leading `system` message becomes `system_prompt`.
 *
 * @param where names the conversation in errors, for instance `chats.jsonl, line 3`.
 * @throws TypeError naming the message and what it must be.
 */
export function fromParts(conversation: unknown, where: string): ImportedConversation {
  const values = checkJsonArray(
    isObject(conversation) ? conversation.messages : conversation,
    where,
    'an array of messages with lists of parts, or an object with such an array in messages',
  )
  const messages: NewMessage[] = []
  let calls = 0
  let open: NumberedCall[] = []
  for (const [index, value] of values.entries()) {
    const at = `${where}, message ${index + 1}`
    const message = readMessage(value, calls, at)
    calls += message.calls.length
    if (message.role === 'user') open = []
    open.push(...message.calls)
    if (message.role === 'tool') messages.push(...toResults(message.content, open, at))
    else
      messages.push({
        role: message.role,
        content: message.content,
        reasoning: message.reasoning,
        tool_calls: message.calls.length > 0 ? message.calls : undefined,
      })
  }
  return { source_format: 'parts', ...sessionFields(conversation, where), ...splitSystemPrompt(messages) }
}

interface PartsMessage {
  role: string
  content: MessageContent | null
  reasoning: string | undefined
  calls: NumberedCall[]
}

function readMessage(value: JsonValue, callsBefore: number, where: string): PartsMessage {
  const message = checkJsonObject(value, where, 'an object such as {role, content: [{type, value}]}')
  const role = checkWord(message.role, `${where}: role`)
  const reasoning: string[] = []
  const calls: NumberedCall[] = []
  const rest: JsonObject[] = []
  for (const [index, item] of toParts(message.content, where).entries()) {
    const at = `${where}: content[${index}]`
    const part = checkJsonObject(item, at, 'a part such as {type, value}')
    if (part.type === 'reasoning') reasoning.push(checkText(part.value, `${at}.value`))
    else if (part.type === 'tool_call') {
      const text = checkText(part.value, `${at}.value`)
      const made = readCalls(text, callsBefore + calls.length, at)
      if (made.length > 0) calls.push(...made)
      else rest.push({ type: 'text', value: text })
    } else rest.push(part)
  }
  return {
    role,
    content: toContent(rest),
    reasoning: reasoning.length > 0 ? reasoning.join('\n') : undefined,
    calls,
  }
}

function toParts(content: JsonValue | undefined, where: string): JsonArray {
  if (content === undefined || content === null) return []
  if (typeof content === 'string') return [{ type: 'text', value: content }]
  return checkJsonArray(content, `${where}: content`, 'a list of parts such as {type, value}, or text')
}

function toContent(parts: JsonObject[]): MessageContent | null {
  if (parts.length === 0) return null
  const texts = parts.map((part) => (part.type === 'text' ? part.value : undefined))
  return texts.every((text) => typeof text === 'string') ? texts.join('\n') : parts
}

function toResults(content: MessageContent | null, open: NumberedCall[], where: string): NewMessage[] {
  const results = typeof content === 'string' ? readResults(content, open) : undefined
  if (!results) return [toolResult(content, open.shift())]
  return results.map((result) => {
    const call = open.shift()
    if (call && typeof result.tool_call_id === 'string') call.id = result.tool_call_id
    const text =
      typeof result.content === 'string' ? result.content : toJson(result.content, `${where}: content`)
    return toolResult(text, call)
  })
}

type Result = JsonObject & { content: JsonValue }

function readResults(text: string, open: NumberedCall[]): Result[] | undefined {
  const value = parseJson(text)
  if (!isArray(value) || value.length === 0) return undefined
  const results = value.filter(isResult)
  const fits =
    results.length === value.length &&
    results.length === open.length &&
    results.every((result, index) => result.name === open[index]?.function.name)
  return fits ? results : undefined
}

/** With further fields it is not one: they would be lost. */
function isResult(value: JsonValue): value is Result {
  if (!isObject(value) || value.content === undefined) return false
  const { tool_call_id: id, name: _name, content: _content, ...further } = value
  return (id === undefined || typeof id === 'string') && Object.keys(further).length === 0
}
