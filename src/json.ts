export type JsonValue = string | number | boolean | null | JsonObject | JsonArray
export type JsonArray = readonly JsonValue[]
export interface JsonObject {
  readonly [key: string]: JsonValue | undefined
}

/** The text of a JSON column: what the driver returns and takes. `T` is what it parses to. */
export type JsonText<T> = string & { readonly __json?: T }

/** Levels of nesting that both JSON.parse and SQLite's JSON functions take. */
const MAX_DEPTH = 900

/**
 * The JSON text of a value.
 *
 * @throws TypeError naming the path of the first value that JSON cannot carry: BigInt, Date, Map, a class
 * instance, a function, a circle, NaN, an integer beyond 2^53, `undefined` in
 * an array, or more than 900 levels of nesting. A property that is
 * `undefined` is left out, as `JSON.stringify` does.
 */
export function toJson<T>(value: T, path: string): JsonText<T> {
  check(value, path, new Set())
  return JSON.stringify(value)
}

/** Whether a value has more levels of nesting than {@link toJson} takes. */
export function isTooDeep(value: unknown, levels = MAX_DEPTH): boolean {
  if (typeof value !== 'object' || value === null) return false
  return levels === 0 || Object.values(value).some((item) => isTooDeep(item, levels - 1))
}

function check(value: unknown, path: string, inside: Set<object>): void {
  if (value === null || typeof value === 'string' || typeof value === 'boolean') return
  if (typeof value === 'number') {
    if (!Number.isFinite(value))
      throw new TypeError(`${path} is ${value}, which JSON cannot carry: use null or a string.`)
    if (Number.isInteger(value) && !Number.isSafeInteger(value) && Math.abs(value) < 1e21)
      throw new TypeError(
        `${path} is ${value}, an integer beyond 2^53 that would not come back exactly: use a string.`,
      )
    return
  }
  if (typeof value !== 'object')
    throw new TypeError(
      `${path} is a ${typeof value}, which JSON cannot carry: leave it out or use a string.`,
    )
  if (inside.has(value)) throw new TypeError(`${path} contains itself: JSON cannot carry a circle.`)
  if (inside.size >= MAX_DEPTH)
    throw new TypeError(`${path.slice(0, 80)}… is nested deeper than ${MAX_DEPTH} levels: flatten it.`)
  inside.add(value)
  if (Array.isArray(value)) {
    for (let index = 0; index < value.length; index++) check(value[index], `${path}[${index}]`, inside)
  } else {
    const prototype = Object.getPrototypeOf(value)
    if (prototype !== Object.prototype && prototype !== null)
      throw new TypeError(
        `${path} is a ${prototype.constructor?.name ?? 'class instance'}, which JSON cannot carry: use plain objects, arrays and strings.`,
      )
    for (const [key, item] of Object.entries(value))
      if (item !== undefined) check(item, `${path}.${key}`, inside)
  }
  inside.delete(value)
}
