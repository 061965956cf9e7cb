import type { JsonObject, JsonValue } from '../json.ts'
import type { NewMessage, ToolCall } from '../messages/message-types.ts'
import { readMessages } from './ai-sdk.ts'
import { argumentsValue, checkConversation, withCallIds } from './calls.ts'
import { contentText, fittingContent, isError, isTextPart, type TextPart } from './content.ts'
import { type Conversation, type Converted, takePrompt } from './conversation.ts'
import { isArray, isObject } from './guards.ts'
import { imageUrl, parseDataUrl } from './images.ts'
import { notCarried } from './not-carried.ts'

/** A chat of the Vercel AI SDK 6. */
export interface AiSdkConversation {
  messages: AiSdkMessage[]
}

/** A `UIMessage`: https://ai-sdk.dev/docs/reference/ai-sdk-core/ui-message */
export interface AiSdkMessage {
  /** `message-1`, `message-2`, … */
  id: string
  role: 'system' | 'user' | 'assistant'
  parts: AiSdkPart[]
}

/** A part of a `UIMessage`. */
export type AiSdkPart = AiSdkContentPart | AiSdkReasoningPart | AiSdkToolPart | { type: 'step-start' }

/** A part of what is said. */
export type AiSdkContentPart =
  | TextPart
  | { type: 'file'; mediaType: string; url: string; filename?: string }
  | { type: 'source-url'; sourceId: string; url: string; title?: string }
  | { type: 'source-document'; sourceId: string; mediaType: string; title: string; filename?: string }
  | { type: `data-${string}`; id?: string; data: JsonValue }

/** Thinking; the metadata is the provider's own, such as a signature. */
export type AiSdkReasoningPart = { type: 'reasoning'; text: string; providerMetadata?: AiSdkMetadata }

/** What providers keep with a part, by the provider's name. */
export type AiSdkMetadata = Record<string, JsonObject>

/** A call of a tool and what came of it. An input that is no object is the text of the arguments. */
export type AiSdkToolPart = {
  type: `tool-${string}`
  toolCallId: string
  input: JsonObject | string
  callProviderMetadata?: AiSdkMetadata
} & (
  | { state: 'input-available' }
  | { state: 'output-available'; output: JsonValue }
  | { state: 'output-error'; errorText: string }
)

/**
 * Writes a conversation as a chat of the Vercel AI SDK 6: {@link fromAiSdk} the other way round.
 *
 * - `system_prompt` is a leading `system` message.
 * - Assistant messages in a row, and the results of their calls, become one `UIMessage`; each assistant message is a
 *   step of it, begun by `step-start`.
 * - A result goes into the part of its call, and counts as moved where it does not follow its step in the order of
 *   the calls. One without a call, and a message of another role, is said by the user; `developer` is `system`.
 * - `reasoning_details` that are the SDK's own parts come back exactly; else `reasoning` becomes one part.
 * - Images are `file` parts; parts that the SDK knows stay; of others the words.
 * - Not carried: `title`, `model`, `source`, `tools`, a tool's name that is not that of its call, `finish_reason`,
 *   times and counts.
 *
 * @throws TypeError for messages that are none.
 * @example
 * const { value, not_carried } = toAiSdk({ messages: [{ role: 'user', content: 'Hi' }] })
 */
export function toAiSdk(conversation: Conversation): Converted<AiSdkConversation> {
  checkConversation(conversation)
  const { prompt, messages } = takePrompt(conversation)
  const steps: Step[] = []
  const calls = new Map<string, Call>()
  const read: NewMessage[] = []
  let moved = 0
  for (const message of withCallIds(messages)) {
    const call = message.role === 'tool' ? calls.get(message.tool_call_id ?? '') : undefined
    if (call) {
      calls.delete(call.part.toolCallId)
      const part = withResult(call.part, message)
      read.push(...readMessages('assistant', [part], 'the conversation').slice(1))
      call.step.parts[call.index] = part
      if (call.step === steps.at(-1) && call.index > call.step.answered) call.step.answered = call.index
      else moved++
    } else {
      const role = roleOf(message)
      const step: Step = { role, parts: writeParts(message), answered: -1 }
      read.push(...readMessages(role, step.parts, 'the conversation'))
      steps.push(step)
      for (const [index, part] of step.parts.entries())
        if ('toolCallId' in part) calls.set(part.toolCallId, { part, step, index })
    }
  }
  const value = { messages: together(prompt, steps) }
  return { value, not_carried: notCarried(conversation, { system_prompt: prompt, messages: read }, moved) }
}

/** What a message becomes, but for results. */
interface Step {
  role: AiSdkMessage['role']
  parts: AiSdkPart[]
  /** The index of the last call that a result has followed in its place. */
  answered: number
}

/** A call that no result has answered yet. */
interface Call {
  part: AiSdkToolPart
  step: Step
  index: number
}

function together(prompt: string | undefined, steps: readonly Step[]): AiSdkMessage[] {
  const messages: Omit<AiSdkMessage, 'id'>[] = prompt
    ? [{ role: 'system', parts: [{ type: 'text', text: prompt }] }]
    : []
  for (const { role, parts } of steps) {
    const last = messages.at(-1)
    if (role === 'assistant' && last?.role === 'assistant') last.parts.push(...parts)
    else messages.push({ role, parts: [...parts] })
  }
  return messages.map((message, index) => ({ id: `message-${index + 1}`, ...message }))
}

function roleOf({ role }: NewMessage): AiSdkMessage['role'] {
  if (role === 'assistant') return 'assistant'
  return role === 'system' || role === 'developer' ? 'system' : 'user'
}

function writeParts(message: NewMessage): AiSdkPart[] {
  const content = writeContent(message)
  if (message.role !== 'assistant') return content
  const calls = message.tool_calls ?? []
  return [{ type: 'step-start' }, ...writeReasoning(message), ...content, ...calls.map(writeCall)]
}

function writeReasoning({ reasoning, reasoning_details: details }: NewMessage): AiSdkReasoningPart[] {
  const isSigned =
    isArray(details) && details.some((part) => isObject(part) && isObject(part.providerMetadata))
  if (isSigned && details.every(isReasoning)) return [...details]
  return reasoning ? [{ type: 'reasoning', text: reasoning }] : []
}

function writeContent(message: NewMessage): AiSdkContentPart[] {
  const content = isArray(message.content) ? message.content.map(writeImage) : message.content
  const fitting = fittingContent({ ...message, content }, isContent)
  const parts: AiSdkContentPart[] = typeof fitting === 'string' ? [{ type: 'text', text: fitting }] : fitting
  return parts.filter((part) => part.type !== 'text' || part.text !== '')
}

function writeImage(part: JsonValue): JsonValue {
  const url = imageUrl(part)
  if (url === undefined) return part
  const mediaType = url.startsWith('data:') ? parseDataUrl(url)?.mediaType : 'image/*'
  return mediaType === undefined ? part : { type: 'file', mediaType, url }
}

function writeCall(call: ToolCall): AiSdkToolPart {
  const { id = '', function: called } = call
  const metadata = isObject(call) ? call.callProviderMetadata : undefined
  return {
    type: `tool-${called.name}`,
    toolCallId: id,
    state: 'input-available',
    input: argumentsValue(called.arguments),
    ...(isMetadata(metadata) && { callProviderMetadata: metadata }),
  }
}

function withResult(part: AiSdkToolPart, result: NewMessage): AiSdkToolPart {
  const { type, toolCallId, input, callProviderMetadata } = part
  return {
    type,
    toolCallId,
    input,
    ...(callProviderMetadata && { callProviderMetadata }),
    ...(isError(result)
      ? { state: 'output-error', errorText: contentText(result) }
      : { state: 'output-available', output: result.content ?? null }),
  }
}

function isContent(part: JsonValue): part is AiSdkContentPart {
  if (!isObject(part)) return false
  const { type, url, mediaType, sourceId, title } = part
  if (type === 'file') return typeof url === 'string' && typeof mediaType === 'string'
  if (type === 'source-url') return typeof url === 'string' && typeof sourceId === 'string'
  if (type === 'source-document')
    return [mediaType, sourceId, title].every((value) => typeof value === 'string')
  return isTextPart(part) || (typeof type === 'string' && type.startsWith('data-') && part.data !== undefined)
}

function isReasoning(part: JsonValue): part is AiSdkReasoningPart {
  if (!isObject(part) || part.type !== 'reasoning' || typeof part.text !== 'string') return false
  return part.providerMetadata === undefined || isMetadata(part.providerMetadata)
}

function isMetadata(value: JsonValue | undefined): value is AiSdkMetadata {
  return isObject(value) && Object.values(value).every(isObject)
}
