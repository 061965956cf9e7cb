import type { JsonValue } from '../json.ts'
import type { NewMessage, ToolCall } from '../messages/message-types.ts'
import { checkConversation, nameOfCall, withCallIds } from './calls.ts'
import { contentText, fittingContent, isTextPart, type TextPart } from './content.ts'
import { type Conversation, type Converted, toTools } from './conversation.ts'
import { isObject } from './guards.ts'
import { notCarried } from './not-carried.ts'
import { fromOpenAi } from './openai.ts'

/** A conversation as the body of a request to OpenAI's chat completions: https://platform.openai.com/docs/api-reference/chat */
export interface OpenAiConversation {
  model?: string
  /** As the conversation holds them, parsed. */
  tools?: JsonValue
  messages: OpenAiMessage[]
}

/** A message of OpenAI's chat completions. */
export type OpenAiMessage =
  | { role: 'system' | 'developer'; content: string | TextPart[] }
  | { role: 'user'; content: string | OpenAiUserPart[] }
  | { role: 'assistant'; content: string | OpenAiAssistantPart[] | null; tool_calls?: OpenAiToolCall[] }
  | { role: 'tool'; tool_call_id: string; name?: string; content: string | TextPart[] }

/** A part of what a user says. */
export type OpenAiUserPart =
  | TextPart
  | { type: 'image_url'; image_url: { url: string; detail?: 'auto' | 'low' | 'high' } }
  | { type: 'input_audio'; input_audio: { data: string; format: 'wav' | 'mp3' } }
  | { type: 'file'; file: { file_data?: string; file_id?: string; filename?: string } }

/** A part of what the model says. */
export type OpenAiAssistantPart = TextPart | { type: 'refusal'; refusal: string }

/** A call of a tool; further fields are kept. */
export type OpenAiToolCall = ToolCall & { id: string; type: 'function' }

/**
 * Writes a conversation as OpenAI chat messages, strictly as OpenAI's own API takes them: {@link fromOpenAi}
 * the other way round.
 *
 * - `system_prompt` is a leading `system` message.
 * - Parts that OpenAI knows at their place stay: text anywhere; images, audio and files of a user; refusals of the
 *   model. Of other parts the words stay.
 * - A tool's name is written as `name` where it is not that of the call.
 * - Calls without an id are given one, and results that name no call the id of the call they answer. A result
 *   without a call, and a message of a role that OpenAI does not know, is said by the user.
 * - Not carried: `title`, `source`, `reasoning`, `reasoning_details`, `finish_reason`, times and counts.
 *
 * @throws TypeError for messages that are none.
 * @example
 * const { value, not_carried } = toOpenAi({ messages: [{ role: 'user', content: 'Hi' }] })
 */
export function toOpenAi(conversation: Conversation): Converted<OpenAiConversation> {
  checkConversation(conversation)
  const { model, tools, system_prompt, messages } = conversation
  const earlier: NewMessage[] = []
  const written = withCallIds(messages).map((message) => {
    if (message.role === 'assistant') earlier.push(message)
    return writeMessage(message, earlier)
  })
  if (system_prompt) written.unshift({ role: 'system', content: system_prompt })
  const value = { model, tools: toTools(tools), messages: written }
  return { value, not_carried: notCarried(conversation, fromOpenAi(value, 'the conversation'), 0) }
}

function writeMessage(message: NewMessage, earlier: readonly NewMessage[]): OpenAiMessage {
  const { role, content, tool_calls, tool_call_id, tool_name } = message
  switch (role) {
    case 'system':
      return { role: 'system', content: fittingContent(message, isTextPart) }
    case 'developer':
      return { role: 'developer', content: fittingContent(message, isTextPart) }
    case 'assistant':
      return {
        role: 'assistant',
        content: content === undefined || content === null ? null : fittingContent(message, isAssistantPart),
        ...(tool_calls?.length && { tool_calls: tool_calls.map(writeCall) }),
      }
    case 'tool':
      if (!tool_call_id) return { role: 'user', content: contentText(message) }
      return {
        role: 'tool',
        tool_call_id,
        ...(tool_name && tool_name !== nameOfCall(tool_call_id, earlier) && { name: tool_name }),
        content: fittingContent(message, isTextPart),
      }
    default:
      return { role: 'user', content: fittingContent(message, isUserPart) }
  }
}

/** Every call has an id by now. */
function writeCall({ id = '', ...call }: ToolCall): OpenAiToolCall {
  return { id, ...call, type: 'function' }
}

function isAssistantPart(part: JsonValue): part is OpenAiAssistantPart {
  return isTextPart(part) || (isObject(part) && part.type === 'refusal' && typeof part.refusal === 'string')
}

function isUserPart(part: JsonValue): part is OpenAiUserPart {
  if (isTextPart(part)) return true
  if (!isObject(part)) return false
  const { type, image_url: image, input_audio: audio, file } = part
  if (type === 'image_url') return isObject(image) && typeof image.url === 'string'
  if (type === 'input_audio') return isObject(audio) && typeof audio.data === 'string'
  return type === 'file' && isObject(file)
}
