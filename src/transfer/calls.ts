import { type JsonObject, type JsonValue, toJson } from '../json.ts'
import type { NewMessage } from '../messages/message-types.ts'
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

/** A tool's result as the answer to a call; without a call, it names none. */
export function toolResult(content: NewMessage['content'], call: NumberedCall | undefined): NewMessage {
  return { role: 'tool', content, tool_call_id: call?.id, tool_name: call?.function.name }
}

function isCall(value: JsonValue | undefined): value is JsonObject & { name: string } {
  return isObject(value) && typeof value.name === 'string'
}
