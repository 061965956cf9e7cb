import Database from 'better-sqlite3'
import { describe, expect, test } from 'vitest'
import { schemas } from '../../scripts/schema-text.ts'
import { Connection } from '../../src/database/connection.ts'
import { type MigrationReport, migrate } from '../../src/database/migrator.ts'
import { MIGRATIONS } from '../../src/database/reference.ts'
import { readShape } from '../../src/database/shape.ts'
import type { NewMessage } from '../../src/index.ts'
import { dump, hermesRows, hermesStep, writeHermesFile } from '../support/hermes-file.ts'
import { newPath, openForTest, rawRows } from '../support/stores.ts'

const NAMES = Object.keys(MIGRATIONS)
const all = await schemas()

describe.each(NAMES.slice(0, -1))('down to %s and up again', (target) => {
  test('gives the schema of that migration, and keeps what that schema can hold', async () => {
    const path = newPath()
    writeHermesFile(path, 6)
    const store = await openForTest({ path })
    const content = [
      { type: 'text', text: 'seal' },
      { type: 'image', url: 'x' },
    ]
    const id = await store.messages.append('gamma', { role: 'user', content, timestamp: 3001 })
    await store.close()
    const version = Math.min(NAMES.indexOf(target) + 1, 6)

    const report = await migrateTo(path, target)
    expect(report).toMatchObject({ from_version: 6, down: true })
    expect(report.migrations).toEqual(NAMES.slice(NAMES.indexOf(target) + 1).reverse())
    expect(shapeOf(path)).toEqual(all[NAMES.indexOf(target)]!.shape)
    expect(dump(path).rows.schema_version).toEqual([{ version }])

    const again = await openForTest({ path })
    expect(again.info).toMatchObject({ schemaVersion: 6, migrations: NAMES.slice(NAMES.indexOf(target) + 1) })
    expect(shapeOf(path)).toEqual(all.at(-1)!.shape)
    const { sessions, messages } = hermesRows(version)
    expect([await again.sessions.get('alpha'), await again.sessions.get('beta')]).toEqual(
      sessions.slice(0, 2),
    )
    expect(await again.messages.list('alpha')).toEqual(messages.filter(({ id }) => id <= 3))
    expect(await again.messages.list('beta')).toEqual(messages.filter(({ id }) => id >= 4))
    expect((await again.messages.get(id))?.content).toEqual(content)
    expect((await again.search.messages('seal')).map((hit) => hit.id)).toEqual([id])
    expect(
      await rawRows(again, 'select session_id, last_active from hs_session_activity order by 1'),
    ).toEqual([
      { session_id: 'alpha', last_active: 1003 },
      { session_id: 'beta', last_active: 2100 },
      { session_id: 'gamma', last_active: 3001 },
    ])
  })
})

test('structured content goes down as Hermes stores it, and plain text stays what it is', async () => {
  const path = newPath()
  const store = await openForTest({ path })
  await store.sessions.create({ id: 'one', source: 'cli' })
  const contents: NewMessage['content'][] = [
    [{ type: 'text', text: 'seal' }],
    { text: 'walrus' },
    '\0json:["forged"]',
    'plain',
    null,
  ]
  await store.messages.appendMany(
    'one',
    contents.map((content) => ({ role: 'user', content })),
  )
  await store.close()
  await migrateTo(path, '006_reasoning')

  expect((dump(path).rows.messages as { content: unknown }[]).map(({ content }) => content)).toEqual([
    '\0json:[{"type":"text","text":"seal"}]',
    '\0json:{"text":"walrus"}',
    '\0json:"\\u0000json:[\\"forged\\"]"',
    'plain',
    null,
  ])
  const plain = await openForTest({ path, additions: false })
  expect((await plain.messages.list('one')).map(({ content }) => content)).toEqual(contents)
  await plain.close()
  const full = await openForTest({ path })
  expect((await full.messages.list('one')).map(({ content }) => content)).toEqual(contents)
})

test('the word index agrees with the messages after going down', async () => {
  const path = newPath()
  writeHermesFile(path, 6)
  const store = await openForTest({ path })
  await store.messages.append('gamma', { role: 'user', content: [{ type: 'text', text: 'seal' }] })
  await store.close()
  await migrateTo(path, '001_initial')

  const db = new Database(path)
  db.exec("insert into messages_fts(messages_fts, rank) values ('integrity-check', 1)")
  db.close()
})

test('a file that only Hermes has opened goes down too', async () => {
  const path = newPath()
  writeHermesFile(path, 6)
  expect((await migrateTo(path, '005_billing')).migrations).toEqual(['006_reasoning'])
  expect(shapeOf(path)).toEqual(all[4]!.shape)
})

test('a file that went down and that Hermes brought up again opens', async () => {
  const path = newPath()
  writeHermesFile(path, 6)
  await migrateTo(path, '005_billing')
  const db = new Database(path)
  hermesStep(db, 6)
  db.close()

  const store = await openForTest({ path })
  expect(store.info).toMatchObject({ schemaVersion: 6, migrations: NAMES.slice(6) })
  expect(await store.sessions.get('alpha')).toEqual(hermesRows(6).sessions[0])
})

test('going up only to 004 names the sessions that lose their title', async () => {
  const path = newPath()
  writeHermesFile(path, 3)
  const db = new Database(path)
  db.exec("INSERT INTO sessions (id, source, started_at, title) VALUES ('older', 'cli', 1.0, 'Herd')")
  db.close()
  expect((await migrateTo(path, '004_title_unique')).untitled).toEqual([{ id: 'older', title: 'Herd' }])
})

async function migrateTo(path: string, target: string): Promise<MigrationReport> {
  const db = new Database(path)
  try {
    return await migrate(new Connection(db, () => {}), { additions: true, target, busyTimeout: 1_000 })
  } finally {
    db.close()
  }
}

function shapeOf(path: string) {
  const db = new Database(path, { readonly: true })
  try {
    return readShape(new Connection(db, () => {}))
  } finally {
    db.close()
  }
}
