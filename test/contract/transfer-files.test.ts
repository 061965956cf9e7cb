import { readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { gunzipSync, gzipSync } from 'node:zlib'
import fc from 'fast-check'
import { beforeAll, describe, expect, test } from 'vitest'
import { BadBundleError, openStateStore, type StateStore } from '../../src/index.ts'
import { newFolder, newPath, openForTest } from '../support/stores.ts'
import { messages, session, sizes } from '../support/transfer.ts'

const SESSIONS = { a: 3, b: 0, c: 5 }

/** The text of a bundle of the sessions above, a line each with a header and an end. */
let bundle: string
beforeAll(async () => {
  const store = await openStateStore({ path: ':memory:' })
  await store.transfer.importSessions([
    session('a', { title: 'Tea', messages: messages(3) }),
    session('b', { parent_session_id: 'a' }),
    session('c', { model_config: { top_p: 1 }, messages: messages(5) }),
  ])
  const lines: string[] = []
  for await (const record of store.transfer.exportAll()) lines.push(`${JSON.stringify(record)}\n`)
  bundle = lines.join('')
  await store.close()
})

function file(content: string | Uint8Array, name = 'sessions.jsonl'): string {
  const path = join(newFolder(), name)
  writeFileSync(path, content)
  return path
}

/** Imports a file that must be refused, and returns the error. Nothing of it may be stored. */
async function refusal(store: StateStore, path: string): Promise<unknown> {
  const bytes = readFileSync(path)
  const error = await store.transfer.importFile(path).then(
    () => undefined,
    (error: unknown) => error,
  )
  expect(await sizes(store)).toEqual({})
  expect(readFileSync(path).equals(bytes)).toBe(true)
  return error
}

test('a whole bundle is imported, plain or packed, whatever it is called', async () => {
  for (const content of [bundle, gzipSync(bundle), bundle.trimEnd(), `${bundle}\n`]) {
    const store = await openForTest({ path: ':memory:' })
    expect(await store.transfer.importFile(file(content, 'some.thing'))).toMatchObject({ imported: 3 })
    expect(await sizes(store)).toEqual(SESSIONS)
  }
})

describe('nothing is stored of a bundle', () => {
  let store: StateStore
  const changes: [what: string, change: (lines: string[]) => string[]][] = [
    ['with two lines swapped', ([header, a, b, ...rest]) => [header!, b!, a!, ...rest]],
    ['with a line doubled', ([header, a, ...rest]) => [header!, a!, a!, ...rest]],
    ['with a line left out', ([header, _, ...rest]) => [header!, ...rest]],
    ['with a line added', ([header, ...rest]) => [header!, JSON.stringify(session('d')), ...rest]],
    ['with something after its end', (lines) => [...lines, JSON.stringify(session('d'))]],
    ['with its end twice', (lines) => [...lines, lines.at(-1)!]],
    ['with CRLF at its line ends', (lines) => lines.map((line) => `${line}\r`)],
    ['with its header alone', ([header]) => [header!]],
    [
      'with another count in its end',
      (lines) => lines.map((line) => line.replace('"sessions":3', '"sessions":4')),
    ],
    ['with an empty line in it', ([header, ...rest]) => [header!, '', ...rest]],
  ]
  test.each(changes)('%s', async (_, change) => {
    store = await openForTest({ path: ':memory:' })
    const path = file(
      change(bundle.trimEnd().split('\n'))
        .map((line) => `${line}\n`)
        .join(''),
    )
    const error = await refusal(store, path)
    expect(error).toBeInstanceOf(BadBundleError)
    expect(String(error)).toContain(path)
    expect(String(error)).toContain('Nothing was imported')
  })

  test('of a later version, which says to update', async () => {
    store = await openForTest({ path: ':memory:' })
    const error = await refusal(store, file(bundle.replace('"version":1', '"version":2')))
    expect(error).toBeInstanceOf(BadBundleError)
    expect(String(error)).toMatch(/version 2 .* reads up to 1: update hermes-state/)
  })

  test('that is cut off, wherever', async () => {
    store = await openForTest({ path: ':memory:' })
    const path = file('')
    // The last line feed is no loss.
    for (let length = 0; length < bundle.length - 1; length += length % 7 === 0 ? 5 : 3) {
      writeFileSync(path, bundle.slice(0, length))
      expect(await refusal(store, path)).toSatisfy(
        (error) => error instanceof BadBundleError || error instanceof TypeError,
      )
    }
    for (let from = bundle.indexOf('\n'); from !== -1; from = bundle.indexOf('\n', from + 1)) {
      writeFileSync(path, bundle.slice(0, from + 1))
      if (from + 1 < bundle.length) expect(await refusal(store, path)).toBeInstanceOf(BadBundleError)
    }
  })

  test('of which one character was changed', async () => {
    store = await openForTest({ path: ':memory:' })
    const path = file('')
    for (let place = 0; place < bundle.length - 1; place += 11) {
      const other = bundle[place] === 'x' ? 'y' : 'x'
      writeFileSync(path, bundle.slice(0, place) + other + bundle.slice(place + 1))
      expect(await refusal(store, path)).toSatisfy(
        (error) => error instanceof BadBundleError || error instanceof TypeError,
      )
    }
  })

  test('that is packed, and cut off or damaged', async () => {
    store = await openForTest({ path: ':memory:' })
    const packed = gzipSync(bundle)
    const path = file('', 'sessions.jsonl.gz')
    for (let length = 3; length < packed.length; length += 17) {
      writeFileSync(path, packed.subarray(0, length))
      expect(await refusal(store, path)).toBeInstanceOf(BadBundleError)
    }
    const damaged = Buffer.from(packed)
    damaged.fill(0x55, 60, 70)
    writeFileSync(path, damaged)
    expect(await refusal(store, path)).toBeInstanceOf(BadBundleError)
  })
})

test.each([
  ['that is empty', ''],
  ['of white space', ' \n\n'],
  ['of text', 'Dear diary,\ntoday I imported myself.\n'],
  ['of HTML', '<!doctype html><p>Sign in'],
  ['of a number', '7\n'],
  ['of an object', '{"name": "hermes-state", "version": "1"}'],
  ['of zeros', '\0'.repeat(4096)],
])('a file %s is refused by its name', async (_, content) => {
  const store = await openForTest({ path: ':memory:' })
  const path = file(content)
  const error = await refusal(store, path)
  expect(error).toBeInstanceOf(TypeError)
  expect(String(error)).toContain(path)
})

test('a file that is not there, and a path that is none', async () => {
  const store = await openForTest({ path: ':memory:' })
  await expect(store.transfer.importFile(join(newFolder(), 'missing'))).rejects.toMatchObject({
    code: 'ENOENT',
  })
  for (const path of [undefined, 7, null])
    await expect(store.transfer.importFile(path as never)).rejects.toBeInstanceOf(TypeError)
})

test('a state.db is imported without being written, also the one that is open', async () => {
  const path = newPath()
  const from = await openForTest({ path })
  await from.transfer.importFile(file(bundle))
  expect(await from.transfer.importFile(path)).toMatchObject({ imported: 0 })
  await from.maintenance.checkpoint()
  const before = {
    bytes: readFileSync(path),
    files: readdirSync(dirname(path)),
    time: statSync(path).mtimeMs,
  }
  const store = await openForTest({ path: ':memory:' })
  expect(await store.transfer.importFile(path)).toMatchObject({ imported: 3, messages: 8, not_carried: {} })
  expect(await sizes(store)).toEqual(SESSIONS)
  expect(readFileSync(path).equals(before.bytes)).toBe(true)
  expect(readdirSync(dirname(path))).toEqual(before.files)
})

/** A change of one place in a line of JSON: a value in it becomes another, or goes. */
const mutation = fc.record({
  line: fc.nat({ max: 4 }),
  place: fc.nat({ max: 200 }),
  value: fc.oneof(
    fc.constantFrom(undefined, null, '', 'a', 'c', 0, -1, 1.5, 1e300, true, [], {}, [[1]], {
      type: 'header',
    }),
    fc.jsonValue({ maxDepth: 2 }),
  ),
})

/** Replaces the value at a place, counted through the whole of a JSON value. */
function mutate(value: unknown, place: { left: number }, by: unknown): unknown {
  if (place.left-- === 0) return by
  if (Array.isArray(value)) return value.map((item) => mutate(item, place, by))
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, mutate(item, place, by)]))
}

test('whatever records are given, an import stores whole sessions and says why it refuses others', async () => {
  const lines: unknown[] = bundle
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line))
  await fc.assert(
    fc.asyncProperty(
      fc.array(mutation, { minLength: 1, maxLength: 3 }),
      fc.constantFrom('skip', 'new'),
      async (mutations, ids) => {
        const records = lines.map((record, line) =>
          mutations
            .filter((mutation) => mutation.line === line)
            .reduce((changed, { place, value }) => mutate(changed, { left: place }, value), record),
        )
        const store = await openStateStore({ path: ':memory:', worker: false, onEvent: () => {} })
        try {
          const report = await store.transfer.importSessions(records, { ids })
          const given = new Map<unknown, unknown>()
          for (const record of records.toReversed())
            if (typeof record === 'object' && record !== null && 'id' in record && 'messages' in record)
              given.set(record.id, record.messages)
          const stored = await sizes(store)
          expect(Object.keys(stored)).toHaveLength(report.imported)
          for (const { id, status, reason } of report.sessions) {
            if (status === 'refused') expect(reason).toMatch(/\.$/)
            else {
              const list = given.get(id)
              expect(stored[id!]).toBe(
                Array.isArray(list)
                  ? list.filter(({ inactive }) => inactive === undefined).length
                  : undefined,
              )
            }
          }
          const { integrity, rows } = await store.maintenance.check()
          expect(integrity).toEqual([])
          // Counters are what the records say.
          expect(rows).toMatchObject({ foreignKeys: { total: 0 }, lineageCycles: { total: 0 } })
          expect(rows?.orphans.messages.total).toBe(0)
        } finally {
          await store.close()
        }
      },
    ),
    { numRuns: 150 },
  )
}, 60_000)

test('a bundle with any one change, hash and all, is imported in whole sessions or refused', async () => {
  const path = file('')
  await fc.assert(
    fc.asyncProperty(fc.nat({ max: 4 }), mutation, async (line, { place, value }) => {
      const lines = bundle.trimEnd().split('\n')
      lines[line] = JSON.stringify(mutate(JSON.parse(lines[line]!), { left: place }, value)) ?? ''
      const changed = lines.map((text) => `${text}\n`).join('')
      if (changed === bundle) return
      writeFileSync(path, gzipSync(changed))
      expect(gunzipSync(readFileSync(path)).toString()).toBe(changed)
      const store = await openStateStore({ path: ':memory:', worker: false })
      try {
        const error = await refusal(store, path)
        if (!(error instanceof BadBundleError)) expect(error).toBeInstanceOf(TypeError)
      } finally {
        await store.close()
      }
    }),
    { numRuns: 100 },
  )
}, 60_000)
