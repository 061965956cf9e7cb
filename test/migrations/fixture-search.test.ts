import { describe, expect, test } from 'vitest'
import {
  type Asked,
  type Cell,
  copyFixture,
  type Fixture,
  fixtures,
  type Row,
} from '../../scripts/fixtures/stored.ts'
import type { SearchOptions, StateStore } from '../../src/index.ts'
import { newPath, openForTest } from '../support/stores.ts'

const readable = fixtures().filter(({ stored }) => stored !== undefined)
const named = (list: Fixture[]) => list.map((fixture) => [fixture.name, fixture] as const)
const asked = ({ stored }: Fixture) => (stored?.search ?? []).filter(({ error }) => error === undefined)

/** What Hermes finds although a store must not. */
const NOT_FOUND: Record<string, { ids: number[]; reason: string }> = {
  'migrated/v6-to-v26: chat-send': {
    ids: [20],
    reason:
      'It has chat_send; where the word index cannot be relied on, the text is looked for as it was typed.',
  },
}

function text(cell: Cell | undefined): string {
  if (cell === null || cell === undefined) return ''
  if (typeof cell !== 'object') return String(cell)
  return Buffer.from('$blob_hex' in cell ? cell.$blob_hex : cell.$text_hex, 'hex').toString('utf8')
}

const messagesOf = ({ stored }: Fixture): (Row & { id: number })[] =>
  stored!.sessions.flatMap(({ messages }) => messages)

/** Messages that were taken back: a search of a store leaves them out. */
const undoneOf = (fixture: Fixture) =>
  messagesOf(fixture)
    .filter(({ active, compacted }) => active === 0 && compacted !== 1)
    .map(({ id }) => id)

function toOptions({
  source_filter,
  exclude_sources,
  role_filter,
}: NonNullable<Asked['args']>): SearchOptions {
  return { sources: source_filter, excludeSources: exclude_sources, roles: role_filter }
}

async function idsOf(store: StateStore, query: string, options: SearchOptions = {}): Promise<number[]> {
  const hits = await store.search.messages(query, { ...options, limit: 1_000, context: 0 })
  return hits.map(({ id }) => id)
}

async function opened(fixture: Fixture): Promise<StateStore> {
  const path = newPath()
  copyFixture(fixture, path)
  return openForTest({ path })
}

describe.skipIf(readable.length === 0)(
  'searches of files of Hermes (skipped without ../shared/fixtures)',
  () => {
    test.for(named(readable.filter((fixture) => asked(fixture).length > 0)))(
      '%s: whatever Hermes finds is found',
      async ([name, fixture]) => {
        const store = await opened(fixture)
        const undone = undoneOf(fixture)
        const missing: string[] = []
        for (const { query, args = {}, ids = [] } of asked(fixture)) {
          const found = new Set(await idsOf(store, query, toOptions(args)))
          const except = new Set([...undone, ...(NOT_FOUND[`${name}: ${query}`]?.ids ?? [])])
          const lost = ids.filter((id) => !found.has(id) && !except.has(id))
          if (lost.length > 0) missing.push(`${query} ${JSON.stringify(args)}: ${lost} of ${ids}`)
        }
        expect(missing).toEqual([])
      },
    )

    test.for(named(readable))('%s: every script is found', async ([_, fixture]) => {
      const store = await opened(fixture)
      const undone = undoneOf(fixture)
      for (const query of ['배포', '修复 构建', '🚀', 'ｶﾅ', '東京', 'データ', 'مرحبا', 'שלום']) {
        const holders = messagesOf(fixture)
          .filter(({ id }) => !undone.includes(id))
          .filter(({ content, tool_name, tool_calls }) => {
            const fields = [content, tool_name, tool_calls].map(text)
            return query.split(' ').every((term) => fields.some((field) => field.includes(term)))
          })
          .map(({ id }) => id)
        expect(await idsOf(store, query), query).toEqual(expect.arrayContaining(holders))
        if (['배포', '修复 构建', '🚀', 'ｶﾅ'].includes(query)) expect(holders, query).not.toEqual([])
      }
    })
  },
)
