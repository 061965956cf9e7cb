import type { JsonObject, JsonValue } from '../json.ts'
import type { MessageContent, NewMessage } from '../messages/message-types.ts'
import { visibleText } from '../messages/structured-content.ts'
import { isArray, isObject } from './guards.ts'

/** A part of text, as most formats write it; further fields are kept. */
export type TextPart = { type: 'text'; text: string }

/** Whether a part is one of text. */
export function isTextPart(part: JsonValue): part is TextPart {
  return isObject(part) && part.type === 'text' && typeof part.text === 'string'
}

/** Whether a tool's result says that the tool failed: a part of it has the mark `is_error`. */
export function isError({ content }: NewMessage): boolean {
  return isArray(content) && content.some((part) => isObject(part) && part.is_error === true)
}

/** The text of a list of one text part that has no further fields; other content as it is. */
export function plainText(content: NewMessage['content']): MessageContent | null | undefined {
  if (!isArray(content) || content.length !== 1) return content
  const [part] = content
  return part !== undefined && isTextPart(part) && Object.keys(part).length === 2 ? part.text : content
}

/**
 * A message's content as text, for formats that know nothing else: the words of its parts, joined by newlines.
 * An object, and the result of a tool in which there is more than words, become JSON text.
 */
export function contentText({ role, content }: NewMessage): string {
  if (content === undefined || content === null) return ''
  if (typeof content === 'string') return content.toWellFormed()
  const isData =
    !isArray(content) || (role === 'tool' && !content.every((part) => wordsOf(part) !== undefined))
  return (isData ? JSON.stringify(content) : visibleText(content)).toWellFormed()
}

/**
 * A message's content with only those parts that a format knows. The words of others become text parts, parts
 * without words are left out; an object, and the result of a tool in which there is more than these, become JSON
 * text.
 */
export function fittingContent<Part extends JsonObject>(
  message: NewMessage,
  fits: (part: JsonValue) => part is Part,
): string | (Part | TextPart)[] {
  const { role, content } = message
  if (!isArray(content)) return contentText(message)
  const isData = role === 'tool' && !content.every((part) => fits(part) || wordsOf(part) !== undefined)
  if (isData) return JSON.stringify(content)
  return content.flatMap((part): (Part | TextPart)[] => {
    if (fits(part)) return [part]
    const words = wordsOf(part)
    return words === undefined ? [] : [{ type: 'text', text: words }]
  })
}

function wordsOf(part: JsonValue): string | undefined {
  if (typeof part === 'string') return part.toWellFormed()
  if (!isObject(part)) return undefined
  return typeof part.text === 'string' || typeof part.value === 'string'
    ? visibleText([part]).toWellFormed()
    : undefined
}
