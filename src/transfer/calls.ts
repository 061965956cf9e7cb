import { checkObject, checkWord } from '../arguments.ts'
import { type JsonObject, type JsonValue, toJson } from '../json.ts'
import type { NewMessage, ToolCall } from '../messages/message-types.ts'
import type { Conversation } from './conversation.ts'
import { isArray, isObject, parseJson } from './guards.ts'

/** A tool call of a transcript that numbers no calls; the id may still change to the one its result names. */
export interface NumberedCall {
  id: string
  type: 'function'
  function: { name: string; arguments: string }
}

/**
 * The calls in a text such as `{"name": "search", "arguments": {"q": "tea"}}`, or an array of such, with the
 * ids `call_1`, `call_2`, … counted on from `before`.
 *
 * @returns an empty array if the text is anything else.
 * @throws TypeError if the arguments hold a number that would not come back exactly.
 */
export function readCalls(text: string, before: number, where: string): NumberedCall[] {
  const value = parseJson(text)
  const calls = isArray(value) ? value : [value]
  if (!calls.every(isCall)) return []
  return calls.map((call, index) => ({
    id: `call_${before + index + 1}`,
    type: 'function',
    function: { name: call.name, arguments: argumentsText(call.arguments, where) },
  }))
}

/** The arguments of a call as JSON text: text stays as it is, and missing arguments are `{}`. */
export function argumentsText(value: JsonValue | undefined, where: string): string {
  return typeof value === 'string' ? value : toJson(value ?? {}, `${where}: arguments`)
}

/** Each call as the JSON text `{"name": …, "arguments": …}`, the other way round from {@link readCalls}. */
export function callsText(calls: readonly ToolCall[]): string[] {
  return calls.map(({ function: { name, arguments: text } }) =>
    JSON.stringify({ name, arguments: argumentsValue(text) }),
  )
}

/** Tools as JSON text, for formats that hold them so. Text stays as it is. */
export function toolsText(tools: JsonValue | undefined): string | undefined {
  if (tools === undefined || tools === null) return undefined
  return typeof tools === 'string' ? tools : JSON.stringify(tools)
}

/** A tool's result as the answer to a call; without a call, it names none. */
export function toolResult(content: NewMessage['content'], call: NumberedCall | undefined): NewMessage {
  return { role: 'tool', content, tool_call_id: call?.id, tool_name: call?.function.name }
}

function isCall(value: JsonValue | undefined): value is JsonObject & { name: string } {
  return isObject(value) && typeof value.name === 'string'
}

/**
 * The arguments of a call as an object, for formats that hold them parsed; as their text where they are no
 * object, or hold a number that would not come back exactly.
 */
export function argumentsValue(text: string): JsonObject | string {
  const value = parseJson(text)
  if (!isObject(value)) return text
  try {
    toJson(value, 'arguments')
    return value
  } catch {
    return text
  }
}

/**
 * The messages with an id for every call, and for every result that names no call the id of the first call still
 * open since the last user message, if there is one. Ids that are there already stay.
 */
export function withCallIds(messages: readonly NewMessage[]): NewMessage[] {
  const taken = new Set(messages.flatMap(({ tool_calls }) => tool_calls ?? []).map(({ id }) => id))
  let calls = 0
  let open: string[] = []
  const nextId = () => {
    do calls++
    while (taken.has(`call_${calls}`))
    return `call_${calls}`
  }
  return messages.map((message) => {
    if (message.role === 'user') open = []
    if (message.role === 'tool') {
      const id = message.tool_call_id || open[0]
      open = open.filter((other) => other !== id)
      return { ...message, tool_call_id: id }
    }
    const made = message.tool_calls?.map((call) => ({ ...call, id: call.id || nextId() }))
    open.push(...(made ?? []).map(({ id }) => id))
    return made ? { ...message, tool_calls: made } : message
  })
}

/** The name of the tool that a result's call is of. Some agents use an id again: the latest call is meant. */
export function nameOfCall(
  id: string | null | undefined,
  earlier: readonly NewMessage[],
): string | undefined {
  if (!id) return undefined
  const calls = earlier.findLast((message) => message.tool_calls?.some((call) => call.id === id))?.tool_calls
  return calls?.find((call) => call.id === id)?.function.name
}

/** Whether a value is a call: a list of calls in a file may hold anything. */
export function isToolCall(value: unknown): value is ToolCall {
  if (!isObject(value) || !isObject(value.function)) return false
  const { id, type } = value
  return (
    (id === undefined || typeof id === 'string') &&
    (type === undefined || typeof type === 'string') &&
    typeof value.function.name === 'string' &&
    typeof value.function.arguments === 'string'
  )
}

/**
 * Refuses what cannot be written in any chat format.
 *
 * @throws TypeError naming the place.
 */
export function checkConversation({ messages }: Conversation): void {
  for (const [index, message] of checkArray(messages, 'messages').entries()) {
    const at = `messages[${index}]`
    const { role, tool_calls } = checkObject(message, at)
    checkWord(role, `${at}.role`)
    if (tool_calls === undefined || tool_calls === null) continue
    for (const [number, call] of checkArray(tool_calls, `${at}.tool_calls`).entries())
      if (!isToolCall(call))
        throw new TypeError(
          `${at}.tool_calls[${number}] must be a call such as {id, type: 'function', function: {name, arguments}}, arguments being JSON text.`,
        )
  }
}

function checkArray(value: unknown, name: string): readonly unknown[] {
  if (!Array.isArray(value)) throw new TypeError(`${name} must be an array.`)
  return value
}
