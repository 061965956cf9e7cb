import { isTooDeep, type JsonArray, type JsonObject, type JsonValue, toJson } from '../json.ts'
import type { MessageContent } from './message-types.ts'

/**
 * How Hermes stores content that is not plain text since April 2026: this marker, then JSON. A plain string
 * that begins with the marker is stored as the marker and its JSON string, so that nothing can be forged.
 */
export const MARKER = '\0json:'

const MAX_OBJECT_TEXT = 4_000

/** What goes into the file for a message's content. */
export interface StoredContent {
  /** `messages.content`. */
  content: string | null
  /** The row of `hs_structured_content`, where the file has that table. */
  structured: string | null
}

export function toStoredContent(content: unknown, path: string, additions: boolean): StoredContent {
  if (content === undefined || content === null) return { content: null, structured: null }
  if (typeof content === 'string') return { content: toStoredText(content), structured: null }
  if (!isStructured(content))
    throw new TypeError(
      `${path} must be a string, an array of parts, an object or null, not a ${typeof content}.`,
    )
  const json = toJson(content, path)
  return additions
    ? { content: toStoredText(visibleText(content)), structured: json }
    : { content: MARKER + json, structured: null }
}

function toStoredText(text: string): string {
  // The JSON of a string keeps a lone surrogate as an escape; stored text would not.
  return text.startsWith(MARKER) ? MARKER + JSON.stringify(text.toWellFormed()) : text
}

/**
 * The content of a stored message. `structured` is its row of the additions table.
 *
 * @returns undefined where stored JSON is broken: the caller falls back on the text and says so.
 */
export function fromStoredContent(
  content: string | null,
  structured: string | null,
): MessageContent | null | undefined {
  const json = storedJson(content, structured)
  if (json === null) return content
  try {
    const value: JsonValue = JSON.parse(json)
    return typeof value === 'string' || isStructured(value) ? value : undefined
  } catch {
    return undefined
  }
}

/** The JSON text of content that is not stored as plain text; null where it is. */
export function storedJson(content: string | null, structured: string | null): string | null {
  return structured ?? (content?.startsWith(MARKER) ? content.slice(MARKER.length) : null)
}

/** What goes into the file for content whose JSON text must stay as it is. */
export function fromJsonText(json: string, path: string, additions: boolean): StoredContent {
  const value = fromStoredContent(null, json)
  if (value === undefined || value === null)
    throw new TypeError(`${path} must be the JSON text of a string, an array of parts or an object.`)
  if (isTooDeep(value)) throw new TypeError(`${path} is nested too deep: flatten it.`)
  if (!additions || typeof value === 'string') return { content: MARKER + json, structured: null }
  return { content: toStoredText(visibleText(value)), structured: json }
}

/**
 * The words of structured content, as previews, searches and readers that know only text see them: the text
 * parts joined by newlines; of other objects their JSON, cut at 4,000 characters.
 */
export function visibleText(content: JsonArray | JsonObject): string {
  if (!Array.isArray(content)) return JSON.stringify(content).slice(0, MAX_OBJECT_TEXT).toWellFormed()
  return content
    .map((part) => (typeof part === 'string' ? part : textOf(part)))
    .filter((text) => text !== undefined)
    .join('\n')
}

/** The words of stored content: those of structured content that Hermes keeps in the text column included. */
export function visibleStored(content: string): string {
  if (!content.startsWith(MARKER)) return content
  const decoded = fromStoredContent(content, null) ?? content.slice(MARKER.length)
  return typeof decoded === 'string' ? decoded : visibleText(decoded)
}

function textOf(part: JsonValue): string | undefined {
  if (!isStructured(part) || isArray(part)) return undefined
  if (typeof part.text === 'string') return part.text
  return typeof part.value === 'string' ? part.value : undefined
}

function isStructured(value: unknown): value is JsonArray | JsonObject {
  return typeof value === 'object' && value !== null
}

function isArray(value: JsonArray | JsonObject): value is JsonArray {
  return Array.isArray(value)
}
