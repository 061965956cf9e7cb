import { existsSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { openStateStore, type SearchHit, type SearchOptions, type StateStore } from '../../src/index.ts'
import { searched } from '../../src/search/projection.ts'
import { readConversations } from '../../src/transfer/read-conversations.ts'
import { rawRows } from '../support/stores.ts'

const FOLDER = join(import.meta.dirname, '../../../shared/data')
const files = existsSync(FOLDER)
  ? readdirSync(FOLDER).filter((file) => /\.(json|jsonl|traj)$/.test(file))
  : []

const PAGE = 50
const PAGES = 10

/** Kinds of queries: what is cut out of a text, and how it is typed. */
const KINDS: Record<string, { pattern: RegExp; typed: (piece: string) => string; least: number }> = {
  'a word': { pattern: /(?<![\p{L}\p{N}])\p{L}{4,}(?![\p{L}\p{N}])/gu, typed: (word) => word, least: 40 },
  'a phrase of two words': { pattern: /[A-Za-z]{2,} [A-Za-z]{2,}(?!\w)/g, typed: quoted, least: 25 },
  'a phrase of three words': { pattern: /[A-Za-z]+ [A-Za-z]+ [A-Za-z]+(?!\w)/g, typed: quoted, least: 25 },
  'a Chinese character': { pattern: /\p{sc=Han}/gu, typed: (piece) => piece, least: 15 },
  'two Chinese characters': { pattern: /\p{sc=Han}{2}/gu, typed: (piece) => piece, least: 25 },
  'a path': { pattern: /(?<![\w/.])[\w.-]*(?:\/[\w.-]*\w){2,}(?![\w/])/g, typed: (path) => path, least: 20 },
  'an address': {
    pattern: /(?<![\p{L}\p{N}.-])[\w.-]+@[\w-]+\.\w+(?![\p{L}\p{N}])/gu,
    typed: (address) => address,
    least: 10,
  },
  'an address and the Chinese character that it is glued to': {
    pattern: /\p{sc=Han}[\w.-]+@[\w-]+\.\w+/gu,
    typed: (piece) => piece,
    least: 10,
  },
  'a piece of JSON': { pattern: /"[a-z_]{3,}": ?"[^"\\\n]{2,20}"/g, typed: (json) => json, least: 20 },
  'a line of code': {
    pattern: /(?<=\n) *(?:def|class|import|from|return|raise) [^"\n]{3,60}(?=\n)/g,
    typed: (line) => line,
    least: 10,
  },
  'the name of a tool': { pattern: /^[a-z]+_[a-z_]+$/g, typed: (name) => name, least: 10 },
}

function quoted(piece: string): string {
  return `"${piece}"`
}

/** Numbers from 0 to below 1, the same in each run. */
function seeded(seed: number): () => number {
  let state = seed
  return () => {
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296
  }
}

interface Row {
  id: number
  session_id: string
  role: string
  content: string | null
  tool_name: string | null
  tool_calls: string | null
}

describe.skipIf(files.length === 0)('search of real conversations (skipped without ../shared/data)', () => {
  let store: StateStore
  let rows: Row[]

  beforeAll(async () => {
    store = await openStateStore({ path: ':memory:' })
    for (const file of files)
      for await (const conversation of readConversations(join(FOLDER, file))) {
        const { messages, source_format, source, model, system_prompt } = conversation
        const id = await store.sessions.create({ source: source ?? source_format, model, system_prompt })
        await store.messages.appendMany(id, messages)
      }
    rows = await rawRows<Row>(
      store,
      'select id, session_id, role, content, tool_name, tool_calls from messages order by id',
    )
  }, 120_000)
  afterAll(() => store.close())

  /** Whether a message is among the hits, and whether they came to their end. */
  async function look(query: string, id: number, options: SearchOptions = {}) {
    let after: SearchHit | undefined
    for (let page = 0; page < PAGES; page++) {
      const hits = await store.search.messages(query, { ...options, limit: PAGE, after, context: 0 })
      if (hits.some((hit) => hit.id === id && hit.matched === 'all')) return 'found'
      after = hits.at(-1)
      if (hits.length < PAGE) return 'not found'
    }
    return 'too many'
  }

  test('all of them are there', async () => {
    expect(await store.sessions.count()).toBeGreaterThan(600)
    expect(rows.length).toBeGreaterThan(3_000)
  })

  test.for(Object.entries(KINDS))(
    '%s finds the message it was cut from',
    { timeout: 60_000 },
    async ([, kind]) => {
      const random = seeded(20_260)
      const pick = <Item>(list: readonly Item[]) => list[Math.floor(random() * list.length)]!
      const holders = rows.flatMap((row) => {
        const pieces = Object.values(searched(row)).flatMap((text) => text.match(kind.pattern) ?? [])
        return pieces.length > 0 ? [{ row, pieces }] : []
      })
      expect(holders.length).toBeGreaterThan(0)
      const lost: unknown[] = []
      const seen: Record<string, number> = { found: 0, 'not found': 0, 'too many': 0 }
      for (let made = 0; made < kind.least; made++) {
        const { row, pieces } = pick(holders)
        const query = kind.typed(pick(pieces))
        const here = await look(query, row.id, { sessionId: row.session_id })
        const anywhere = await look(query, row.id)
        seen[anywhere]!++
        if (here !== 'found' || anywhere === 'not found') lost.push({ query, id: row.id, here, anywhere })
      }
      expect(lost).toEqual([])
      expect(seen.found).toBeGreaterThan(0)
    },
  )
})
