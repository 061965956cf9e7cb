import type { JsonArray } from '../json.ts'
import type { ConversationMessage, Message, MessageContent } from './message-types.ts'

/** What a provider gets back of a message. */
export function toConversationMessage(message: Message): ConversationMessage {
  const { role, content, tool_call_id, tool_name, tool_calls } = message
  const replay: ConversationMessage = { role, content }
  if (tool_call_id) replay.tool_call_id = tool_call_id
  if (tool_name) replay.tool_name = tool_name
  if (tool_calls && tool_calls.length > 0) replay.tool_calls = tool_calls
  if (role !== 'assistant') return replay
  if (message.finish_reason) replay.finish_reason = message.finish_reason
  if (message.reasoning) replay.reasoning = message.reasoning
  if (message.reasoning_details !== null) replay.reasoning_details = message.reasoning_details
  if (message.codex_reasoning_items !== null) replay.codex_reasoning_items = message.codex_reasoning_items
  return replay
}

/** Makes one message of user messages that follow each other: texts a blank line apart, parts in one list. */
export function mergeUserTurns(messages: ConversationMessage[]): ConversationMessage[] {
  const turns: ConversationMessage[] = []
  for (const message of messages) {
    const last = turns.at(-1)
    if (message.role === 'user' && last?.role === 'user')
      turns[turns.length - 1] = { ...last, content: joined(last.content, message.content) }
    else turns.push(message)
  }
  return turns
}

function joined(first: MessageContent | null, second: MessageContent | null): MessageContent | null {
  if (first === null || second === null) return first ?? second
  if (typeof first === 'string' && typeof second === 'string') return `${first}\n\n${second}`
  return [...parts(first), ...parts(second)]
}

function parts(content: MessageContent): JsonArray {
  if (typeof content === 'string') return [{ type: 'text', text: content }]
  return Array.isArray(content) ? content : [content]
}
