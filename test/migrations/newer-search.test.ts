import { readFileSync } from 'node:fs'
import Database from 'better-sqlite3'
import { describe, expect, test } from 'vitest'
import { dump } from '../support/hermes-file.ts'
import {
  COPY_UPDATE_TRIGGER,
  has,
  NEWER,
  type NewerSchema,
  newerFile,
  useUnknownTokenizer,
} from '../support/newer-file.ts'
import { eventsOf, openForTest } from '../support/stores.ts'

const ids = <Id>(rows: { id: Id }[]) => rows.map(({ id }) => id)

const openNewer = (schema: NewerSchema, sql?: string) => openForTest({ path: newerFile(schema, sql) })

describe.each(NEWER)('a file of schema %i', (schema) => {
  test('is searched by its word index', async () => {
    const store = await openNewer(schema)
    expect(store.info.wordIndexProblem).toBeNull()
    expect(eventsOf(store, 'word-index-unused')).toEqual([])

    const hits = await store.search.messages('walrus')
    expect(ids(hits).sort()).toEqual([1, 3])
    expect(hits.map(({ route }) => route)).toEqual(['words', 'words'])
    expect(hits.find(({ id }) => id === 1)?.snippet).toContain('Count the >>>walrus<<< herd')

    // Before schema 11 only content was indexed: what it does not find is looked for in the messages.
    const inCall = await store.search.messages('lagoon')
    const inName = await store.search.messages('census', { roles: ['tool'] })
    const found = has(schema, 'ownCopy')
    expect(ids(inCall)).toEqual([2])
    expect(ids(inName)).toEqual([3])
    for (const [hit] of [inCall, inName]) expect(hit?.route).toBe(found ? 'words' : 'substring')
    expect(inCall[0]?.snippet).toContain('>>>lagoon<<<')
    expect(inName[0]?.snippet).toContain('>>>census<<<')
  })
})

describe('the word index is not asked, and an event says why, where', () => {
  const note = (key: string, value: string) => `INSERT INTO state_meta VALUES ('${key}', '${value}');`
  const missed = `INSERT INTO messages (session_id, role, content, timestamp) VALUES ('root', 'user', 'one more', 9);`

  test.each<[string, NewerSchema, RegExp, string | ((path: string) => void)]>([
    [
      'triggers are made for another kind',
      8,
      /triggers/,
      `DROP TRIGGER messages_fts_update; ${COPY_UPDATE_TRIGGER}`,
    ],
    ['a trigger is missing', 8, /lacks a trigger/, 'DROP TRIGGER messages_fts_delete'],
    ['a trigger is missing', 11, /lacks a trigger/, 'DROP TRIGGER messages_fts_insert'],
    ['a trigger is missing', 26, /lacks a trigger/, 'DROP TRIGGER messages_fts_update'],
    ['Hermes marked it as stale', 26, /stale/, note('fts_stale', '1')],
    [
      'Hermes is making it anew',
      26,
      /made anew/,
      note('fts_rebuild_high_water', '9') + note('fts_rebuild_progress', '4'),
    ],
    ['Hermes has just begun to make it anew', 26, /made anew/, note('fts_rebuild_high_water', '9')],
    [
      'there is none',
      26,
      /is missing/,
      `DROP TRIGGER messages_fts_insert; DROP TRIGGER messages_fts_delete; DROP TRIGGER messages_fts_update;
       DROP TABLE messages_fts`,
    ],
    [
      'its tokenizer is not known here',
      26,
      /no such tokenizer/,
      (path) => useUnknownTokenizer(path, 'messages_fts'),
    ],
    ['messages are missing in it', 8, /row for each message/, (path) => changeUnseen(path, missed)],
    ['messages are missing in it', 11, /row for each message/, (path) => changeUnseen(path, missed)],
    ['messages are missing in it', 26, /row for each message/, (path) => changeUnseen(path, missed)],
  ])('%s (schema %i)', async (_, schema, problem, change) => {
    const path = newerFile(schema, typeof change === 'string' ? change : '')
    if (typeof change !== 'string') change(path)
    const before = readFileSync(path)
    const store = await openForTest({ path })

    expect(store.info.wordIndexProblem).toMatch(problem)
    expect(eventsOf(store, 'word-index-unused')).toMatchObject([
      { level: 'info', path, reason: store.info.wordIndexProblem },
    ])
    const hits = await store.search.messages('WALRUS')
    expect(hits.map(({ id, route }) => [id, route])).toEqual([
      [3, 'substring'],
      [1, 'substring'],
    ])
    expect(hits[1]?.snippet).toBe('Count the >>>walrus<<< herd')
    expect(ids(await store.search.messages('photographed'))).toEqual([4])
    expect(eventsOf(store, 'word-index-unused')).toHaveLength(1)
    await store.close()
    expect(readFileSync(path).equals(before)).toBe(true)
  })

  test('but it is where Hermes has made it anew, or says that it is not stale', async () => {
    const done = ['fts_rebuild_high_water', 'fts_rebuild_progress'].map((key) => note(key, '11')).join('')
    const store = await openNewer(26, done + note('fts_stale', '0'))
    expect(store.info.wordIndexProblem).toBeNull()
    expect((await store.search.messages('walrus'))[0]?.route).toBe('words')
  })
})

test.each([
  ['triggers are made for another kind', `DROP TRIGGER messages_fts_update; ${COPY_UPDATE_TRIGGER}`],
  ['it is marked as stale', "INSERT INTO state_meta VALUES ('fts_stale', '1')"],
  [
    'there is none',
    `DROP TRIGGER messages_fts_insert; DROP TRIGGER messages_fts_delete; DROP TRIGGER messages_fts_update;
     DROP TABLE messages_fts`,
  ],
])('the word index is left alone in a file that is written, where %s', async (_, sql) => {
  const path = newerFile(8, sql)
  const { schema } = dump(path)
  const store = await openForTest({ path, newerSchema: 'write' })
  expect(store.info).toMatchObject({ readonly: false, mended: [] })
  const id = await store.messages.append('root', { role: 'user', content: 'A walrus, again' })
  expect((await store.search.messages('walrus')).map((hit) => [hit.id, hit.route])).toEqual([
    [id, 'substring'],
    [3, 'substring'],
    [1, 'substring'],
  ])
  expect(dump(path).schema).toEqual(schema)
})

/** Runs SQL while the triggers that add messages to the word index are away. */
function changeUnseen(path: string, sql: string): void {
  const db = new Database(path)
  const trigger = db.prepare("SELECT sql FROM sqlite_schema WHERE name = 'messages_fts_insert'").pluck().get()
  db.exec(`DROP TRIGGER messages_fts_insert; ${sql}; ${trigger}`)
  db.close()
}
