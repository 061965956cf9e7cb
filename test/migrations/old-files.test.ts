import { copyFileSync, readFileSync } from 'node:fs'
import Database from 'better-sqlite3'
import { describe, expect, test } from 'vitest'
import { MIGRATIONS } from '../../src/database/reference.ts'
import type { StateStore } from '../../src/index.ts'
import { hermesRows, VERSIONS, writeHermesFile } from '../support/hermes-file.ts'
import { eventsOf, newPath, openForTest, rawRows } from '../support/stores.ts'

const NAMES = Object.keys(MIGRATIONS)

describe.each(VERSIONS)('a file of schema %i', (version) => {
  test('is brought to schema 6 with its rows intact', async () => {
    const path = newPath()
    writeHermesFile(path, version)
    const store = await openForTest({ path })

    expect(store.info).toMatchObject({ schemaVersion: 6, additions: true, migrations: NAMES.slice(version) })
    expect(await rawRows(store, 'select version from schema_version')).toEqual([{ version: 6 }])
    expect(await allRows(store)).toEqual(hermesRows(version))
    expect(eventsOf(store, 'migrated')).toMatchObject([
      { path, from_version: version, migrations: NAMES.slice(version) },
    ])
    expect(eventsOf(store, 'duplicate-title')).toEqual([])
  })

  test('is searched, and takes new messages', async () => {
    const path = newPath()
    writeHermesFile(path, version)
    const store = await openForTest({ path })
    const id = await store.messages.append('gamma', { role: 'user', content: 'A walrus, again' })

    expect(id).toBe(6)
    expect((await store.search.messages('walrus')).map((hit) => hit.id).sort()).toEqual([1, 3, 6])
    expect((await store.search.messages('海象')).map((hit) => hit.id)).toEqual([4])
    expect((await store.sessions.get('gamma'))?.message_count).toBe(1)
  })

  test('gets an activity row for each session: when it was last active, else when it started', async () => {
    const path = newPath()
    writeHermesFile(path, version)
    const db = new Database(path)
    db.exec(`
      INSERT INTO sessions (id, source, started_at) VALUES ('ahead', 'cli', 5000.0);
      INSERT INTO messages (session_id, role, timestamp) VALUES ('ahead', 'user', 9e9)`)
    db.close()
    const store = await openForTest({ path })
    const rows = await store.db.selectFrom('hs_session_activity').selectAll().orderBy('session_id').execute()

    const [ahead, ...others] = rows
    expect(others).toEqual([
      { session_id: 'alpha', source: 'cli', is_root: 1, last_active: 1003 },
      { session_id: 'beta', source: 'telegram', is_root: 0, last_active: 2100 },
      { session_id: 'gamma', source: 'cli', is_root: 1, last_active: 3000 },
    ])
    // A message from the future counts as written now, with a minute for clocks that differ.
    const now = Date.now() / 1000
    expect(ahead!.last_active).toBeGreaterThan(now - 60)
    expect(ahead!.last_active).toBeLessThanOrEqual(now + 61)
  })

  test('is not touched by opening it again', async () => {
    const path = newPath()
    writeHermesFile(path, version)
    await (await openForTest({ path })).close()
    const before = readFileSync(path)
    const again = await openForTest({ path })
    await again.close()

    expect(again.info).toMatchObject({ schemaVersion: 6, additions: true, migrations: [] })
    expect(eventsOf(again, 'migrated')).toEqual([])
    expect(readFileSync(path).equals(before)).toBe(true)
  })

  test('stays exactly Hermes schema 6 without additions, and gets them when they are wanted later', async () => {
    const path = newPath()
    writeHermesFile(path, version)
    const plain = await openForTest({ path, additions: false })
    expect(plain.info).toMatchObject({
      schemaVersion: 6,
      additions: false,
      migrations: NAMES.slice(version, 6),
    })
    expect(await allRows(plain)).toEqual(hermesRows(version))
    await plain.close()

    const full = await openForTest({ path })
    expect(full.info).toMatchObject({ additions: true, migrations: NAMES.slice(6) })
    expect(await allRows(full)).toEqual(hermesRows(version))
  })
})

test('of sessions with one title the newest keeps it, and the others are named in events', async () => {
  const path = newPath()
  writeHermesFile(path, 3)
  const db = new Database(path)
  db.exec(`
    INSERT INTO sessions (id, source, started_at, title) VALUES
      ('old', 'cli', 100.0, 'Twice'), ('newest', 'cli', 300.0, 'Twice'), ('middle', 'cli', 200.0, 'Twice'),
      ('same-a', 'cli', 400.0, 'Same time'), ('same-b', 'cli', 400.0, 'Same time'),
      ('lower', 'cli', 100.0, 'twice'), ('none-a', 'cli', 100.0, NULL), ('none-b', 'cli', 100.0, NULL)`)
  db.close()
  const store = await openForTest({ path })

  expect(await rawRows(store, 'select id, title from sessions where title is not null order by id')).toEqual([
    { id: 'alpha', title: 'Herd' },
    { id: 'lower', title: 'twice' },
    { id: 'newest', title: 'Twice' },
    { id: 'same-b', title: 'Same time' },
  ])
  const named = eventsOf(store, 'duplicate-title').map(({ level, session_id, title }) => ({
    level,
    session_id,
    title,
  }))
  expect(named.sort((a, b) => (a.session_id < b.session_id ? -1 : 1))).toEqual([
    { level: 'warning', session_id: 'middle', title: 'Twice' },
    { level: 'warning', session_id: 'old', title: 'Twice' },
    { level: 'warning', session_id: 'same-a', title: 'Same time' },
  ])
})

test('what a file has of additions stays and is kept up without the option', async () => {
  const path = newPath()
  writeHermesFile(path, 6)
  await (await openForTest({ path })).close()
  const store = await openForTest({ path, additions: false })

  expect(store.info).toMatchObject({ additions: true, migrations: [] })
  const id = await store.messages.append('gamma', {
    role: 'user',
    content: [{ type: 'text', text: 'parts' }],
  })
  expect(await rawRows(store, 'select * from hs_structured_content')).toEqual([
    { message_id: id, content: '[{"type":"text","text":"parts"}]' },
  ])
  await store.close()

  // A file that stopped half-way through the additions gets the rest.
  const half = newPath()
  copyFileSync(path, half)
  const db = new Database(half)
  db.exec(`
    DROP INDEX idx_messages_session_id;
    DELETE FROM kysely_migration WHERE name = '008_message_order'`)
  db.close()
  expect((await openForTest({ path: half, additions: false })).info.migrations).toEqual(['008_message_order'])
})

async function allRows(store: StateStore) {
  const sessions = await Promise.all(['alpha', 'beta', 'gamma'].map((id) => store.sessions.get(id)))
  const messages = await Promise.all(['alpha', 'beta', 'gamma'].map((id) => store.messages.list(id)))
  expect(await store.sessions.count()).toBe(3)
  return { sessions, messages: messages.flat() }
}
