import type { JsonValue } from '../json.ts'
import { visibleText } from '../messages/structured-content.ts'
import type { ImportedConversation } from './conversation.ts'
import { checkJsonArray, checkJsonObject, isArray, isObject } from './guards.ts'
import { fromOpenAi } from './openai.ts'

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
      item.reasoning ??
      (typeof thought === 'string' && !shownText(content).includes(thought.trim()) ? thought : undefined),
    reasoning_details: item.reasoning_details ?? item.thinking_blocks,
  }
}

function singleText(content: JsonValue | undefined): JsonValue | undefined {
  if (!isArray(content) || content.length !== 1) return content
  const part = content[0]
  return isObject(part) && part.type === 'text' && typeof part.text === 'string' ? part.text : content
}

function isBlank(content: JsonValue | undefined): boolean {
  return content === undefined || content === null || (typeof content === 'string' && content.trim() === '')
}

function shownText(content: JsonValue | undefined): string {
  if (typeof content === 'string') return content
  return isArray(content) || isObject(content) ? visibleText(content) : ''
}
