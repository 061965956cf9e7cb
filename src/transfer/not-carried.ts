import type { JsonValue } from '../json.ts'
import type { NewMessage, ToolCall } from '../messages/message-types.ts'
import { plainText } from './content.ts'
import { type Conversation, type NotCarried, toTools } from './conversation.ts'
import { type Counts, count } from './counts.ts'
import { parseJson } from './guards.ts'

const FIELDS = [
  'role',
  'client_id',
  'content',
  'tool_call_id',
  'tool_name',
  'timestamp',
  'token_count',
  'finish_reason',
  'reasoning',
  'reasoning_details',
  'codex_reasoning_items',
] as const

/**
 * What a format did not carry of a conversation: the values that are not equal in what is read back from it.
 *
 * @param read what was read back: for each message that was written, the one it comes back as.
 * @param moved the number of messages that do not come back as one message in their place.
 */
export function notCarried(written: Conversation, read: Conversation, moved: number): NotCarried {
  const counts: Counts = {}
  for (const field of ['title', 'model', 'source'] as const)
    if (written[field] && written[field] !== read[field]) count(counts, field)
  if (!same(toTools(written.tools), toTools(read.tools))) count(counts, 'tools')
  const prompt = written.system_prompt || undefined
  const back = withPrompt(read)
  for (const [index, message] of withPrompt({ ...written, system_prompt: prompt }).entries()) {
    const isPrompt = index === 0 && prompt !== undefined
    for (const field of FIELDS)
      if (!isCarried(field, message, back[index]))
        count(counts, isPrompt ? 'system_prompt' : `messages.${field}`)
    countCalls(message.tool_calls ?? [], back[index]?.tool_calls ?? [], counts)
  }
  if (moved > 0) count(counts, 'messages', moved)
  return counts
}

/** A system prompt and a leading system message are one and the same in some formats. */
function withPrompt({ system_prompt, messages }: Conversation): readonly NewMessage[] {
  if (system_prompt === undefined) return messages
  return [{ role: 'system', content: system_prompt }, ...messages]
}

function isCarried(
  field: (typeof FIELDS)[number],
  message: NewMessage,
  back: NewMessage | undefined,
): boolean {
  const value = message[field]
  if (value === undefined || value === null || value === '') return true
  if (field !== 'content') return same(value, back?.[field])
  return same(plainText(message.content), plainText(back?.content))
}

function countCalls(calls: readonly ToolCall[], back: readonly ToolCall[], counts: Counts): void {
  for (const [index, { id, ...call }] of calls.entries()) {
    const { id: idBack, ...callBack } = back[index] ?? {}
    if (id && id !== idBack) count(counts, 'messages.tool_calls.id')
    if (!same(comparable(call), comparable({ ...callBack, type: call.type ?? back[index]?.type })))
      count(counts, 'messages.tool_calls')
  }
}

/** A call with its arguments parsed, and its fields in one order. */
function comparable(call: Partial<ToolCall>): JsonValue {
  const { type, function: called, ...further } = call
  const { name, arguments: text, ...furtherCalled } = called ?? {}
  return [
    type ?? 'function',
    name ?? null,
    parseJson(text ?? '') ?? text ?? null,
    { ...further },
    { ...furtherCalled },
  ]
}

function same(left: JsonValue | undefined, right: JsonValue | undefined): boolean {
  return JSON.stringify(left) === JSON.stringify(right)
}
