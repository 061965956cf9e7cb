/** Checks on what callers pass in: a TypeError with a sentence, before anything is read or written. */

/** An id: non-empty, and text that every reader of the file can decode. */
export function checkId(value: unknown, name: string): string {
  if (typeof value !== 'string' || value === '')
    throw new TypeError(`${name} must be a non-empty string, not ${shown(value)}.`)
  if (!value.isWellFormed() || value.includes('\0'))
    throw new TypeError(
      `${name} holds a lone surrogate or a NUL: an id must be text that every reader can decode.`,
    )
  return value
}

/** Text, half characters replaced as they are in the file. */
export function checkText(value: unknown, name: string): string {
  if (typeof value !== 'string') throw new TypeError(`${name} must be a string, not ${shown(value)}.`)
  return value.toWellFormed()
}

/** Text with something in it: a source, a role, a reason. */
export function checkWord(value: unknown, name: string): string {
  if (typeof value !== 'string' || value === '')
    throw new TypeError(`${name} must be a non-empty string, not ${shown(value)}.`)
  return value
}

/** Text, or null where it is missing. */
export function checkOptionalText(value: unknown, name: string): string | null {
  return value === undefined || value === null ? null : checkText(value, name)
}

/** Seconds since 1970. */
export function checkTime(value: unknown, name: string): number {
  if (typeof value !== 'number' || !Number.isFinite(value))
    throw new TypeError(`${name} must be a time in seconds since 1970, not ${shown(value)}.`)
  return value
}

/** A whole number from `least` to 2^53. */
export function checkCount(value: unknown, name: string, least = 0): number {
  if (typeof value !== 'number' || !Number.isSafeInteger(value) || value < least)
    throw new TypeError(`${name} must be a whole number of at least ${least}, not ${shown(value)}.`)
  return value
}

export function checkOptionalCount(value: unknown, name: string): number | null {
  return value === undefined || value === null ? null : checkCount(value, name)
}

/** A list of strings to filter by; `undefined` is no filter. */
export function checkTextList(value: unknown, name: string): readonly string[] | undefined {
  if (value === undefined) return undefined
  if (!Array.isArray(value)) throw new TypeError(`${name} must be an array of strings, not ${shown(value)}.`)
  return value.map((item, index) => checkText(item, `${name}[${index}]`))
}

export function checkObject(value: unknown, name: string): Record<string, unknown> {
  if (typeof value !== 'object' || value === null || Array.isArray(value))
    throw new TypeError(`${name} must be an object, not ${shown(value)}.`)
  return value as Record<string, unknown>
}

/** The current time in seconds since 1970. */
export const now = (): number => Date.now() / 1000

/** A value for an error message: short, and never the text of a conversation. */
function shown(value: unknown): string {
  if (typeof value === 'string') return value === '' ? 'an empty string' : 'a string'
  if (value === null || value === undefined || typeof value === 'number' || typeof value === 'boolean')
    return String(value)
  if (Array.isArray(value)) return 'an array'
  return typeof value === 'object' ? 'an object' : `a ${typeof value}`
}
