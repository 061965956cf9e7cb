import { createHash } from 'node:crypto'
import { BadBundleError } from '../errors.ts'
import type { JsonValue } from '../json.ts'
import { parseJson } from './guards.ts'
import { BUNDLE_VERSION, endSchema, headerSchema } from './records.ts'

/** Whether the first line of a file is the header of a bundle. */
export function isBundleHeader(value: unknown): boolean {
  return (
    typeof value === 'object' &&
    value !== null &&
    'type' in value &&
    value.type === 'header' &&
    'format' in value &&
    value.format === 'hermes-state'
  )
}

/**
 * The records of a bundle between its first and its last line. That it is whole is known at its end.
 *
 * @throws BadBundleError for a file that was cut off or changed, or has a later form.
 */
export async function* readBundle(path: string, lines: AsyncIterable<string>): AsyncGenerator<JsonValue> {
  const hash = createHash('sha256')
  let number = 0
  let ended = false
  const found = { sessions: 0, messages: 0 }
  for await (const line of lines) {
    number++
    if (ended && line.trim() !== '') throw bad(path, `has something after its last record, in line ${number}`)
    if (ended) continue
    const record = parseJson(line)
    if (record === undefined) throw bad(path, `is cut off, or damaged in line ${number}`)
    if (number === 1) assertHeader(path, record)
    else {
      const end = endSchema.safeParse(record)
      if (end.success) {
        ended = true
        const { sha256, sessions, messages } = end.data
        if (sha256 !== hash.digest('hex') || sessions !== found.sessions || messages !== found.messages)
          throw bad(path, 'is not what was exported: something of it was changed or is missing')
        continue
      }
      if (typeof record === 'object' && record !== null && 'messages' in record) {
        if (record.type === 'session') found.sessions++
        if (Array.isArray(record.messages)) found.messages += record.messages.length
      }
      yield record
    }
    hash.update(line).update('\n')
  }
  if (!ended) throw bad(path, 'is cut off: its last record is missing')
}

function assertHeader(path: string, record: JsonValue): void {
  const { success, error } = headerSchema.safeParse(record)
  if (success) return
  const version = typeof record === 'object' && record !== null && 'version' in record ? record.version : 0
  if (typeof version === 'number' && version > BUNDLE_VERSION)
    throw new BadBundleError(
      `'${path}' has version ${version} of the bundle's form, and this package reads up to ${BUNDLE_VERSION}: update hermes-state to import it.`,
    )
  throw bad(path, `has a first line that is no header (${error.issues[0]?.path.join('.')})`)
}

function bad(path: string, what: string): BadBundleError {
  return new BadBundleError(`'${path}' ${what}. Nothing was imported: get the file again.`)
}
