import { checkWord } from '../arguments.ts'
import type { JsonValue } from '../json.ts'
import type { MessageContent, NewMessage, ToolCall } from '../messages/message-types.ts'
import { argumentsText, isToolCall, nameOfCall } from './calls.ts'
import { type ImportedConversation, sessionFields, splitSystemPrompt } from './conversation.ts'
import { checkJsonArray, checkJsonObject, isArray, isObject, optionalText } from './guards.ts'

/**
 * Reads an array of OpenAI chat messages, or an object that holds one: `{ messages, title?, model?, source?,
 * tools? }`.
 *
 * - A leading `system` or `developer` message of nothing but text becomes `system_prompt`.
 * - `content`: text, null and arrays of parts stay as they are.
 * - `tool_calls` stay as they are; `arguments` that are not text become JSON text.
 * - `tool_call_id` stays; `name` of a tool message becomes `tool_name`, else that of the call it answers.
 * - `reasoning` or `reasoning_content` becomes `reasoning`; `reasoning_details` and `finish_reason` stay.
 *
 * Other fields are left out.
 *
 * @param where names the conversation in errors, for instance `chats.json, conversation 3`.
 * @throws TypeError naming the message and what it must be.
 */
export function fromOpenAi(messages: unknown, where: string): ImportedConversation {
  const values = checkJsonArray(
    isObject(messages) ? messages.messages : messages,
    where,
    'an array of OpenAI messages, or an object with such an array in messages',
  )
  const read: NewMessage[] = []
  for (const [index, value] of values.entries())
    read.push(toMessage(value, `${where}, message ${index + 1}`, read))
  return { source_format: 'openai', ...sessionFields(messages, where), ...splitSystemPrompt(read) }
}

function toMessage(value: JsonValue, where: string, earlier: NewMessage[]): NewMessage {
  const message = checkJsonObject(value, where, 'an object such as {role, content}')
  const role = checkWord(message.role, `${where}: role`)
  const callId = optionalText(message.tool_call_id, `${where}: tool_call_id`)
  return {
    role,
    content: toContent(message.content, where),
    tool_call_id: callId,
    tool_name:
      role === 'tool'
        ? (optionalText(message.name ?? message.tool_name, `${where}: name`) ?? nameOfCall(callId, earlier))
        : undefined,
    tool_calls: toToolCalls(message.tool_calls, where),
    reasoning: optionalText(message.reasoning ?? message.reasoning_content, `${where}: reasoning`),
    reasoning_details: message.reasoning_details,
    finish_reason: optionalText(message.finish_reason, `${where}: finish_reason`),
  }
}

function toContent(value: JsonValue | undefined, where: string): MessageContent | null {
  if (value === undefined || value === null) return null
  if (typeof value === 'string' || isArray(value) || isObject(value)) return value
  throw new TypeError(`${where}: content must be text, an array of parts or null, not ${value}.`)
}

function toToolCalls(value: JsonValue | undefined, where: string): ToolCall[] | undefined {
  if (value === undefined || value === null) return undefined
  return checkJsonArray(value, `${where}: tool_calls`, 'an array of calls').map((item, index) => {
    const at = `${where}: tool_calls[${index}]`
    const call = isObject(item) ? item : {}
    const called = isObject(call.function) ? call.function : {}
    const read = { ...call, function: { ...called, arguments: argumentsText(called.arguments, at) } }
    if (!isToolCall(read))
      throw new TypeError(`${at} must be a call such as {id, type: 'function', function: {name, arguments}}.`)
    return read
  })
}
