import { readFileSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import { HERMES_NAMES, MIGRATIONS } from '../../src/database/reference.ts'
import { change, unheard } from '../support/flawed-files.ts'
import {
  expectFinished,
  type LargeKind,
  largeFile,
  meanwhile,
  somebody,
  whileFree,
} from '../support/large-file.ts'
import {
  checkIndex,
  expectComplete,
  expectIndexFollows,
  expectMended,
  expectShape,
  found,
} from '../support/mended-files.ts'
import { useUnknownTokenizer } from '../support/newer-file.ts'
import { sql, start } from '../support/processes.ts'
import { openForTest } from '../support/stores.ts'
import { together } from '../support/together.ts'

const KINDS: [LargeKind][] = [['with its word index'], ['with a word index of its first messages']]

const NAMES = Object.keys(MIGRATIONS)

/** Opens a large file, and expects that others could see its word index grow. */
async function openInChunks(path: string, additions = true) {
  const { place } = somebody(path)
  const places = new Set<number | undefined>()
  const store = await meanwhile(openForTest({ path, additions }), () => places.add(place()))
  expect(places.size).toBeGreaterThan(5)
  expect(store.info).toMatchObject({ schemaVersion: 6, wordIndexProblem: null })
  return store
}

describe('a large file gets its word index anew in chunks:', () => {
  test.each<[name: string, mended: string, kind: LargeKind, damage?: (path: string) => void]>([
    [
      'one that lacks most messages',
      'does not have a row for each message',
      'with a word index of its first messages',
    ],
    ['one that nothing is known to be wrong with', '', 'with its word index'],
    [
      'one that knows an earlier text',
      'does not find what the messages say',
      'with its word index',
      (path) => {
        change(path, "UPDATE messages SET content = 'seal' WHERE id = 1")
        change(path, unheard("UPDATE messages SET content = 'Count the walrus herd' WHERE id = 1"))
      },
    ],
    [
      'one that lacks a trigger',
      'lacks a trigger',
      'with its word index',
      (path) => change(path, 'DROP TRIGGER messages_fts_insert'),
    ],
    ['one that is missing', 'is missing', 'without its word index'],
    [
      'one that cannot be dropped',
      'no such tokenizer',
      'with its word index',
      (path) => useUnknownTokenizer(path, 'messages_fts'),
    ],
  ])('%s', async (_, mended, kind, damage) => {
    const path = largeFile(kind)
    damage?.(path)
    const store = await openInChunks(path)
    // Migration 010 makes every word index anew.
    expectMended(store, mended === '' ? [] : [mended])
    expect(store.info.migrations).toEqual(NAMES.slice(6))
    expect(await found(store, 'seal')).toEqual([])
    await store.close()
    await expectFinished(path)
  })

  test('one of this package only where it was damaged', async () => {
    const path = largeFile('with its word index')
    await (await openForTest({ path })).close()
    const before = readFileSync(path)
    await (await openForTest({ path })).close()
    expect(readFileSync(path).equals(before)).toBe(true)

    change(path, 'DROP TRIGGER messages_fts_update')
    const store = await openInChunks(path)
    expectMended(store, ['lacks a trigger'])
    expect(store.info.migrations).toEqual([])
    await store.close()
    await expectFinished(path)
  })

  test('one beside a view that cannot be read, without additions', async () => {
    const path = largeFile('with a word index of its first messages')
    change(path, 'CREATE VIEW lost AS SELECT a FROM nowhere')
    const store = await openInChunks(path, false)
    expectMended(store, ['does not have a row for each message'])
    await store.close()
    change(path, 'DROP VIEW lost')
    await expectShape(path, HERMES_NAMES)
    expectIndexFollows(path)
  })

  test('with the messages whose ids somebody chose below 1', async () => {
    const path = largeFile('with its word index')
    change(path, 'UPDATE messages SET id = -3 WHERE id = 3; UPDATE messages SET id = 0 WHERE id = 1')
    const store = await openInChunks(path)
    expect(await found(store, 'walrus')).toEqual([-3, 0])
    await store.close()
    await expectComplete(path)
  })
})

test.each(KINDS)('a large file %s takes what others insert, change and delete meanwhile', async (kind) => {
  const path = largeFile(kind)
  const { db, place } = somebody(path)
  const insert = db.prepare(
    "INSERT INTO messages (id, session_id, role, content, timestamp) VALUES (?, 'many', 'user', ?, 9000)",
  )
  const update = db.prepare('UPDATE messages SET content = ? WHERE id = ?')
  const remove = db.prepare('DELETE FROM messages WHERE id = ?')
  const places = new Set<number>()
  const store = await meanwhile(openForTest({ path }), () => {
    const turn = places.size
    whileFree(db, () => {
      const now = place()
      if (now === undefined || places.has(now)) return
      // On both sides of the place, far from it and next to it.
      const [low, high] = [100 + 10 * turn, 20_900 - 10 * turn]
      insert.run(null, `meanwhile new ${turn}`)
      for (const id of [low, high, now, now + 1]) update.run(`meanwhile changed ${turn}`, id)
      for (const id of [low + 1, high + 1, now - 1, now + 2]) remove.run(id)
      for (const id of [low + 1, high + 1]) insert.run(id, `meanwhile again ${turn}`)
      places.add(now)
    })
  })

  expect(places.size).toBeGreaterThan(3)
  checkIndex(path)
  for (const words of ['meanwhile new', 'meanwhile changed', 'meanwhile again']) {
    const rows = sql(path, 'SELECT id FROM messages WHERE content LIKE ? ORDER BY id', `${words} %`)
    expect(rows.length).toBeGreaterThan(3)
    const indexed = 'SELECT rowid AS id FROM messages_fts WHERE messages_fts MATCH ? ORDER BY rowid'
    expect(sql(path, indexed, words)).toEqual(rows)
  }
  expect(await found(store, 'meanwhile new 0')).toHaveLength(1)
  await store.sessions.recount('many')
  await store.close()
  await expectComplete(path)
})

test.each([
  ['only Hermes had', ''],
  ['lost a trigger', 'DROP TRIGGER messages_fts_update'],
])(
  'a store searches and writes on in a large file that %s, while another makes its index',
  async (_, damage) => {
    const path = largeFile('with its word index')
    const store = await openForTest({ path, additions: damage !== '' })
    if (damage !== '') change(path, damage)
    const { place } = somebody(path)
    const searches: Promise<unknown>[] = []
    const appends: Promise<number>[] = []
    const opener = await start('opener.mjs')
    opener.send('go')
    await meanwhile(opener.ask(path, 'opened'), () => {
      if (place() === undefined) return
      searches.push(found(store, 'walrus').catch(String))
      if (searches.length % 2 === 1)
        appends.push(store.messages.append('many', { role: 'user', content: 'meanwhile' }))
    })

    const appended = await Promise.all(appends)
    expect(appended.length).toBeGreaterThan(1)
    expect(await found(store, 'meanwhile')).toEqual(appended.slice(-20))
    const outcomes = new Set((await Promise.all(searches)).map(String))
    expect([...outcomes]).toEqual(['1,3'])
    await store.close()
    await expectComplete(path)
  },
)

test.each(KINDS)('4 processes open a large file %s at once: all append', async (kind) => {
  const path = largeFile(kind)
  const sessions = Array.from({ length: 4 }, (_, index) => `process-${index}`)
  const outputs = await together(
    'append-process.mjs',
    sessions.map((session) => [path, session]),
  )
  const migrations = outputs.map((output) => JSON.parse(output) as string[])
  expect(migrations.filter((names) => names.length > 0)).toEqual([NAMES.slice(6)])

  await expectComplete(path)
  const store = await openForTest({ path })
  expect(store.info).toMatchObject({ migrations: [], mended: [], wordIndexProblem: null })
  for (const session of sessions) {
    expect(await store.messages.count(session)).toBe(20)
    expect(await store.search.messages(`walrus "of ${session}"`, { limit: 50 })).toHaveLength(20)
  }
})
