import { beforeEach, describe, expect, it } from 'vitest'
import type { SearchHit, StateStore } from '../../src/index.ts'
import { bigramPhrase } from '../../src/search/bigrams.ts'
import { expectIndexesSound, matching, query } from '../support/index-damage.ts'
import { type Child, expectSound, pythonSqlite, start } from '../support/processes.ts'
import { eventsOf, newPath, openForTest } from '../support/stores.ts'

const LATIN = ['walrus', 'otter', 'beaver', 'seal']
const UNSEGMENTED = ['海象', '海獭', '河狸', '海豹']
const text = (kind: number, n: number) => `${LATIN[kind]} ${n} 我看见${UNSEGMENTED[kind]}了`

describe.skipIf(!pythonSqlite)('the indexes of a file that a Python program writes', () => {
  let path: string
  let python: Child
  const ask = async (...call: unknown[]) => JSON.parse(await python.ask(JSON.stringify(call)))

  beforeEach(async () => {
    path = newPath()
    const store = await openForTest({ path })
    await store.sessions.create({ id: 's', source: 'cli' })
    await store.messages.appendMany(
      's',
      Array.from({ length: 20 }, (_, n) => ({ role: 'user', content: text(n % 2, n) })),
    )
    await store.close()
    python = await start('hermes_writer.py', path)
  })

  /** Inserts, rewrites and deletes messages, those of the store and its own. */
  async function work(): Promise<void> {
    const own: number[] = []
    for (let n = 0; n < 30; n++) own.push(await ask('append', 's', 'user', text(n % 4, n)))
    await ask('append', 's', 'tool', `${'x '.repeat(5_000)}walrus`)
    await ask('append', 's', 'user', '\0json:[{"type":"text","text":"otter 海獭"}]')
    await ask('append', 's', 'user', 'seal data:image/png;base64,iVBORw0KGgo beaver 河狸')
    await ask('append', 's', 'assistant', null, [
      { id: 'c', type: 'function', function: { name: 'look', arguments: '{"a":"beaver\\n河狸"}' } },
    ])
    for (const id of [1, 2, 3, own[0], own[5]]) await ask('rewrite', id, text(3, Number(id)))
    await ask('rewrite', 4, 'plain')
    await ask('rewrite', own[1], null)
    for (const id of [5, 6, own[2], own[3]]) await ask('delete', id)
    await ask('rewrite', 1, text(2, 1))
    // Its own, more than once.
    const last = await ask('append', 's', 'user', '海象')
    await ask('rewrite', last, '海獭')
    await ask('delete', last)
    await ask('append', 's', 'user', '海豹')
  }

  const ids = async (store: StateStore, query: string) => {
    const found: number[] = []
    for (let after: SearchHit | undefined, page: SearchHit[]; ; after = page.at(-1)) {
      page = await store.search.messages(query, { limit: 1_000, ...(after && { after }) })
      found.push(...page.map(({ id }) => id))
      if (page.length < 1_000) return found.sort((a, b) => a - b)
    }
  }

  /** Expects both routes to find exactly what is there, both indexes to hold it, and no damage. */
  async function expectRight(store: StateStore): Promise<void> {
    for (const [words, route] of [
      [LATIN, 'words'],
      [UNSEGMENTED, 'unsegmented'],
    ] as const)
      for (const word of words) {
        // As json.dumps writes it.
        const escaped = word.replaceAll(/[^\0-\x7f]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16)}`)
        const there = query<number>(
          path,
          'select id from hs_message_text where instr(content, ?) or instr(tool_calls, ?) order by id',
          word,
          escaped,
        )
        expect(there.length).toBeGreaterThan(0)
        expect({ word, ids: await ids(store, word) }).toEqual({ word, ids: there })
        expect(await store.search.messages(word, { limit: 1 })).toMatchObject([{ route }])
        expect(
          route === 'words'
            ? matching(path, 'messages_fts', word)
            : matching(path, 'hs_bigrams', bigramPhrase(word)),
        ).toEqual(there)
      }
    expectIndexesSound(path)
    expect(await ask('check')).toBe('ok')
    expect(query(path, 'select message_id from hs_bigrams_pending')).toEqual([])
    expect(eventsOf(store, 'word-index-unused')).toEqual([])
    expect(eventsOf(store, 'index-put-aside')).toEqual([])
    expect((await store.maintenance.check()).indexes).toEqual([
      { index: 'words', problem: null },
      { index: 'unsegmented', problem: null },
    ])
    expect(python.stderr).toBe('')
    expect(python.lines.filter((line) => line.startsWith('error'))).toEqual([])
  }

  it('are right when it wrote while a store was open', async () => {
    const store = await openForTest({ path })
    expect(await ids(store, '海象')).toHaveLength(10)
    await work()
    await expectRight(store)
    expectSound(path)
  })

  it('are right when it wrote while none was open', async () => {
    await work()
    const store = await openForTest({ path })
    expect(store.info).toMatchObject({ migrations: [], mended: [], wordIndexProblem: null })
    await expectRight(store)
    expectSound(path)
  })

  it('are right when both write at once', async () => {
    const store = await openForTest({ path })
    let theirs = true
    const working = work().finally(() => {
      theirs = false
    })
    for (let n = 0; theirs; n++) {
      await store.messages.append('s', { role: 'user', content: text(n % 4, n) })
      if (n % 5 === 0) await store.search.messages('海象')
    }
    await working
    await expectRight(store)
    expectSound(path)
  })

  it('are right for it too: it finds what the store wrote', async () => {
    const store = await openForTest({ path })
    const id = await store.messages.append('s', { role: 'user', content: 'a lynx 猞猁 tiếng' })
    expect(await ask('found', 'lynx')).toEqual([id])
    expect(await ask('found', 'tieng')).toEqual([id])
    await ask('rewrite', id, 'a quokka 短尾矮袋鼠')
    expect(await ids(store, '猞猁')).toEqual([])
    expect(await ids(store, '袋鼠')).toEqual([id])
    await ask('delete', id)
    expect(await ids(store, '袋鼠')).toEqual([])
    expect(await ids(store, 'quokka')).toEqual([])
    await store.messages.replaceAll('s', [{ role: 'user', content: 'walrus 海象' }])
    expect(await ask('found', 'walrus OR otter')).toEqual([id + 1])
    expect(await ids(store, '海象')).toEqual([id + 1])
    expectSound(path)
    expect(await ask('check')).toBe('ok')
  })
})
