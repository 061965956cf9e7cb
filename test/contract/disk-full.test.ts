import Database from 'better-sqlite3'
import { CompiledQuery } from 'kysely'
import { describe, expect, onTestFinished, test, vi } from 'vitest'
import { Connection } from '../../src/database/connection.ts'
import { migrate } from '../../src/database/migrator.ts'
import { CHECKPOINT_EVERY_N_WRITES, DiskFullError, type StateStore } from '../../src/index.ts'
import { dump, hermesRows, writeHermesFile } from '../support/hermes-file.ts'
import { bothModes, eventsOf, newPath, openForTest } from '../support/stores.ts'

/** Far more than a page. */
const message = (n: number) => ({ role: 'user', content: `${n} ${'walrus '.repeat(3_000)}` })

async function limitPages(store: StateStore, pages: number | 'what it has'): Promise<void> {
  const run = (text: string) => store.db.executeQuery<Record<string, number>>(CompiledQuery.raw(text))
  const [count] = (await run('pragma page_count')).rows
  await run(`pragma max_page_count = ${pages === 'what it has' ? count!.page_count : pages}`)
}

async function everything(store: StateStore) {
  return {
    session: await store.sessions.get('s'),
    messages: await store.messages.list('s'),
    found: (await store.search.messages('walrus')).length,
    sessions: await store.sessions.count(),
  }
}

describe.each(bothModes)('$name that is full', (kind) => {
  test('refuses each write whole, still reads, and takes the same writes when there is room', async () => {
    const store = await kind.open()
    await store.sessions.create({ id: 's', source: 'cli' })
    await store.messages.append('s', message(0))
    await limitPages(store, 'what it has')
    const before = await everything(store)

    const writes = [
      () => store.messages.append('s', message(1)),
      () => store.messages.appendMany('s', [{ role: 'user', content: 'small' }, message(2), message(3)]),
      () => store.sessions.create({ id: 'long', source: 'cli', system_prompt: message(4).content }),
      () =>
        store.transaction(async (tx) => {
          await tx.messages.append('s', { role: 'user', content: 'small' })
          await tx.messages.append('s', message(5))
        }),
    ]
    for (const write of writes) {
      await expect(write()).rejects.toThrow(DiskFullError)
      expect(await everything(store)).toEqual(before)
    }
    expect(await store.sessions.get('long')).toBeNull()

    await limitPages(store, 100_000)
    for (const write of writes) await write()
    expect(await store.messages.count('s')).toBe(7)
    expect(await store.maintenance.check()).toMatchObject({ ok: true })
  })

  test('fails the write that does not fit, of those made together, and no other', async () => {
    const store = await kind.open()
    await store.sessions.create({ id: 's', source: 'cli' })
    await limitPages(store, 'what it has')
    const results = await Promise.allSettled([
      store.sessions.setModel('s', 'm'),
      store.messages.append('s', message(1)),
    ])
    expect(results.map(({ status }) => status)).toEqual(['fulfilled', 'rejected'])
  })
})

test('a file that grows too large while it is migrated is left as it was', async () => {
  const path = newPath()
  writeHermesFile(path, 1)
  const before = dump(path)
  const db = new Database(path)
  onTestFinished(() => {
    db.close()
  })
  db.pragma(`max_page_count = ${db.pragma('page_count', { simple: true })}`)
  const options = { additions: true, busyTimeout: 0, signal: undefined }
  await expect(migrate(new Connection(db, () => {}), options)).rejects.toThrow(DiskFullError)
  db.close()
  expect(dump(path)).toEqual(before)
  const store = await openForTest({ path })
  expect(await store.sessions.get('alpha')).toEqual(hermesRows(1).sessions[0])
})

test('a checkpoint that finds no room is an event, and refuses neither a write nor closing', async () => {
  // Only a disk of a few pages would do it: max_page_count does not hold a checkpoint back.
  const checkpoint = vi.spyOn(Connection.prototype, 'checkpoint').mockImplementation(() => {
    throw new Database.SqliteError('database or disk is full', 'SQLITE_FULL')
  })
  onTestFinished(() => checkpoint.mockRestore())
  const store = await openForTest({ path: newPath() })
  await store.sessions.create({ id: 's', source: 'cli' })
  for (let n = 0; n < CHECKPOINT_EVERY_N_WRITES; n++)
    await store.messages.append('s', { role: 'user', content: 'more' })
  const event = { level: 'info', reason: 'database or disk is full' }
  expect(eventsOf(store, 'checkpoint-failed')).toMatchObject([event])
  expect(await store.messages.count('s')).toBe(CHECKPOINT_EVERY_N_WRITES)
  await store.close()
  expect(eventsOf(store, 'checkpoint-failed')).toMatchObject([event, event])
})
