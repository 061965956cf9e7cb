import { checkText } from '../arguments.ts'
import type { JsonArray, JsonObject, JsonValue } from '../json.ts'

/** Whether a value that was parsed from JSON is an object. Its depth is checked when it is stored. */
export function isObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** Whether a value that was parsed from JSON is an array. Its depth is checked when it is stored. */
export function isArray(value: unknown): value is JsonArray {
  return Array.isArray(value)
}

/** @throws TypeError saying what must be at this place of the transcript. */
export function checkJsonObject(value: unknown, where: string, expected: string): JsonObject {
  if (!isObject(value)) throw new TypeError(`${where} must be ${expected}.`)
  return value
}

/** @throws TypeError saying what must be at this place of the transcript. */
export function checkJsonArray(value: unknown, where: string, expected: string): JsonArray {
  if (!isArray(value)) throw new TypeError(`${where} must be ${expected}.`)
  return value
}

/** Text, or undefined where it is missing or null. */
export function optionalText(value: unknown, name: string): string | undefined {
  return value === undefined || value === null ? undefined : checkText(value, name)
}

/** The value of a JSON text, or undefined if it is not JSON. */
export function parseJson(text: string): JsonValue | undefined {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}
