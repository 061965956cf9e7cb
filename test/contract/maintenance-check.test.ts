import { renameSync, statSync } from 'node:fs'
import Database from 'better-sqlite3'
import { beforeEach, describe, expect, test } from 'vitest'
import { type StateStore, StateStoreClosedError, TransactionMisuseError } from '../../src/index.ts'
import { cyclesOf } from '../../src/maintenance/cycles.ts'
import { change, damage, overwriteRoot, query } from '../support/index-damage.ts'
import { NEWER, newerFile } from '../support/newer-file.ts'
import { kinds, newPath, openForTest } from '../support/stores.ts'

const CLEAN = {
  foreignKeys: { total: 0, first: [] },
  orphans: { messages: { total: 0, sessions: [] }, structuredContent: 0, clientIds: 0, activity: 0 },
  lineageCycles: { total: 0, first: [] },
  counters: { total: 0, first: [] },
}

const CALL = { id: 'c', type: 'function', function: { name: 'f', arguments: '{}' } } as const

async function fill(store: StateStore): Promise<void> {
  await store.sessions.create({ id: 'parent', source: 'cli' })
  await store.sessions.create({ id: 'child', source: 'cli', parent_session_id: 'parent' })
  for (const id of ['parent', 'child']) {
    await store.messages.append(id, { role: 'user', content: [{ type: 'text', text: 'walrus 海象' }] })
    await store.messages.append(id, { role: 'assistant', content: null, tool_calls: [CALL, CALL] })
  }
}

/** Runs SQL as a program that does not look after references. */
const harm = (path: string, sql: string) => change(path, `pragma foreign_keys = off; ${sql}`)

test.each(kinds)('nothing is wrong with $name', async ({ open, file, additions }) => {
  const store = await open()
  await fill(store)
  const report = await store.maintenance.check()
  expect(report).toMatchObject({ ok: true, integrity: [], rows: CLEAN })
  expect(report.indexes).toEqual(
    ['words', ...(additions ? ['unsegmented'] : [])].map((index) => ({ index, problem: null })),
  )
  expect(report.sqliteVersion).toMatch(/^3\.\d+\.\d+$/)
  expect(await store.maintenance.check({ full: true })).toEqual({ ...report, walBytes: expect.any(Number) })
  if (!file) {
    expect(report).toMatchObject({ file: null, walBytes: 0 })
    expect(report.fileBytes).toBeGreaterThan(0)
    return
  }
  const { path } = store.info
  const { dev, ino } = statSync(path)
  expect(report.file).toEqual({ dev, ino, isOpenFile: true })
  expect(report.walBytes).toBeGreaterThan(0)
  await store.maintenance.checkpoint()
  const after = await store.maintenance.check()
  expect(after.fileBytes).toBe(statSync(path).size)
})

describe('in a file', () => {
  let path: string
  let store: StateStore

  beforeEach(async () => {
    path = newPath()
    store = await openForTest({ path })
    await fill(store)
  })

  const rowsOf = async (asked = store) => {
    const { ok, rows } = await asked.maintenance.check()
    return { ok, rows }
  }

  test('counters that differ from the rows are reported with both', async () => {
    change(path, "update sessions set message_count = 7, tool_call_count = null where id = 'parent'")
    change(path, "update sessions set tool_call_count = 1 where id = 'child'")
    expect(await rowsOf()).toEqual({
      ok: false,
      rows: {
        ...CLEAN,
        counters: {
          total: 2,
          first: [
            {
              id: 'parent',
              stored: { message_count: 7, tool_call_count: 0 },
              actual: { message_count: 2, tool_call_count: 2 },
            },
            {
              id: 'child',
              stored: { message_count: 2, tool_call_count: 1 },
              actual: { message_count: 2, tool_call_count: 2 },
            },
          ],
        },
      },
    })
    // It repairs nothing.
    expect(query(path, 'select message_count from sessions order by id')).toEqual([2, 7])
  })

  test('lists are cut, totals are not, in tables of several windows', async () => {
    change(
      path,
      `with recursive n(i) as (select 1 union all select i + 1 from n where i < 2500)
       insert into sessions (id, source, started_at, message_count) select 's' || i, 'cli', i, i from n;
       insert into messages (session_id, role, content, timestamp)
       select 's' || (i + 1), 'user', 'x', 1 from (
         with recursive n(i) as (select 0 union all select i + 1 from n where i < 4999) select i % 2 as i from n)`,
    )
    const { rows } = await rowsOf()
    expect(rows?.counters?.total).toBe(2_500)
    expect(rows?.counters?.first).toHaveLength(10)
    expect(rows?.counters?.first.slice(0, 3)).toMatchObject([
      { id: 's1', stored: { message_count: 1 }, actual: { message_count: 2_500 } },
      { id: 's2', stored: { message_count: 2 }, actual: { message_count: 2_500 } },
      { id: 's3', stored: { message_count: 3 }, actual: { message_count: 0 } },
    ])
  })

  test('what is written meanwhile is not taken for a fault', async () => {
    let done = false
    const checks = Promise.all([store.maintenance.check(), store.maintenance.check()]).finally(() => {
      done = true
    })
    let written = 0
    while (!done) {
      await store.messages.append('parent', { role: 'user', content: `late ${written++}` })
      await store.sessions.create({ id: `late ${written}`, source: 'cli' })
    }
    expect((await checks).map(({ ok }) => ok)).toEqual([true, true])
    expect(written).toBeGreaterThan(2)
  })

  test('messages without their session, and references to nothing, are reported', async () => {
    harm(path, "delete from sessions where id = 'parent'")
    const { ok, rows } = await rowsOf()
    expect(ok).toBe(false)
    expect(rows?.orphans).toEqual({ ...CLEAN.orphans, messages: { total: 2, sessions: ['parent'] } })
    expect(rows?.foreignKeys.total).toBe(3)
    expect(rows?.foreignKeys.first).toHaveLength(3)
    expect(rows?.foreignKeys.first).toContainEqual({ table: 'messages', rowid: 1, parent: 'sessions' })
    expect(await store.messages.count()).toBe(4)
  })

  test('rows of the additions that belong to nothing are reported', async () => {
    change(
      path,
      `insert into hs_structured_content (message_id, content) values (900, '[]'), (901, '[]');
       insert into hs_client_ids (message_id, session_id, client_id) values (9001, 'gone', 'c');
       insert into hs_session_activity (session_id, source, is_root, last_active) values ('gone', 'cli', 1, 1)`,
    )
    expect(await rowsOf()).toEqual({
      ok: false,
      rows: { ...CLEAN, orphans: { ...CLEAN.orphans, structuredContent: 2, clientIds: 1, activity: 1 } },
    })
  })

  test('circles of sessions are reported', async () => {
    change(path, "update sessions set parent_session_id = 'child' where id = 'parent'")
    expect(await rowsOf()).toEqual({
      ok: false,
      rows: { ...CLEAN, lineageCycles: { total: 1, first: [['parent', 'child']] } },
    })
  })

  test('all of it is seen by a store that only reads, and by one without additions', async () => {
    harm(
      path,
      `update sessions set parent_session_id = id, message_count = 9 where id = 'parent';
       insert into messages (session_id, role, content, timestamp) values ('gone', 'user', 'x', 1)`,
    )
    const seen = await store.maintenance.check()
    await store.close()
    const reader = await openForTest({ path, readonly: true })
    expect((await reader.maintenance.check()).rows).toEqual(seen.rows)
    expect(seen.rows).toMatchObject({
      foreignKeys: { total: 1 },
      orphans: { messages: { total: 1, sessions: ['gone'] } },
      lineageCycles: { total: 1, first: [['parent']] },
      counters: { total: 1 },
    })
  })

  test('a damaged index is reported of itself: the file and its rows are whole', async () => {
    damage(path, 'hs_bigrams', 'zeroed segments')
    const found = {
      ok: false,
      integrity: [],
      rows: CLEAN,
      indexes: [
        { index: 'words', problem: null },
        { index: 'unsegmented', problem: expect.stringContaining('is damaged') },
      ],
    }
    expect(await store.maintenance.check()).toMatchObject(found)
    await store.close()
    const reader = await openForTest({ path, readonly: true })
    expect(await reader.maintenance.check()).toMatchObject(found)
  })

  test('damage to the file itself is reported, and the rows are not read', async () => {
    await store.close()
    overwriteRoot(path, 'idx_sessions_parent')
    const reader = await openForTest({ path, readonly: true })
    const report = await reader.maintenance.check()
    expect(report).toMatchObject({ ok: false, rows: null, indexes: [] })
    expect(report.integrity.length).toBeGreaterThan(0)
  })

  test('another file at its path, or none, is reported', async () => {
    const { ino } = statSync(path)
    renameSync(path, `${path}.away`)
    expect(await store.maintenance.check()).toMatchObject({
      ok: false,
      integrity: [],
      file: { dev: null, ino: null, isOpenFile: false },
    })
    new Database(path).exec('create table other (x)').close()
    const report = await store.maintenance.check()
    expect(report).toMatchObject({ ok: false, file: { ino: statSync(path).ino, isOpenFile: false } })
    expect(report.file?.ino).not.toBe(ino)
    renameSync(`${path}.away`, path)
    expect(await store.maintenance.check()).toMatchObject({ ok: true, file: { ino, isOpenFile: true } })
  })

  test('unused pages are counted', async () => {
    await store.messages.append('child', { role: 'user', content: 'x'.repeat(100_000) })
    await store.sessions.delete('child')
    const { freeBytes, fileBytes } = await store.maintenance.check()
    expect(freeBytes).toBeGreaterThan(50_000)
    expect(fileBytes).toBeGreaterThan(freeBytes)
  })

  test('it is given up on request, refused inside a transaction and after closing', async () => {
    const reason = new Error('enough')
    await expect(store.maintenance.check({ signal: AbortSignal.abort(reason) })).rejects.toBe(reason)
    const giveUp = new AbortController()
    const check = store.maintenance.check({ signal: giveUp.signal })
    setImmediate(() => giveUp.abort(reason))
    await expect(check).rejects.toBe(reason)
    await store.transaction(async () => {
      await expect(store.maintenance.check()).rejects.toBeInstanceOf(TransactionMisuseError)
    })
    await store.close()
    await expect(store.maintenance.check()).rejects.toBeInstanceOf(StateStoreClosedError)
  })
})

test.each(NEWER)('a file of schema %i is checked, but for counters of its own kind', async (schema) => {
  const report = await (await openForTest({ path: newerFile(schema) })).maintenance.check()
  expect(report).toMatchObject({ ok: true, integrity: [], rows: { ...CLEAN, counters: null } })
})

test.each<[links: Record<string, string>, cycles: string[][]]>([
  [{}, []],
  [{ b: 'a', c: 'b', d: 'b' }, []],
  [{ a: 'a' }, [['a']]],
  [{ x: 'a', a: 'b', b: 'c', c: 'a', y: 'c', z: 'y' }, [['a', 'b', 'c']]],
  [
    { a: 'b', b: 'a', c: 'd', d: 'e', e: 'd' },
    [
      ['a', 'b'],
      ['d', 'e'],
    ],
  ],
])('the circles of %j', (links, cycles) => {
  expect(cyclesOf(new Map(Object.entries(links)))).toEqual(cycles)
})
