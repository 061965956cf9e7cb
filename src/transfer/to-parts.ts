import type { JsonObject, JsonValue } from '../json.ts'
import type { NewMessage, ToolCall } from '../messages/message-types.ts'
import { visibleText } from '../messages/structured-content.ts'
import { callsText, checkConversation, toolsText, withCallIds } from './calls.ts'
import { contentText } from './content.ts'
import type { Conversation, Converted } from './conversation.ts'
import { isArray, isObject } from './guards.ts'
import { notCarried } from './not-carried.ts'
import { fromParts } from './parts.ts'

/** A conversation whose messages are lists of parts: a line of a part-list JSONL file. */
export interface PartsConversation {
  title?: string
  model?: string
  source?: string
  /** JSON text. */
  tools?: string
  messages: PartsMessage[]
}

/** A message as a list of parts: `text`, `reasoning` and `tool_call` hold text; other parts are as they were. */
export interface PartsMessage {
  role: string
  content: ({ type: 'text' | 'reasoning' | 'tool_call'; value: string } | JsonObject)[]
}

/**
 * Writes a conversation as messages that are lists of parts: {@link fromParts} the other way round.
 *
 * - A message's parts are its reasoning, its content and its calls, in this order.
 * - Tool messages in a row, one for each open call, become one in the order of the calls, the JSON text of
 *   `[{ tool_call_id, name, content }]`. Others stay one message each; the ids of their calls are not carried then.
 * - Parts that are not text stay as they are; an object is JSON text.
 * - Not carried: `reasoning_details`, `finish_reason`, times and counts.
 *
 * @throws TypeError for messages that are none.
 * @example
 * const { value, not_carried } = toParts({ messages: [{ role: 'user', content: 'Hi' }] })
 */
export function toParts(conversation: Conversation): Converted<PartsConversation> {
  checkConversation(conversation)
  const { title, model, source, tools, system_prompt } = conversation
  const messages = withCallIds(conversation.messages)
  const written: PartsMessage[] = system_prompt ? [textMessage('system', system_prompt)] : []
  let open: ToolCall[] = []
  let moved = 0
  for (let index = 0; index < messages.length; index++) {
    const message = messages[index]!
    const run = messages.slice(index, index + open.length)
    if (message.role !== 'tool') {
      if (message.role === 'user') open = []
      open.push(...(message.tool_calls ?? []))
      written.push({ role: message.role, content: writeParts(message) })
    } else if (run.length === 0 || run.length < open.length || run.some(({ role }) => role !== 'tool')) {
      written.push(textMessage('tool', contentText(message)))
      open.shift()
    } else {
      const results = inOrder(run, open)
      moved += results.filter((result, place) => result !== run[place]).length
      messages.splice(index, run.length, ...results)
      written.push(textMessage('tool', resultsText(results, open)))
      index += run.length - 1
      open = []
    }
  }
  const value = { title, model, source, tools: toolsText(tools), messages: written }
  const read = fromParts(value, 'the conversation')
  return { value, not_carried: notCarried({ ...conversation, messages }, read, moved) }
}

function textMessage(role: string, text: string): PartsMessage {
  return { role, content: [{ type: 'text', value: text }] }
}

/** The results in the order of their calls; one that answers none of them takes a place that is left. */
function inOrder(results: readonly NewMessage[], calls: readonly ToolCall[]): NewMessage[] {
  const left = [...results]
  const isStray = ({ tool_call_id }: NewMessage) => calls.every(({ id }) => id !== tool_call_id)
  return calls.flatMap(({ id }) => {
    const own = left.findIndex((result) => result.tool_call_id === id)
    return left.splice(Math.max(own >= 0 ? own : left.findIndex(isStray), 0), 1)
  })
}

function resultsText(results: readonly NewMessage[], calls: readonly ToolCall[]): string {
  return JSON.stringify(
    calls.map(({ id, function: { name } }, index) => ({
      tool_call_id: id,
      name,
      content: contentText(results[index]!),
    })),
  )
}

function writeParts(message: NewMessage): PartsMessage['content'] {
  const { reasoning, tool_calls } = message
  return [
    ...(reasoning ? [{ type: 'reasoning', value: reasoning }] : []),
    ...writeContent(message),
    ...callsText(tool_calls ?? []).map((value) => ({ type: 'tool_call', value })),
  ]
}

/** Texts alone become one, as a reader joins them. */
function writeContent(message: NewMessage): PartsMessage['content'] {
  const { content } = message
  if (isArray(content) && content.some(isOther))
    return content.map((part) => (isOther(part) ? part : { type: 'text', value: visibleText([part]) }))
  const text = contentText(message)
  return text === '' ? [] : [{ type: 'text', value: text }]
}

const OWN_PARTS = new Set<JsonValue | undefined>(['text', 'reasoning', 'tool_call'])

/** Whether a part is neither text nor would be read as what the message thinks or calls. */
function isOther(part: JsonValue): part is JsonObject {
  return isObject(part) && !OWN_PARTS.has(part.type)
}
