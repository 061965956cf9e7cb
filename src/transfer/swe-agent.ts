import type { JsonArray, JsonValue } from '../json.ts'
import type { MessageContent, NewMessage, ToolCall } from '../messages/message-types.ts'
import { visibleText } from '../messages/structured-content.ts'
import { checkConversation } from './calls.ts'
import { isTextPart } from './content.ts'
import type { Conversation, Converted, ImportedConversation } from './conversation.ts'
import { checkJsonArray, checkJsonObject, isArray, isObject } from './guards.ts'
import { notCarried } from './not-carried.ts'
import { fromOpenAi } from './openai.ts'

/** A SWE-agent trajectory: https://swe-agent.com/latest/usage/trajectories/ */
export interface SweAgentConversation {
  environment: string
  /** The steps that SWE-agent took itself. A conversation holds none. */
  trajectory: []
  history: SweAgentMessage[]
  info: Record<string, never>
}

/** An item of a trajectory's history. */
export interface SweAgentMessage {
  role: string
  content: MessageContent
  agent: string
  message_type: 'system_prompt' | 'observation' | 'action'
  thought?: string
  thinking_blocks?: JsonArray
  tool_calls?: readonly ToolCall[]
  tool_call_ids?: string[]
}

/**
 * Reads a SWE-agent trajectory (`.traj`): its `history`, which is in OpenAI form, as {@link fromOpenAi} does.
 *
 * - `content` that is a list of one text part becomes plain text; other lists stay as they are.
 * - The first of `tool_call_ids` becomes `tool_call_id`.
 * - `thought`, which SWE-agent parsed out of the model's answer, becomes `reasoning` where the content does not
 *   hold it; `thinking_blocks` become `reasoning_details`.
 * - `action`, parsed out of the answer too, becomes `content` only where that is empty and nothing is called.
 *
 * `agent`, `message_type` and the like are left out, as are `trajectory`, `info` and `replay_config`.
 *
 * @param where names the file in errors.
 * @throws TypeError naming the message and what it must be.
 */
export function fromSweAgent(trajectory: unknown, where: string): ImportedConversation {
  const { history } = checkJsonObject(trajectory, where, 'a SWE-agent trajectory such as {history: […]}')
  const messages = checkJsonArray(
    history,
    `${where}: history`,
    'an array of messages such as {role, content}',
  )
  return { ...fromOpenAi(messages.map(toOpenAi), where), source_format: 'swe-agent' }
}

/**
 * Writes a conversation as a SWE-agent trajectory of which only the `history` is filled: {@link fromSweAgent} the
 * other way round.
 *
 * - `system_prompt` is the leading system message; roles and content stay as they are.
 * - `reasoning` that the content does not hold becomes `thought`, and `reasoning_details` that are a list `thinking_blocks`.
 * - Not carried: `title`, `model`, `source`, `tools`, a tool's name that is not that of its call, `finish_reason`,
 *   times and counts.
 *
 * @throws TypeError for messages that are none.
 * @example
 * const { value } = toSweAgent({ messages: [{ role: 'user', content: 'Fix the build.' }] })
 */
export function toSweAgent(conversation: Conversation): Converted<SweAgentConversation> {
  checkConversation(conversation)
  const history = conversation.messages.map(writeMessage)
  if (conversation.system_prompt)
    history.unshift(writeMessage({ role: 'system', content: conversation.system_prompt }))
  const value: SweAgentConversation = { environment: 'main', trajectory: [], history, info: {} }
  return { value, not_carried: notCarried(conversation, fromSweAgent(value, 'the conversation'), 0) }
}

const MESSAGE_TYPES: Record<string, SweAgentMessage['message_type']> = {
  system: 'system_prompt',
  assistant: 'action',
}

function writeMessage(message: NewMessage): SweAgentMessage {
  const { role, content, reasoning, reasoning_details: details, tool_calls, tool_call_id } = message
  return {
    role,
    content: singleText(content) ?? '',
    agent: 'main',
    message_type: MESSAGE_TYPES[role] ?? 'observation',
    ...(reasoning && !isShown(reasoning, content) && { thought: reasoning }),
    ...(isArray(details) && { thinking_blocks: details }),
    ...(tool_calls?.length && { tool_calls }),
    ...(tool_call_id && { tool_call_ids: [tool_call_id] }),
  }
}

function toOpenAi(item: JsonValue): JsonValue {
  if (!isObject(item)) return item
  const { thought, action, tool_calls: calls, tool_call_ids: ids } = item
  const content = singleText(item.content)
  const hasCalls = isArray(calls) && calls.length > 0
  return {
    ...item,
    content: isBlank(content) && !hasCalls && typeof action === 'string' ? action : content,
    tool_call_id: item.tool_call_id ?? (isArray(ids) ? ids[0] : undefined),
    reasoning:
      item.reasoning ?? (typeof thought === 'string' && !isShown(thought, content) ? thought : undefined),
    reasoning_details: item.reasoning_details ?? item.thinking_blocks,
  }
}

/** A list of one text as that text. */
function singleText<T extends JsonValue | undefined>(content: T): T | string {
  const [part, ...more] = isArray(content) ? content : []
  return more.length === 0 && part !== undefined && isTextPart(part) ? part.text : content
}

function isBlank(content: JsonValue | undefined): boolean {
  return content === undefined || content === null || (typeof content === 'string' && content.trim() === '')
}

function isShown(thought: string, content: JsonValue | undefined): boolean {
  const shown = isArray(content) || isObject(content) ? visibleText(content) : (content ?? '')
  return String(shown).includes(thought.trim())
}
