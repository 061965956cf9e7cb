import { readFileSync } from 'node:fs'
import Database from 'better-sqlite3'
import { expect } from 'vitest'
import { Connection } from '../../src/database/connection.ts'
import { ADDITION_NAMES, HERMES_NAMES, MIGRATIONS, reference } from '../../src/database/reference.ts'
import { differences, readShape } from '../../src/database/shape.ts'
import type { StateStore } from '../../src/index.ts'
import { change } from './flawed-files.ts'
import { expectSound, sql } from './processes.ts'
import { eventsOf, openForTest } from './stores.ts'

/** The rows of {@link hermesRows} as a store reads them. */
export async function storedRows(store: StateStore) {
  const ids = ['alpha', 'beta', 'gamma']
  const sessions = await Promise.all(ids.map((id) => store.sessions.get(id)))
  const messages = await Promise.all(ids.map((id) => store.messages.list(id)))
  return { sessions, messages: messages.flat() }
}

/** The ids of the messages that a search finds, in order. */
export async function found(store: StateStore, query: string): Promise<number[]> {
  const hits = await store.search.messages(query)
  return hits.map(({ id }) => id).sort((a, b) => a - b)
}

/** Expects what mending should have named: each part is in an entry of its list, and each entry has a part in it. */
export function expectMended(store: StateStore, parts: readonly string[]): void {
  const { mended } = store.info
  expect(parts.filter((part) => !mended.some((entry) => entry.includes(part)))).toEqual([])
  expect(mended.filter((entry) => !parts.some((part) => entry.includes(part)))).toEqual([])
}

/** Expects every part that the migrations make, no other part, and no damage. */
export async function expectComplete(path: string): Promise<void> {
  await expectShape(path, [...HERMES_NAMES, ...ADDITION_NAMES])
  expect(sql(path, 'select name from kysely_migration order by name')).toEqual(
    Object.keys(MIGRATIONS).map((name) => ({ name })),
  )
  expectSound(path)
}

/** Expects the parts that these migrations make, and no other part. */
export async function expectShape(path: string, migrations: readonly string[]): Promise<void> {
  const connection = new Connection(new Database(path, { readonly: true }), () => {})
  const shape = readShape(connection)
  connection.close()
  const expected = (await reference(migrations)).shape
  expect({ missing: differences(shape, expected), beside: differences(expected, shape) }).toEqual({
    missing: [],
    beside: [],
  })
  expect(sql(path, 'select version from schema_version')).toEqual([{ version: 6 }])
}

/** Expects that opening a file again finds nothing to do. */
export async function expectUntouchedByOpening(path: string): Promise<void> {
  const before = readFileSync(path)
  const again = await openForTest({ path })
  await again.close()
  expect(again.info).toMatchObject({ mended: [], migrations: [], wordIndexProblem: null })
  expect(eventsOf(again, 'mended')).toEqual([])
  expect(readFileSync(path).equals(before)).toBe(true)
}

/** Compares the word index with the messages; throws where they differ. */
export function checkIndex(path: string): void {
  sql(path, "insert into messages_fts(messages_fts, rank) values ('integrity-check', 1)")
}

/** Changes and then deletes every message as another program would, and checks the word index each time. */
export function expectIndexFollows(path: string): void {
  checkIndex(path)
  change(path, "UPDATE messages SET content = content || ' moved'")
  checkIndex(path)
  change(path, 'DELETE FROM messages')
  checkIndex(path)
}

/** Every object of a file's schema and every row of its tables, also where its word index cannot be read. */
export function storage(path: string): { schema: unknown[]; rows: unknown[] } {
  const db = new Database(path, { readonly: true })
  try {
    const schema = db.prepare('SELECT * FROM sqlite_schema ORDER BY rowid').all()
    const names = db
      .prepare("SELECT name FROM sqlite_schema WHERE type = 'table' AND rootpage > 0 ORDER BY name")
      .pluck()
      .all()
    return { schema, rows: names.map((name) => [name, db.prepare(`SELECT * FROM "${name}"`).all()]) }
  } finally {
    db.close()
  }
}
