import Database from 'better-sqlite3'
import { describe, expect, test } from 'vitest'
import type { StateStore } from '../../src/index.ts'
import { newPath, openForTest } from '../support/stores.ts'
import { outcome, session } from '../support/transfer.ts'

const memory = () => openForTest({ path: ':memory:' })

describe('parents', () => {
  const child = (id: string, parent_session_id: string, fields = {}) =>
    session(id, { parent_session_id, ...fields })

  async function parents(store: StateStore): Promise<Record<string, string | null>> {
    const list = await store.sessions.list({ limit: 100, preview: false })
    return Object.fromEntries(list.map(({ id, parent_session_id }) => [id, parent_session_id]))
  }

  test.each<[what: string, records: object[], lineage: Record<string, string | null>, detached: object]>([
    [
      'come before their children, wherever they are in the import',
      [child('c', 'b'), child('b', 'a'), session('a')],
      { a: null, b: 'a', c: 'b' },
      {},
    ],
    ['that are their own child are taken away', [child('a', 'a')], { a: null }, { a: 'a' }],
    [
      'in a circle of two lose the link of the last',
      [child('a', 'b'), child('b', 'a'), child('c', 'b')],
      { a: 'b', b: null, c: 'b' },
      { b: 'a' },
    ],
    [
      'in a circle of three lose one link',
      [child('b', 'c'), child('c', 'a'), child('a', 'b')],
      { a: null, b: 'c', c: 'a' },
      { a: 'b' },
    ],
    ['that are nowhere are taken away', [child('a', 'nowhere')], { a: null }, { a: 'nowhere' }],
    ['that are in the store are kept', [child('a', 'there')], { a: 'there' }, {}],
    [
      'that are refused are taken away',
      [child('a', 'p'), session('p', { started_at: 'x' })],
      { a: null },
      { a: 'p' },
    ],
  ])('%s', async (_, records, lineage, detached) => {
    const store = await memory()
    await store.sessions.create({ id: 'there', source: 'cli' })
    const reports = await outcome(store, records)
    expect(await parents(store)).toEqual({ there: null, ...lineage })
    const lost = reports.flatMap(({ id, detached_parent }) =>
      detached_parent === undefined ? [] : [[id, detached_parent]],
    )
    expect(Object.fromEntries(lost)).toEqual(detached)
    expect((await store.maintenance.check()).ok).toBe(true)
  })

  test('close no circle with rows whose parent was missing', async () => {
    const store = await openForTest({ path: newPath() })
    await store.sessions.create({ id: 'b', source: 'cli' })
    const other = new Database(store.info.path)
    other.pragma('foreign_keys = off')
    other.exec("update sessions set parent_session_id = 'a' where id = 'b'")
    other.close()
    expect(await outcome(store, [child('a', 'b')])).toEqual([
      { id: 'a', status: 'imported', detached_parent: 'b' },
    ])
    expect(await parents(store)).toEqual({ a: null, b: 'a' })
  })

  test('a chain of 1,000 generations arrives, youngest first', async () => {
    const store = await memory()
    const records = Array.from({ length: 1000 }, (_, n) => child(`${n}`, `${n + 1}`))
    expect(await store.transfer.importSessions([...records, session('1000')])).toMatchObject({
      imported: 1001,
    })
    expect((await store.maintenance.check()).ok).toBe(true)
    expect((await store.sessions.get('0'))?.parent_session_id).toBe('1')
  })
})
