import { checkObject, checkText } from '../arguments.ts'
import type { JsonValue } from '../json.ts'
import { count, countsSince } from './counts.ts'
import { CREDENTIAL_PATTERNS, type SecretPattern } from './credential-patterns.ts'
import { isSecretProperty } from './secret-assignments.ts'

/** What {@link redact} and a {@link Redactor} look for. */
export interface RedactOptions {
  /** Further kinds of secrets. Where one overlaps a credential that is known already, it names the mask. */
  patterns?: readonly SecretPattern[]
}

/**
 * Masks credentials in text: the keys and tokens of common services, private keys, passwords in URLs, and what is
 * assigned to a name like `API_KEY` or `"password"`. Each becomes `[redacted:NAME]` with the name of its pattern; a
 * text that was masked before stays as it is. JSON text stays JSON text.
 *
 * It finds what has a known form or a telling name. A secret with neither stays: look through an export before you
 * publish it.
 *
 * @example
 * const redactor = new Redactor({ patterns: [{ name: 'badge', pattern: /\bEMP-\d{6}\b/ }] })
 * redactor.redact('EMP-004211 uses ghp_0123456789abcdefghijklmnopqrstuvwxyz')
 * redactor.counts // { badge: 1, 'github-token': 1 }
 */
export class Redactor {
  /** How much was masked since the redactor was made, by the name of the pattern. */
  readonly counts: Record<string, number> = {}
  readonly #patterns: readonly SecretPattern[]

  /** @throws TypeError naming the pattern that is none. */
  constructor(options: RedactOptions = {}) {
    const { patterns = [] } = checkObject(options, 'The options of the redactor')
    if (!Array.isArray(patterns)) throw new TypeError('patterns must be an array of {name, pattern}.')
    this.#patterns = [...patterns.map(checkPattern), ...CREDENTIAL_PATTERNS].map(({ name, pattern }) => ({
      name,
      pattern: pattern instanceof RegExp ? places(pattern) : pattern,
    }))
  }

  /**
   * The text with its secrets masked.
   *
   * @throws TypeError if it is not a string, or if a function of `patterns` gives a place that is not in the text.
   */
  redact(text: string): string {
    let masked = ''
    let after = 0
    for (const { start, end, name } of this.#secrets(checkText(text, 'The text to redact'))) {
      masked += `${text.slice(after, start)}[redacted:${name}]`
      after = end
      count(this.counts, name)
    }
    return after === 0 ? text : masked + text.slice(after)
  }

  /** Where the secrets are, in order; those that overlap are one. */
  #secrets(text: string): Secret[] {
    const found: Secret[] = []
    for (const [rank, { name, pattern }] of this.#patterns.entries()) {
      if (typeof pattern !== 'function') continue
      for (const [start, end] of pattern(text)) {
        checkPlace(start, end, text, name)
        if (start < end) found.push({ start, end, name, rank })
      }
    }
    found.sort((a, b) => a.start - b.start)
    const apart: Secret[] = []
    for (const secret of found) {
      const last = apart.at(-1)
      if (!last || secret.start >= last.end) {
        apart.push(secret)
        continue
      }
      last.end = Math.max(last.end, secret.end)
      if (secret.rank < last.rank) Object.assign(last, { name: secret.name, rank: secret.rank })
    }
    return apart
  }
}

interface Secret {
  start: number
  end: number
  name: string
  rank: number
}

/**
 * Masks credentials in one text, as a {@link Redactor} does.
 *
 * @returns the masked text, and how much was masked by the name of the pattern.
 * @throws TypeError if it is not a string, or naming the pattern that is none.
 */
export function redact(
  text: string,
  options: RedactOptions = {},
): { text: string; counts: Record<string, number> } {
  const redactor = new Redactor(options)
  return { text: redactor.redact(text), counts: redactor.counts }
}

/**
 * A copy of a JSON value with the secrets of all its texts masked, names of properties included. A text under a name
 * like `api_key` is masked whole.
 */
export function redactJson<T extends JsonValue>(value: T, redactor: Redactor): T {
  return masked(value, redactor) as T
}

/** What names a record and what it belongs to: with a mask, an export would no longer hang together. */
const IDENTITY = new Set(['id', 'session_id', 'parent_session_id', 'client_id', 'role'])

/**
 * A copy of a session or a message with the secrets of all its texts masked, those inside JSON included; `messages` of
 * a session are masked as well. Ids and roles stay.
 *
 * @returns the copy, and how much was masked in it by the name of the pattern.
 * @throws TypeError if the record is not an object.
 */
export function redactRecord<T extends object>(
  record: T,
  redactor: Redactor,
): { record: T; counts: Record<string, number> } {
  const before = { ...redactor.counts }
  const copy = maskedRecord(checkObject(record, 'The record'), redactor) as T
  return { record: copy, counts: countsSince(redactor.counts, before) }
}

function maskedRecord(record: object, redactor: Redactor): object {
  const entries = Object.entries(record).map(([name, value]) => {
    if (IDENTITY.has(name)) return [name, value]
    if (name === 'messages' && Array.isArray(value))
      return [name, value.map((message) => maskedRecord(checkObject(message, 'A message'), redactor))]
    return [name, maskedProperty(name, value, redactor)]
  })
  return Object.fromEntries(entries)
}

function masked(value: unknown, redactor: Redactor): unknown {
  if (typeof value === 'string') return redactor.redact(value)
  if (Array.isArray(value)) return value.map((item) => masked(item, redactor))
  if (typeof value !== 'object' || value === null) return value
  const copy = new Map<string, unknown>()
  for (const [name, item] of Object.entries(value)) {
    let free = redactor.redact(name)
    // Two names may look alike once they are masked.
    while (copy.has(free)) free += '_'
    copy.set(free, maskedProperty(name, item, redactor))
  }
  return Object.fromEntries(copy)
}

function maskedProperty(name: string, value: unknown, redactor: Redactor): unknown {
  if (typeof value !== 'string' || !isSecretProperty(name, value)) return masked(value, redactor)
  count(redactor.counts, 'secret')
  return '[redacted:secret]'
}

function places(pattern: RegExp): (text: string) => Iterable<[start: number, end: number]> {
  const everywhere = new RegExp(pattern, [...new Set(`${pattern.flags.replace('y', '')}dg`)].join(''))
  return function* (text) {
    for (const { indices } of text.matchAll(everywhere)) {
      const place = indices?.groups?.secret ?? indices?.[0]
      if (place) yield place
    }
  }
}

function checkPattern(value: unknown, index: number): SecretPattern {
  const { name, pattern } = checkObject(value, `patterns[${index}]`)
  // The name is written into JSON text.
  if (typeof name !== 'string' || !/^[\w.-]{1,64}$/.test(name))
    throw new TypeError(`patterns[${index}].name must be 1 to 64 letters, digits, '-', '_' or '.'.`)
  if (!(pattern instanceof RegExp) && typeof pattern !== 'function')
    throw new TypeError(
      `patterns[${index}].pattern must be a regular expression, or a function that gives places.`,
    )
  return value as SecretPattern
}

function checkPlace(start: number, end: number, text: string, name: string): void {
  if (!Number.isInteger(start) || !Number.isInteger(end) || start < 0 || end < start || end > text.length)
    throw new TypeError(
      `The pattern '${name}' gave the place ${start} to ${end}, which is not in a text of ${text.length}.`,
    )
}
