export type JsonValue = string | number | boolean | null | JsonObject | JsonArray
export type JsonArray = readonly JsonValue[]
export interface JsonObject {
  readonly [key: string]: JsonValue | undefined
}

/** The text of a JSON column: what the driver returns and takes. `T` is what it parses to. */
export type JsonText<T> = string & { readonly __json?: T }

/**
 * The JSON text of a value.
 *
 * @throws TypeError naming the path of the first value that JSON cannot carry: BigInt, Date, Map, a class
 * instance, a function, a circle, NaN, an integer beyond 2^53, or `undefined` in an array. A property that is
 * `undefined` is left out, as `JSON.stringify` does.
 */
export function toJson<T>(value: T, path: string): JsonText<T> {
  check(value, path, new Set())
  return JSON.stringify(value)
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
