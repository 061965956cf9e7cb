import Database from 'better-sqlite3'
import { CompiledQuery } from 'kysely'
import { describe, expect, it, onTestFinished } from 'vitest'
import { Connection } from '../../src/database/connection.ts'
import { HERMES_NAMES, reference } from '../../src/database/reference.ts'
import { readShape } from '../../src/database/shape.ts'
import { StoreHandle } from '../../src/database/store-handle.ts'
import { makeViews } from '../../src/database/views.ts'
import { WriteQueue } from '../../src/database/write-queue.ts'
import { openStateStore, type StateStore, StateStoreBusyError } from '../../src/index.ts'
import { IndexHealth } from '../../src/search/index-health.ts'
import { StateStore as Store } from '../../src/store.ts'
import { type Child, expectSound, gate, sql, startSql, until } from '../support/processes.ts'
import { newPath, openForTest } from '../support/stores.ts'

const user = (content: string) => ({ role: 'user', content })

const journalMode = (path: string) => {
  const db = new Database(path)
  const mode = db.pragma('journal_mode', { simple: true })
  db.close()
  return mode
}

async function writeStore(path: string, mode: 'wal' | 'delete'): Promise<void> {
  const store = await openStateStore({ path })
  await store.sessions.create({ id: 's', source: 'cli' })
  await store.messages.append('s', user('first'))
  await store.close()
  const db = new Database(path)
  expect(db.pragma(`journal_mode = ${mode}`, { simple: true })).toBe(mode)
  db.close()
}

describe('opening', () => {
  it('turns a rollback-journal file to WAL when nobody holds it', async () => {
    const path = newPath()
    await writeStore(path, 'delete')
    const store = await openForTest({ path })
    expect(store.info).toMatchObject({ journalMode: 'wal', migrations: [] })
    expect(await store.messages.count('s')).toBe(1)
    await store.close()
    expect(journalMode(path)).toBe('wal')
  })

  it('succeeds on a WAL file in which another connection holds a read transaction, and leaves its snapshot', async () => {
    const path = newPath()
    await writeStore(path, 'wal')
    const reader = await startSql(path)
    await reader.ask('begin')
    expect(JSON.parse(await reader.ask('select count(*) as n from messages'))).toEqual([{ n: 1 }])
    for (let n = 0; n < 3; n++) {
      const store = await openForTest({ path, busyTimeout: 0 })
      expect(store.info.journalMode).toBe('wal')
      await store.messages.append('s', user('more'))
      await store.close()
    }
    expect(JSON.parse(await reader.ask('select count(*) as n from messages'))).toEqual([{ n: 1 }])
  })

  it('makes every setting explicit', async () => {
    const settings = async (store: StateStore) => {
      const values: unknown[] = []
      for (const name of ['synchronous', 'foreign_keys', 'trusted_schema', 'journal_size_limit']) {
        const { rows } = await store.db.executeQuery(CompiledQuery.raw(`pragma ${name}`))
        values.push(Object.values(rows[0] as object)[0])
      }
      return values
    }
    expect(await settings(await openForTest({ path: newPath() }))).toEqual([2, 1, 0, 64 * 1024 * 1024])
    expect(await settings(await openForTest({ path: newPath(), synchronous: 'normal' }))).toEqual([
      1,
      1,
      0,
      64 * 1024 * 1024,
    ])
    expect((await openForTest({ path: ':memory:' })).info.journalMode).toBe('memory')
  })
})

/** A store where SQLite refused WAL, as on some network mounts: readers and writers block each other. */
async function openWithoutWal(busyTimeout = 20_000) {
  const path = newPath()
  await writeStore(path, 'delete')
  const db = new Database(path, { timeout: 5 })
  const inserts = { count: 0 }
  db.function('note_insert', { directOnly: true }, () => {
    inserts.count++
    return null
  })
  db.exec('create temp trigger note after insert on main.messages begin select note_insert(); end')
  const info = {
    path,
    readonly: false,
    schemaVersion: 6,
    journalMode: 'delete',
    readonlyBecause: null,
    additions: true,
    migrations: [],
    mended: [],
    wordIndexProblem: null,
  }
  const connection = new Connection(db, () => {})
  makeViews(connection, readShape(connection), (await reference(HERMES_NAMES)).shape)
  const events = () => {}
  const indexes = new IndexHealth(connection, readShape(connection), true, true, events)
  const context = { events, additions: true, newer: false, indexes }
  const care = { indexes, keep: () => () => [], others: null }
  const queue = new WriteQueue(connection, null, busyTimeout, events, care)
  const store = new Store(new StoreHandle(queue, () => queue.close()), info, context, null, () =>
    openStateStore({ path: ':memory:' }),
  )
  onTestFinished(() => store.close())
  const other = await startSql(path)
  return { path, db, store, other, inserts }
}

/** Keeps everybody from committing until it ends its transaction. */
async function read(other: Child): Promise<void> {
  await other.ask('begin')
  await other.ask('select count(*) from messages')
}

const turnsOf = () => {
  const turns = { count: 0 }
  const timer = setInterval(() => turns.count++, 5)
  onTestFinished(() => clearInterval(timer))
  return turns
}

describe('without WAL, while another process reads', () => {
  it('the commit of appends is tried again, and they are not', async () => {
    const { path, db, store, other, inserts } = await openWithoutWal()
    await read(other)
    let landed = false
    const appends = Promise.all([
      store.messages.append('s', user('a')),
      store.messages.append('s', user('b')),
    ]).then((ids) => {
      landed = true
      return ids
    })
    const turns = turnsOf()
    await until(() => turns.count >= 30)
    expect(landed).toBe(false)
    expect(db.inTransaction).toBe(true)
    await other.ask('commit')
    expect(await appends).toEqual([2, 3])
    expect(inserts.count).toBe(2)
    expect(await store.messages.append('s', user('c'))).toBe(4)
    expectSound(path)
  })

  it('the commit of a transaction and of appendMany is tried again, and they are not', async () => {
    const { path, store, other, inserts } = await openWithoutWal()
    await read(other)
    let runs = 0
    let landed = false
    const all = Promise.all([
      store.transaction(async (tx) => {
        runs++
        return tx.messages.append('s', user('a'))
      }),
      store.messages.appendMany('s', [user('b'), user('c')]),
    ]).then((ids) => {
      landed = true
      return ids
    })
    const turns = turnsOf()
    await until(() => turns.count >= 30)
    expect(landed).toBe(false)
    await other.ask('commit')
    // Which of them goes first is not promised.
    expect((await all).flat().toSorted()).toEqual([2, 3, 4])
    expect(runs).toBe(1)
    expect(inserts.count).toBe(3)
    expectSound(path)
  })

  it('a commit is given up when busyTimeout is spent, nothing is kept, and the next one works', async () => {
    const { path, store, other } = await openWithoutWal(300)
    await read(other)
    const outcomes = await Promise.allSettled([
      store.messages.append('s', user('a')),
      store.messages.append('s', user('b')),
    ])
    for (const outcome of outcomes) {
      expect(outcome).toMatchObject({ status: 'rejected', reason: expect.any(StateStoreBusyError) })
      if (outcome.status === 'rejected') expect(outcome.reason.waited_ms).toBeGreaterThanOrEqual(300)
    }
    await expect(store.transaction((tx) => tx.messages.append('s', user('c')))).rejects.toThrow(
      StateStoreBusyError,
    )
    await other.ask('commit')
    expect(await store.messages.append('s', user('d'))).toBe(2)
    expect(sql(path, 'select content from messages')).toEqual([{ content: 'first' }, { content: 'd' }])
    expectSound(path)
  })

  it('a transaction that runs out of time at its commit is kept or refused, as its promise says', async () => {
    const { path, store, other, inserts } = await openWithoutWal()
    await read(other)
    const begun = gate()
    let settled = false
    const transaction = store
      .transaction(async (tx) => {
        await tx.messages.append('s', user('in the transaction'))
        begun.open()
      })
      .then(
        () => ['first', 'in the transaction', 'behind it'],
        () => ['first', 'behind it'],
      )
      .finally(() => {
        settled = true
      })
    await begun.opened
    const append = store.messages.append('s', user('behind it'))
    // Over the five seconds that a transaction may be open.
    const started = performance.now()
    await until(() => performance.now() - started > 5_200)
    // What is behind it has not begun, or the two would end each other's transaction.
    expect(settled || inserts.count === 1).toBe(true)
    await other.ask('commit')
    const expected = await transaction
    await append
    expect((await store.messages.list('s')).map(({ content }) => content)).toEqual(expected)
    expectSound(path)
  })
})

it('without WAL, a read waits for another process that commits', async () => {
  const { store, other } = await openWithoutWal()
  await other.ask('begin exclusive')
  const turns = turnsOf()
  const count = store.messages.count('s')
  const outcome = count.then(
    () => 'read',
    (error) => `refused: ${error}`,
  )
  await Promise.race([outcome, until(() => turns.count >= 20)])
  await other.ask('commit')
  expect(await outcome).toBe('read')
})

it('without WAL, a read that waits when the store is closed says so', async () => {
  const { store, other } = await openWithoutWal()
  await other.ask('begin exclusive')
  const outcome = store.messages.count('s').then(
    () => 'read',
    (error) => error.name,
  )
  await store.close()
  await other.ask('commit')
  expect(['read', 'StateStoreClosedError']).toContain(await outcome)
})
