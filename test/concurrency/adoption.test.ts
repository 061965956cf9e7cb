import Database from 'better-sqlite3'
import { describe, expect, it } from 'vitest'
import { MIGRATIONS } from '../../src/database/reference.ts'
import { inspectStateFile, openStateStore, type StateStore, type StoreInfo } from '../../src/index.ts'
import { writeHermesFile } from '../support/hermes-file.ts'
import { type Child, expectSound, pythonSqlite, sql, start, startTogether } from '../support/processes.ts'
import { newPath, openForTest } from '../support/stores.ts'

const NAMES = Object.keys(MIGRATIONS)

/** So many that the word index is made anew beside the old one, while others write. */
const LARGE = 25_000

/** Lets processes open a file at once, append and search. Returns what opening it did in each. */
async function adoptTogether(path: string, processes: number, messages: number): Promise<StoreInfo[]> {
  const children = await startTogether(
    Array.from({ length: processes }, (_, n) => ['adopter.mjs', path, `process-${n}`, `${messages}`]),
  )
  return Promise.all(
    children.map(async (child) => {
      const info = JSON.parse(await child.hear('opened')) as StoreInfo
      expect(await child.hear('found')).toBe(`${messages}`)
      await child.hear('done')
      return info
    }),
  )
}

async function expectAdopted(path: string, processes: number, messages: number): Promise<StateStore> {
  expect(sql(path, 'select version from schema_version')).toEqual([{ version: 6 }])
  expect(sql(path, 'select name from kysely_migration order by name')).toEqual(
    NAMES.map((name) => ({ name })),
  )
  expectSound(path)
  const store = await openForTest({ path })
  expect(store.info).toMatchObject({ migrations: [], mended: [], wordIndexProblem: null })
  for (let n = 0; n < processes; n++)
    expect((await store.messages.list(`process-${n}`)).map(({ content }) => content)).toEqual(
      Array.from({ length: messages }, (_, index) => `pelican ${index} of process-${n}`),
    )
  expect(await store.search.messages('pelican', { limit: 1000 })).toHaveLength(processes * messages)
  expect((await store.search.messages('walrus')).map(({ id }) => id)).toContain(1)
  return store
}

it('12 processes adopt one old and flawed file at once: one mends and migrates it, all append', async () => {
  const path = newPath()
  writeHermesFile(path, 4)
  exec(
    path,
    `DROP TRIGGER messages_fts_delete; DROP INDEX idx_messages_session;
     INSERT INTO schema_version VALUES (3);
     DELETE FROM messages WHERE id = 3;
     UPDATE sessions SET message_count = 2 WHERE id = 'alpha'`,
  )
  expect(sql(path, "select rowid from messages_fts where messages_fts match 'forty'")).toHaveLength(1)
  const { missing } = await inspectStateFile(path)
  expect(missing).toHaveLength(3)

  const infos = await adoptTogether(path, 12, 20)
  const [worker, ...others] = infos.toSorted((a, b) => b.mended.length - a.mended.length)
  expect(worker).toMatchObject({ mended: missing, migrations: NAMES.slice(4) })
  for (const info of others) expect(info).toMatchObject({ mended: [], migrations: [] })
  for (const info of infos) expect(info).toMatchObject({ schemaVersion: 6, wordIndexProblem: null })

  const store = await expectAdopted(path, 12, 20)
  expect(await store.messages.count()).toBe(12 * 20 + 4)
  expect(await store.search.messages('forty')).toEqual([])
})

describe('several processes open a file with a damaged word index at once: one makes it anew, all work', () => {
  it.each<[name: string, sql: string]>([
    ['which has lost its settings', 'DROP TABLE messages_fts_config'],
    ['which has lost its tables', 'DROP TABLE messages_fts_data; DROP TABLE messages_fts_docsize'],
    ['which has lost its list of pages', 'DROP TABLE messages_fts_idx'],
    ['which has garbage in it', "UPDATE messages_fts_data SET block = x'a5a5a5a5a5a5a5a5' WHERE id > 1"],
  ])('%s, in a file of Hermes', async (_, damage) => {
    const path = newPath()
    writeHermesFile(path, 6)
    exec(path, damage, true)
    const infos = await adoptTogether(path, 4, 10)
    expect(infos.map(({ migrations }) => migrations).filter(({ length }) => length > 0)).toEqual([
      NAMES.slice(6),
    ])
    expect(infos.map(({ mended }) => mended).filter(({ length }) => length > 0)).toEqual([
      [expect.stringMatching(/^word index/)],
    ])
    await expectAdopted(path, 4, 10)
  })

  it.each([
    ['which has lost its settings', 'DROP TABLE messages_fts_config'],
    ['which has lost its content', 'DELETE FROM messages_fts_data'],
    ['which has lost its triggers', 'DROP TRIGGER messages_fts_insert; DROP TRIGGER messages_fts_update'],
  ])('%s, in a file of ours', async (_, damage) => {
    const path = newPath()
    writeHermesFile(path, 6)
    await (await openStateStore({ path })).close()
    exec(path, damage, true)
    const infos = await adoptTogether(path, 4, 10)
    for (const { migrations } of infos) expect(migrations).toEqual([])
    expect(infos.map(({ mended }) => mended).filter(({ length }) => length > 0)).toEqual([
      [expect.stringMatching(/^word index/)],
    ])
    await expectAdopted(path, 4, 10)
  })

  it('which is large', async () => {
    const path = newPath()
    writeHermesFile(path, 6)
    addMessages(path, LARGE)
    exec(path, 'DROP TABLE messages_fts_config', true)
    const infos = await adoptTogether(path, 4, 10)
    expect(infos.filter(({ migrations }) => migrations.length > 0)).toHaveLength(1)
    const store = await expectAdopted(path, 4, 10)
    expect(await store.search.messages(`heron${LARGE}`)).toHaveLength(1)
    expect(sql(path, "select name from sqlite_schema where name glob 'hs_words*'")).toEqual([])
  })
})

describe.skipIf(!pythonSqlite)(
  `a Python program that writes without a pause ${pythonSqlite ? `(SQLite ${pythonSqlite})` : '(skipped: there is no python3 with sqlite3)'}`,
  () => {
    const rounds = async (python: Child, count: number) => {
      const enough = python.lines.length + count
      while (python.lines.length < enough) await python.hear('round')
    }

    it.each<[name: string, write: (path: string) => void]>([
      ['complete', () => {}],
      [
        'without the triggers of its word index, an index and a single version',
        (path) =>
          exec(
            path,
            `DROP TRIGGER messages_fts_insert; DROP TRIGGER messages_fts_update; DROP TRIGGER messages_fts_delete;
             DROP INDEX idx_messages_session; INSERT INTO schema_version VALUES (4)`,
          ),
      ],
      ['in rollback mode', (path) => exec(path, 'PRAGMA journal_mode = delete')],
      ['large', (path) => addMessages(path, LARGE)],
    ])('while its file is adopted and afterwards, sees no error: a file %s', async (name, change) => {
      const path = newPath()
      writeHermesFile(path, 4)
      change(path)
      const python = await start('hermes_loop.py', path)
      python.send('go')
      await rounds(python, 5)

      const before = python.lines.length
      const store = await openForTest({ path })
      if (name === 'large') expect(python.lines.length).toBeGreaterThan(before)
      expect(store.info).toMatchObject({ schemaVersion: 6, journalMode: 'wal', migrations: NAMES.slice(4) })
      await store.sessions.create({ id: 'ours', source: 'cli' })
      for (let n = 0; n < 20; n++)
        await store.messages.append('ours', { role: 'user', content: `pelican ${n}` })
      await rounds(python, 20)
      const kept: Record<string, string[]> = JSON.parse(await python.ask('stop'))
      expect(await python.ended).toEqual({ code: 0, signal: null })
      expect(python.stderr).toBe('')

      expect(Object.keys(kept).length).toBeGreaterThan(15)
      const listed = await store.sessions.list({ source: 'telegram', orderBy: 'lastActive', limit: 10_000 })
      expect(listed.map(({ id }) => id).sort()).toEqual([...Object.keys(kept), 'beta'].sort())
      for (const [session, contents] of Object.entries(kept)) {
        const messages = await store.messages.list(session)
        expect(messages.map(({ content }) => content)).toEqual(contents)
        for (const { id, content } of messages)
          expect((await store.search.messages(`${content}`)).map((hit) => hit.id)).toEqual([id])
      }
      for (const query of ['old*', 'gone*']) expect(await store.search.messages(query)).toEqual([])
      expect(await store.messages.count('ours')).toBe(20)
      expect(await store.search.messages('pelican', { limit: 100 })).toHaveLength(20)
      await store.close()
      expectSound(path)
      expect(await inspectStateFile(path)).toMatchObject({ kind: 'ours', missing: [] })
    })
  },
)

function addMessages(path: string, count: number): void {
  exec(
    path,
    `WITH RECURSIVE n(i) AS (VALUES (1) UNION ALL SELECT i + 1 FROM n WHERE i < ${count})
     INSERT INTO messages (session_id, role, content, timestamp)
     SELECT 'gamma', 'user', 'heron' || i || ' in the reeds', 3000.0 + i FROM n;
     UPDATE sessions SET message_count = ${count} WHERE id = 'gamma'`,
  )
}

function exec(path: string, sql: string, unsafe = false): void {
  const db = new Database(path)
  try {
    db.unsafeMode(unsafe)
    db.exec(sql)
  } finally {
    db.close()
  }
}
