import { beforeEach, describe, expect, test } from 'vitest'
import { type SearchHit, type StateStore, UnsupportedSchemaError } from '../../src/index.ts'
import {
  ALL_DAMAGES,
  change,
  damage,
  expectIndexesSound,
  INDEXES,
  type IndexName,
  query,
  segments,
} from '../support/index-damage.ts'
import { checkIndexes, NEWER, newerFile } from '../support/newer-file.ts'
import { eventsOf, kinds, newPath, openForTest } from '../support/stores.ts'

const COUNT = 40
const QUERIES = ['walrus', 'walrus number', 'number 7', '海象', '这里 walrus', 'absent']
const message = (n: number) => ({ role: 'user', content: `walrus number ${n} 海象在这里` })

async function fill(store: StateStore, count = COUNT): Promise<void> {
  await store.sessions.create({ id: 's', source: 'cli' })
  for (let n = 0; n < count; n++) await store.messages.append('s', message(n))
}

/** What searches answer, and how. */
async function answers(store: StateStore) {
  const all: Pick<SearchHit, 'id' | 'route' | 'snippet'>[][] = []
  for (const text of QUERIES) {
    const hits = await store.search.messages(text, { limit: 10_000 })
    all.push(hits.map(({ id, route, snippet }) => ({ id, route, snippet })))
  }
  return all
}

async function problems(store: StateStore): Promise<Record<string, string | null>> {
  return Object.fromEntries(
    (await store.maintenance.check()).indexes.map(({ index, problem }) => [index, problem]),
  )
}

const REPORTED: Record<IndexName, string> = { messages_fts: 'words', hs_bigrams: 'unsegmented' }
const SOUND = { words: null, unsegmented: null }

describe('an index', () => {
  let path: string
  let store: StateStore

  beforeEach(async () => {
    path = newPath()
    store = await openForTest({ path })
    await fill(store)
  })

  test('is sound in a file that nobody damaged, and stays what it is', async () => {
    expect(await problems(store)).toEqual(SOUND)
    expect((await store.maintenance.check({ full: true })).indexes).toEqual([
      { index: 'words', problem: null },
      { index: 'unsegmented', problem: null },
    ])
    change(
      path,
      "insert into messages (session_id, role, content, timestamp) values ('s', 'user', '海獭', 1)",
    )
    expect(await problems(store)).toEqual(SOUND)
    await store.close()
    expect((await (await openForTest({ path, readonly: true })).maintenance.check()).indexes).toEqual([
      { index: 'words', problem: null },
      { index: 'unsegmented', problem: null },
    ])
  })

  describe.each(INDEXES)('%s', (index) => {
    const others = INDEXES.filter((name) => name !== index).map((name) => REPORTED[name])
    const changes = {
      'a lost trigger': `drop trigger ${index}_update`,
      'lost triggers': ['insert', 'update', 'delete']
        .map((event) => `drop trigger ${index}_${event}`)
        .join(';'),
      'no table': `drop table ${index}`,
    }
    const ways: [string, () => void][] = [
      // The sizes of texts are of no use to an index that is not ranked, and SQLite does not check them.
      ...ALL_DAMAGES.filter((kind) => !(index === 'hs_bigrams' && kind === 'lost sizes')).map(
        (kind): [string, () => void] => [kind, () => damage(path, index, kind)],
      ),
      ...Object.entries(changes).map(([kind, sql]): [string, () => void] => [kind, () => change(path, sql)]),
    ]

    test.each(ways)('with %s is reported, and nothing else is', async (kind, harm) => {
      // A store that has been open keeps what it has read of them.
      harm()
      let asked = store
      if (kind === 'lost settings') {
        await store.close()
        asked = await openForTest({ path, readonly: true })
      }
      const found = await problems(asked)
      expect(found[REPORTED[index]]).toEqual(expect.any(String))
      for (const other of others) expect(found[other]).toBeNull()
    })

    test.each(ways)('with %s is repaired', async (_, harm) => {
      const before = await answers(store)
      harm()
      await store.maintenance.repair()
      expect(await problems(store)).toEqual(SOUND)
      expectIndexesSound(path)
      expect(await answers(store)).toEqual(before)
      await store.messages.append('s', { role: 'user', content: 'otter 海獭' })
      expect(await store.search.messages('otter')).toMatchObject([{ route: 'words' }])
      expect(await store.search.messages('海獭')).toMatchObject([{ route: 'unsegmented' }])
      expect((await store.maintenance.check()).indexes.map(({ problem }) => problem)).toEqual([null, null])
      expect(eventsOf(store, 'index-put-aside')).toEqual([])
    })

    test.each(ways)('with %s is repaired after searches and writes have met it', async (_, harm) => {
      harm()
      await answers(store)
      await store.messages.appendMany('s', [message(100)]).catch(() => {})
      await store.maintenance.repair()
      expect(await problems(store)).toEqual(SOUND)
      expectIndexesSound(path)
      expect((await answers(store)).map((hits) => hits[0]?.route)).toEqual([
        'words',
        'words',
        'words',
        'unsegmented',
        'unsegmented',
        undefined,
      ])
      await store.close()
      expect((await openForTest({ path })).info).toMatchObject({ mended: [], wordIndexProblem: null })
    })
  })

  test('damage to both is reported of both', async () => {
    damage(path, 'messages_fts', 'lost sizes')
    damage(path, 'hs_bigrams', 'zeroed segments')
    expect(await problems(store)).toEqual({ words: expect.any(String), unsegmented: expect.any(String) })
    await store.maintenance.repair()
    expect(await problems(store)).toEqual(SOUND)
  })

  test('with other words than the messages have is reported', async () => {
    change(
      path,
      "insert into messages_fts(messages_fts, rowid, content) values ('delete', 7, 'number walrus')",
    )
    expect(await problems(store)).toEqual({ words: expect.any(String), unsegmented: null })
    await store.maintenance.repair()
    expect(await problems(store)).toEqual(SOUND)
  })

  test('is repaired while others write', async () => {
    change(
      path,
      `insert into messages (session_id, role, content, timestamp)
       with recursive n(i) as (select ${COUNT + 1} union all select i + 1 from n where i < 21000)
       select 's', 'user', 'seal ' || i || ' 海豹', i from n`,
    )
    let repaired = false
    const repair = store.maintenance.repair().finally(() => {
      repaired = true
    })
    let written = 0
    while (!repaired) {
      await store.messages.append('s', { role: 'user', content: `late 海獭 ${written++}` })
      await store.search.messages('seal', { limit: 1 })
    }
    await repair
    expect((await store.maintenance.check({ full: true })).indexes).toEqual([
      { index: 'words', problem: null },
      { index: 'unsegmented', problem: null },
    ])
    for (const text of ['late', '海獭'])
      expect(await store.search.messages(text, { limit: 100_000 })).toHaveLength(written)
    expect((await store.search.messages('20999'))[0]).toMatchObject({ id: 20_999, route: 'words' })
    expect(query(path, "select name from sqlite_schema where name glob 'hs_words*'")).toEqual([])
  })
})

describe.each(kinds)('looking after $name', (kind) => {
  test('makes one segment, and searches answer as before', async () => {
    const store = await kind.open()
    await fill(store)
    const before = await answers(store)
    const there = kind.additions ? INDEXES : INDEXES.slice(0, 1)
    if (kind.file) for (const index of there) expect(segments(store.info.path, index)).toBeGreaterThan(1)
    await store.maintenance.optimize()
    expect(await answers(store)).toEqual(before)
    if (kind.file)
      for (const index of there)
        expect({ index, segments: segments(store.info.path, index) }).toEqual({ index, segments: 1 })
    expect((await store.maintenance.check()).indexes.every(({ problem }) => problem === null)).toBe(true)
    await store.maintenance.optimize()
    expect(await answers(store)).toEqual(before)
    if (kind.file) expectIndexesSound(store.info.path)
  })

  test('checks and repairs', async () => {
    const store = await kind.open()
    await fill(store)
    const before = await answers(store)
    const names = kind.additions ? ['words', 'unsegmented'] : ['words']
    const sound = names.map((index) => ({ index, problem: null }))
    expect((await store.maintenance.check()).indexes).toEqual(sound)
    await store.maintenance.repair()
    expect((await store.maintenance.check()).indexes).toEqual(sound)
    expect(await answers(store)).toEqual(before)
    if (!kind.file) return
    damage(store.info.path, 'messages_fts', 'zeroed segments')
    expect((await problems(store)).words).toEqual(expect.any(String))
    await store.maintenance.repair()
    expect((await store.maintenance.check()).indexes).toEqual(sound)
    expect(await answers(store)).toEqual(before)
  })
})

describe.each(NEWER)('a file of schema %i', (schema) => {
  test('is checked, and neither repaired nor optimized', async () => {
    const path = newerFile(schema)
    const store = await openForTest({ path, newerSchema: 'write' })
    expect((await store.maintenance.check()).indexes).toEqual([{ index: 'words', problem: null }])
    await expect(store.maintenance.repair()).rejects.toBeInstanceOf(UnsupportedSchemaError)
    await expect(store.maintenance.optimize()).rejects.toBeInstanceOf(UnsupportedSchemaError)
    checkIndexes(path)
    await store.close()
    const reader = await openForTest({ path })
    expect((await reader.maintenance.check()).indexes).toEqual([{ index: 'words', problem: null }])
    await expect(reader.maintenance.repair()).rejects.toThrow()
  })
})

test('3,000 single appends leave few segments', async () => {
  const path = newPath()
  const store = await openForTest({ path, synchronous: 'normal' })
  await fill(store, 3_000)
  for (const index of INDEXES) expect(segments(path, index)).toBeLessThanOrEqual(8)
  expectIndexesSound(path)
  expect(await store.search.messages('walrus', { limit: 10_000 })).toHaveLength(3_000)
  expect(await store.search.messages('海象', { limit: 10_000 })).toHaveLength(3_000)
})

test('an empty file is sound, and stays so', async () => {
  const path = newPath()
  const store = await openForTest({ path })
  await store.maintenance.optimize()
  await store.maintenance.repair()
  await store.maintenance.optimize()
  expect(await problems(store)).toEqual(SOUND)
  expectIndexesSound(path)
})
