import { checkText, checkWord } from '../arguments.ts'
import { type JsonObject, type JsonValue, toJson } from '../json.ts'
import type { MessageContent, NewMessage, ToolCall } from '../messages/message-types.ts'
import { argumentsText } from './calls.ts'
import { plainText } from './content.ts'
import { type ImportedConversation, sessionFields, takePrompt } from './conversation.ts'
import { checkJsonArray, checkJsonObject, isArray, isObject, optionalText } from './guards.ts'
import { imagePart, parseDataUrl } from './images.ts'

/**
 * Reads a chat of the Vercel AI SDK: an array of `UIMessage`s, or an object that holds one: `{ messages, title?, model?,
 * source?, tools? }`. https://ai-sdk.dev/docs/reference/ai-sdk-core/ui-message
 *
 * - A leading `system` message becomes `system_prompt`.
 * - `text` parts: one becomes text, more become a list together with the parts of other kinds, which stay as they
 *   are (`file`, `source-url`, `data-…`). An image file becomes OpenAI's `image_url` part where that says as much.
 * - `step-start` begins an assistant message, as does a part that is not in the order reasoning, content, calls.
 * - `reasoning` parts become `reasoning`, joined by newlines; with a `providerMetadata`, in which providers sign them,
 *   they are kept in `reasoning_details` too.
 * - `tool-NAME` and `dynamic-tool` parts become `tool_calls`, their `callProviderMetadata` kept, and, once there is an
 *   output, a tool message after the step. An output that is text, a list or an object stays as it is, others become
 *   JSON text. `errorText` becomes a text part with the mark `is_error`.
 *
 * Other fields are left out: `id`, `metadata`, `state` of text, approvals, `preliminary`, `providerExecuted`.
 *
 * @param where names the chat in errors, for instance `chats.json, conversation 3`.
 * @throws TypeError naming the message and what it must be.
 */
export function fromAiSdk(chat: unknown, where: string): ImportedConversation {
  const values = checkJsonArray(
    isObject(chat) ? chat.messages : chat,
    where,
    'an array of UIMessages, or an object with such an array in messages',
  )
  const all = values.flatMap((value, index) => {
    const at = `${where}, message ${index + 1}`
    const { role, parts } = checkJsonObject(value, at, 'a UIMessage such as {role, parts}')
    return readMessages(checkWord(role, `${at}: role`), parts, at)
  })
  const { prompt, messages } = takePrompt({ messages: all })
  return {
    source_format: 'ai-sdk',
    ...sessionFields(chat, where),
    system_prompt: prompt,
    messages: [...messages],
  }
}

/** The messages that a UIMessage becomes. */
export function readMessages(role: string, parts: unknown, where: string): NewMessage[] {
  const steps: JsonObject[][] = []
  for (const [index, item] of checkJsonArray(parts, `${where}: parts`, 'an array of parts').entries()) {
    const part = checkJsonObject(item, `${where}: parts[${index}]`, 'a part such as {type}')
    const step = steps.at(-1)
    const last = step?.at(-1)
    if (step && last && stageOf(part) >= stageOf(last) && part.type !== 'step-start') step.push(part)
    else steps.push([part])
  }
  if (steps.length === 0) return [{ role, content: null }]
  return steps.flatMap((step) => readStep(role, step, where))
}

const STAGES = { start: -1, reasoning: 0, content: 1, call: 2 }

function stageOf(part: JsonObject): number {
  if (part.type === 'step-start') return STAGES.start
  if (part.type === 'reasoning') return STAGES.reasoning
  return toolOf(part) === undefined ? STAGES.content : STAGES.call
}

/** The name of the tool that a part calls. */
function toolOf({ type, toolName }: JsonObject): JsonValue | undefined {
  if (type === 'dynamic-tool') return toolName ?? ''
  return typeof type === 'string' && type.startsWith('tool-') ? type.slice('tool-'.length) : undefined
}

function readStep(role: string, parts: readonly JsonObject[], where: string): NewMessage[] {
  const reasoning = parts.filter((part) => stageOf(part) === STAGES.reasoning)
  const calls = parts.filter((part) => stageOf(part) === STAGES.call)
  const texts = reasoning.map(({ text }) => checkText(text, `${where}: text of reasoning`))
  const isSigned = reasoning.some(({ providerMetadata }) => providerMetadata !== undefined)
  const content = parts.filter((part) => stageOf(part) === STAGES.content).map(readPart)
  return [
    {
      role,
      content: content.length > 0 ? (plainText(content) ?? null) : null,
      reasoning: texts.length > 0 ? texts.join('\n') : undefined,
      reasoning_details: isSigned ? reasoning.map(withoutState) : undefined,
      tool_calls: calls.length > 0 ? calls.map((part) => readCall(part, where)) : undefined,
    },
    ...calls.flatMap((part) => readResult(part, where)),
  ]
}

function readCall(part: JsonObject, where: string): ToolCall {
  const { toolCallId, input, rawInput, callProviderMetadata } = part
  return {
    id: checkWord(toolCallId, `${where}: toolCallId`),
    type: 'function',
    function: {
      name: checkText(toolOf(part), `${where}: toolName`),
      arguments: argumentsText(input ?? rawInput, `${where}: input`),
    },
    ...(callProviderMetadata !== undefined && { callProviderMetadata }),
  }
}

function readResult(part: JsonObject, where: string): NewMessage[] {
  const { toolCallId, state, output, errorText } = part
  if (state !== 'output-available' && state !== 'output-error') return []
  const error = state === 'output-error' ? optionalText(errorText, `${where}: errorText`) : undefined
  return [
    {
      role: 'tool',
      content:
        error === undefined
          ? readOutput(output, `${where}: output`)
          : [{ type: 'text', text: error, is_error: true }],
      tool_call_id: checkWord(toolCallId, `${where}: toolCallId`),
      tool_name: checkText(toolOf(part), `${where}: toolName`),
    },
  ]
}

function readOutput(output: JsonValue | undefined, where: string): MessageContent | null {
  if (output === undefined || output === null) return null
  return typeof output === 'string' || isArray(output) || isObject(output) ? output : toJson(output, where)
}

function readPart(part: JsonObject): JsonObject {
  const { type, mediaType, url, ...further } = part
  if (type === 'text') return withoutState(part)
  if (type !== 'file' || typeof url !== 'string' || Object.keys(further).length > 0) return part
  const isImage = typeof mediaType === 'string' && mediaType.startsWith('image/')
  const implied = url.startsWith('data:') ? parseDataUrl(url)?.mediaType : 'image/*'
  return isImage && mediaType === implied ? imagePart(url) : part
}

/** Whether a text was still streaming says nothing about a stored one. */
function withoutState({ state: _state, ...part }: JsonObject): JsonObject {
  return part
}
