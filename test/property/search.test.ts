import Database from 'better-sqlite3'
import fc from 'fast-check'
import { describe, expect, onTestFinished, test } from 'vitest'
import { sanitizeFts5Query } from '../../src/index.ts'
import { anyQuery, anyText } from '../support/arbitraries.ts'
import { bothModes } from '../support/stores.ts'

test('FTS5 accepts the text of any query', () => {
  const db = new Database(':memory:')
  onTestFinished(() => {
    db.close()
  })
  db.exec(`create virtual table f using fts5(content); insert into f values ('a bc and or not near 中文')`)
  const match = db.prepare('select count(*) from f where f match ?').pluck()
  fc.assert(
    fc.property(anyQuery, (query) => {
      const sanitized = sanitizeFts5Query(query)
      expect(sanitized.isWellFormed()).toBe(true)
      if (sanitized !== '') match.get(sanitized)
    }),
    { numRuns: 1_000 },
  )
})

describe.each(bothModes)('in $name', (kind) => {
  test('no query is an error', async () => {
    const store = await kind.open()
    await store.sessions.create({ id: 's', source: 'cli' })
    await store.messages.append('s', { role: 'user', content: 'a bc and or not near 中文 🚀' })
    await fc.assert(
      fc.asyncProperty(anyQuery, async (query) => {
        for (const { id } of await store.search.messages(query)) expect(id).toBe(1)
      }),
      { numRuns: 400 },
    )
  })

  test('no sign in a query hides a message that holds its words', async () => {
    const store = await kind.open()
    await store.sessions.create({ id: 's', source: 'cli' })
    const word = anyText.filter((text) => !/["*\s]/.test(text) && !/^(AND|OR|NOT)$/.test(text))
    await fc.assert(
      fc.asyncProperty(fc.array(word, { minLength: 1, maxLength: 4 }), async (words) => {
        const id = await store.messages.append('s', {
          role: 'user',
          content: ['before', ...words.toReversed(), 'alpha'].join(' '),
        })
        const hits = await store.search.messages(['alpha', ...words].join(' '), { limit: 10_000, context: 0 })
        expect(hits.map((hit) => hit.id)).toContain(id)
      }),
      { numRuns: 300 },
    )
  })

  test('a phrase finds the message that it was copied from', async () => {
    const store = await kind.open()
    await store.sessions.create({ id: 's', source: 'cli' })
    const text = anyText.filter((part) => !part.includes('"'))
    await fc.assert(
      fc.asyncProperty(text, async (part) => {
        const content = `before alpha${part}beta after`
        const id = await store.messages.append('s', { role: 'user', content })
        const hits = await store.search.messages(`"alpha${part}beta"`, { limit: 10_000, context: 0 })
        expect(hits.map((hit) => hit.id)).toContain(id)
      }),
      { numRuns: 200 },
    )
  })

  test('any source is found by its name', async () => {
    const store = await kind.open()
    await fc.assert(
      fc.asyncProperty(anyText, async (text) => {
        const source = `x${text}`
        const session = await store.sessions.create({ source })
        const id = await store.messages.append(session, { role: source, content: 'needle' })
        expect(await store.sessions.count({ source })).toBeGreaterThan(0)
        expect((await store.sessions.list({ source })).map((found) => found.id)).toContain(session)
        for (const filter of [{ sources: [source] }, { roles: [source] }])
          expect((await store.search.messages('needle', filter)).map((hit) => hit.id)).toContain(id)
        const others = await store.search.messages('needle', { excludeSources: [source], limit: 10_000 })
        expect(others.map((hit) => hit.id)).not.toContain(id)
      }),
      { numRuns: 60 },
    )
  })
})
