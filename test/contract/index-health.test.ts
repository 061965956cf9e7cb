import { closeSync, copyFileSync, openSync, readFileSync, writeSync } from 'node:fs'
import { beforeEach, describe, expect, test } from 'vitest'
import { DamagedFileError, type StateStore } from '../../src/index.ts'
import {
  ALL_DAMAGES,
  change,
  type Damage,
  damage,
  expectIndexesSound,
  INDEXES,
  type IndexName,
  query,
} from '../support/index-damage.ts'
import { start } from '../support/processes.ts'
import { eventsOf, newPath, openForTest } from '../support/stores.ts'

const BEFORE = 40
const old = (n: number) => ({ role: 'user', content: `walrus number ${n} 海象在这里` })
const otter = (n: number) => ({ role: 'user', content: `new otter ${n} 海獭在那里` })
const otters = (count: number) => Array.from({ length: count }, (_, n) => otter(n))
const QUERIES = ['walrus', 'otter', '海象', '海獭']

/** Writes, and how many messages there are afterwards. */
const WRITES: Record<string, { run(store: StateStore): Promise<unknown>; left: number }> = {
  append: { run: (store) => store.messages.append('s', otter(1)), left: BEFORE + 1 },
  'appends that share a commit': {
    run: (store) => Promise.all([1, 2, 3].map((n) => store.messages.append('s', otter(n)))),
    left: BEFORE + 3,
  },
  'appends one after the other': {
    run: async (store) => {
      for (let n = 0; n < 40; n++) await store.messages.append('s', otter(n))
    },
    left: BEFORE + 40,
  },
  appendMany: { run: (store) => store.messages.appendMany('s', otters(20)), left: BEFORE + 20 },
  'appendMany in steps': {
    run: (store) => store.messages.appendMany('s', otters(300)),
    left: BEFORE + 300,
  },
  replaceAll: { run: (store) => store.messages.replaceAll('s', otters(2)), left: 2 },
  delete: { run: (store) => store.sessions.delete('s'), left: 0 },
  transaction: {
    run: (store) =>
      store.transaction(async (tx) => {
        await tx.messages.append('s', otter(1))
        await tx.messages.appendMany('s', otters(300))
        await tx.messages.append('s', otter(2))
      }),
    left: BEFORE + 302,
  },
  'transaction of one message after the other': {
    run: (store) => {
      const attempt = () =>
        store.transaction(async (tx) => {
          for (let n = 0; n < 40; n++) await tx.messages.append('s', otter(n))
        })
      // What SQLite meets where a savepoint ends cannot be undone alone: all of it is, and then it goes through.
      return attempt().catch(attempt)
    },
    left: BEFORE + 40,
  },
}

let path: string
let store: StateStore

beforeEach(async () => {
  path = newPath()
  store = await openForTest({ path })
  await store.sessions.create({ id: 's', source: 'cli' })
  for (let n = 0; n < BEFORE; n++) await store.messages.append('s', old(n))
})

/** Expects searches to find exactly the messages that have a text, by whatever way. */
async function expectComplete(asked: StateStore, queries = QUERIES): Promise<void> {
  for (const text of queries) {
    const hits = await asked.search.messages(text, { limit: 1_000 })
    const there = query<number>(path, 'select id from messages where instr(content, ?) order by id', text)
    expect(hits.map(({ id }) => id).sort((a, b) => a - b)).toEqual(there)
  }
}

const routes = async (asked: StateStore) =>
  Promise.all(['walrus', '海象'].map(async (text) => (await asked.search.messages(text))[0]?.route))

const fallbacks = (asked: StateStore) => [
  ...eventsOf(asked, 'index-put-aside'),
  ...eventsOf(asked, 'word-index-unused'),
]

async function reopen(): Promise<StateStore> {
  await store.close()
  return openForTest({ path })
}

/** Expects both indexes to be there, sound, and to be asked. */
async function expectHealed(again: StateStore): Promise<void> {
  expect(again.info.wordIndexProblem).toBeNull()
  expectIndexesSound(path)
  expect(await routes(again)).toEqual(['words', 'unsegmented'])
  await expectComplete(again)
  expect(fallbacks(again)).toEqual([])
}

describe.each(INDEXES)('damage to %s of an open file', (index) => {
  describe.each(ALL_DAMAGES)('%s', (kind) => {
    test.each(Object.entries(WRITES))('%s goes through, and searches find all', async (_, { run, left }) => {
      damage(path, index, kind)
      await run(store)
      expect(await store.messages.count()).toBe(left)
      await expectComplete(store)
      for (const event of eventsOf(store, 'index-put-aside')) expect(INDEXES).toContain(event.index)
    })

    test('messages go in after a search has met it', async () => {
      damage(path, index, kind)
      await expectComplete(store)
      for (let n = 0; n < 40; n++) await store.messages.append('s', otter(n))
      await store.messages.appendMany('s', otters(300))
      await store.transaction((tx) => tx.messages.append('s', otter(2)))
      await store.messages.replaceAll('s', otters(5))
      expect(await store.messages.count()).toBe(5)
      await expectComplete(store)
    })

    test('a transaction goes through after a search has met it', async () => {
      damage(path, index, kind)
      await expectComplete(store)
      await store.transaction(async (tx) => {
        for (let n = 0; n < 40; n++) await tx.messages.append('s', otter(n))
      })
      expect(await store.messages.count()).toBe(BEFORE + 40)
      await expectComplete(store)
    })

    test('searches that run at once all answer', async () => {
      damage(path, index, kind)
      const texts = ['walrus', '海象', 'number', '这里', 'walrus 海象', 'walrus number']
      const hits = await Promise.all(texts.map((text) => store.search.messages(text, { limit: 1_000 })))
      expect(hits.map(({ length }) => length)).toEqual(texts.map(() => BEFORE))
    })

    test('searches find what another program has written since', async () => {
      change(
        path,
        `insert into messages (session_id, role, content, timestamp) values ('s', 'user', 'otter 海獭', 1);
         update messages set content = 'nothing' where id = 1`,
      )
      damage(path, index, kind)
      await expectComplete(store)
    })

    test('what was met is made anew by the next opening', async () => {
      damage(path, index, kind)
      await store.messages.append('s', otter(1))
      await expectComplete(store)
      const met = fallbacks(store).length > 0
      const again = await reopen()
      if (met) expect(again.info.mended).not.toEqual([])
      await expectHealed(again)
    })
  })
})

describe.each<[IndexName, Damage]>([
  ['messages_fts', 'an overwritten structure record'],
  ['messages_fts', 'zeroed segments'],
  ['messages_fts', 'a lost newest segment'],
  ['hs_bigrams', 'an overwritten structure record'],
])('%s with %s, put aside by a write', (index, kind) => {
  beforeEach(async () => {
    damage(path, index, kind)
    await store.messages.appendMany('s', otters(300))
  })

  test('is told once, and the next opening makes it anew', async () => {
    const aside = eventsOf(store, 'index-put-aside')
    expect(aside.map((event) => event.index)).toContain(index)
    expect(new Set(aside.map((event) => event.index)).size).toBe(aside.length)
    await store.messages.append('s', otter(1))
    await store.messages.appendMany('s', otters(300))
    expect(eventsOf(store, 'index-put-aside')).toHaveLength(aside.length)
    expect(
      query(path, `select name from sqlite_schema where type = 'trigger' and name glob '${index}_*'`),
    ).toEqual([])

    const again = await reopen()
    expect(again.info.mended).not.toEqual([])
    await expectHealed(again)
    await again.close()
    expect((await openForTest({ path })).info.mended).toEqual([])
  })

  test('another program writes the file without an error', async () => {
    change(
      path,
      `insert into messages (session_id, role, content, timestamp) values ('s', 'user', 'otter 海獭', 1);
       update messages set content = 'otter again' where id = 1;
       delete from messages where id = 2`,
    )
    await expectComplete(store)
    await expectHealed(await reopen())
  })
})

test('a write goes through after a transaction that met the damage was rolled back', async () => {
  damage(path, 'messages_fts', 'an overwritten structure record')
  await expect(
    store.transaction(async (tx) => {
      await tx.messages.append('s', otter(1))
      throw new Error('changed my mind')
    }),
  ).rejects.toThrow('changed my mind')
  expect(await store.messages.count()).toBe(BEFORE)
  await store.messages.append('s', otter(2))
  expect(await store.messages.count()).toBe(BEFORE + 1)
  await expectComplete(store)
  await expectHealed(await reopen())
})

/** Has a process that opened the file before it was damaged append a message to it. */
async function damageForAnother(): Promise<void> {
  const other = await start('appender.mjs', path, 'otter', '2')
  damage(path, 'messages_fts', 'an overwritten structure record')
  other.send('go')
  expect(await other.ended).toEqual({ code: 0, signal: null })
}

test('a process that has the file open too notices that an index was put aside', async () => {
  expect(await routes(store)).toEqual(['words', 'unsegmented'])
  await damageForAnother()
  await expectComplete(store)
  expect(await routes(store)).toEqual(['substring', 'substring'])
  expect(eventsOf(store, 'word-index-unused')).toMatchObject([{ reason: 'lacks a trigger' }])
  await store.messages.append('s', otter(2))
  await expectComplete(store)
})

test('a process that has the file open too asks the index again once it was made anew', async () => {
  await damageForAnother()
  expect(await routes(store)).toEqual(['substring', 'substring'])
  const opener = await start('opener.mjs')
  opener.send('go')
  opener.send(path)
  await opener.hear('opened')
  expect(await routes(store)).toEqual(['words', 'unsegmented'])
  await store.messages.append('s', otter(2))
  await expectComplete(store)
  expectIndexesSound(path)
})

describe('a dropped index', () => {
  test.each(['walrus', 'walrus 海象', 'number 7', '海象'])('answers %s by reading messages', async (text) => {
    change(path, 'drop table messages_fts')
    expect(await store.search.messages(text)).not.toEqual([])
    expect(eventsOf(store, 'word-index-unused')).toMatchObject([{ reason: 'is missing' }])
  })

  test.each(INDEXES)('%s loses no message, and is made anew by the next opening', async (index) => {
    change(path, `drop table ${index}`)
    await expectComplete(store)
    await store.messages.append('s', otter(1))
    await store.messages.replaceAll('s', [old(1), otter(2)])
    await expectComplete(store)
    await expectHealed(await reopen())
  })
})

describe('damage to the messages themselves', () => {
  let copy: string

  beforeEach(async () => {
    await store.close()
    copy = newPath()
    copyFileSync(path, copy)
  })

  /** Overwrites the first page of the table in the file, and makes others read the file anew. */
  const breakMessages = () => {
    const [root] = query<number>(copy, "select rootpage from sqlite_schema where name = 'messages'")
    const [size] = query<number>(copy, 'pragma page_size')
    const file = openSync(copy, 'r+')
    writeSync(file, Buffer.alloc(size!, 0xff), 0, size, (root! - 1) * size!)
    closeSync(file)
    change(copy, "update sessions set user_id = 'ada'")
  }

  const openBroken = async () => {
    const broken = await openForTest({ path: copy })
    breakMessages()
    return broken
  }

  const triggers = () =>
    query(copy, "select name from sqlite_schema where type = 'trigger' and tbl_name = 'messages' order by 1")

  test.each(Object.entries(WRITES))('%s is refused, and no index is put aside', async (_, { run }) => {
    const broken = await openBroken()
    const before = triggers()
    expect(before).toContain('messages_fts_insert')
    await expect(run(broken)).rejects.toBeInstanceOf(DamagedFileError)
    expect(eventsOf(broken, 'index-put-aside')).toEqual([])
    expect(triggers()).toEqual(before)
  })

  test.each(['walrus', '海象', 'al'])('a search for %s is no empty answer', async (text) => {
    const broken = await openBroken()
    await expect(broken.search.messages(text)).rejects.toBeInstanceOf(DamagedFileError)
  })
  test('refuses to open, and leaves the file as it is', async () => {
    breakMessages()
    const before = readFileSync(copy)
    await expect(openForTest({ path: copy })).rejects.toBeInstanceOf(DamagedFileError)
    expect(readFileSync(copy).equals(before)).toBe(true)
  })
})
