import { setImmediate as nextTick } from 'node:timers/promises'
import Database from 'better-sqlite3'
import { sql } from 'kysely'
import { beforeEach, describe, expect, onTestFinished, test, vi } from 'vitest'
import {
  DatabaseError,
  openStateStore,
  type StateStore,
  StateStoreClosedError,
  type StateTransaction,
  TransactionMisuseError,
  TransactionTimeoutError,
} from '../../src/index.ts'
import { bothModes, fileKinds, kinds, poison, rawRow } from '../support/stores.ts'

/** A promise and the function that resolves it. */
function gate() {
  let open: () => void = () => {}
  const opened = new Promise<void>((resolve) => {
    open = resolve
  })
  return { opened, open }
}

/** Lets everything that can go on go on. */
async function settle(): Promise<void> {
  for (let tick = 0; tick < 5; tick++) await nextTick()
}

/** Opens a transaction that stays open until `finish` is called; with an error, it then fails. */
async function openTransaction(store: StateStore) {
  const entered = gate()
  const end = gate()
  let failure: Error | undefined
  let inside!: StateTransaction
  const done = store.transaction(async (tx) => {
    inside = tx
    entered.open()
    await end.opened
    if (failure) throw failure
  })
  done.catch(() => {})
  await Promise.race([entered.opened, done])
  return {
    tx: inside,
    done,
    finish(error?: Error) {
      failure = error
      end.open()
      return done
    },
  }
}

const user = (content: string) => ({ role: 'user', content })

describe.each(kinds)('transactions in $name', (kind) => {
  let store: StateStore
  beforeEach(async () => {
    store = await kind.open()
    await store.sessions.create({ id: 's', source: 'new' })
  })

  const contents = async () => (await store.messages.list('s')).map(({ content }) => content)

  describe('what is kept', () => {
    test('all of it, when the function returns', async () => {
      const ids = await store.transaction(async (tx) => {
        await tx.sessions.end('s', 'compression')
        await tx.sessions.create({ id: 't', source: 'new', parent_session_id: 's' })
        await tx.db.updateTable('sessions').set({ title: 'T' }).where('id', '=', 't').execute()
        return [await tx.messages.append('s', user('a')), ...(await tx.messages.appendMany('t', [user('b')]))]
      })
      expect(ids).toEqual([kind.existing.messages + 1, kind.existing.messages + 2])
      expect((await store.sessions.get('s'))?.end_reason).toBe('compression')
      expect(await store.sessions.get('t')).toMatchObject({ title: 'T', message_count: 1 })
      expect(
        await rawRow(store, "select count(*) as n from messages where session_id in ('s', 't')"),
      ).toEqual({ n: 2 })
    })

    test('none of it, when the function throws, and the error is the one thrown', async () => {
      const error = new Error('mine')
      const transaction = store.transaction(async (tx) => {
        await tx.sessions.create({ id: 't', source: 'new' })
        await tx.messages.append('s', user('a'))
        await tx.db.deleteFrom('messages').execute()
        throw error
      })
      await expect(transaction).rejects.toBe(error)
      expect(await store.sessions.exists('t')).toBe(false)
      expect(await store.messages.count()).toBe(kind.existing.messages)
      expect((await store.sessions.get('s'))?.message_count).toBe(0)
    })

    test('none of it, when the function throws before it returns a promise', async () => {
      const error = new Error('mine')
      await expect(
        store.transaction(() => {
          throw error
        }),
      ).rejects.toBe(error)
      await expect(store.transaction(undefined as never)).rejects.toThrow(TypeError)
      expect(await store.messages.append('s', user('a'))).toBe(kind.existing.messages + 1)
    })

    test('a failed call is undone alone, when the function goes on', async () => {
      await poison(store)
      await store.transaction(async (tx) => {
        await tx.messages.append('s', user('a'))
        await expect(tx.messages.append('s', user('poison'))).rejects.toThrow(DatabaseError)
        await expect(tx.messages.appendMany('s', [user('x'), user('poison'), user('y')])).rejects.toThrow(
          DatabaseError,
        )
        await expect(tx.messages.replaceAll('s', [user('x'), user('poison')])).rejects.toThrow(DatabaseError)
        await expect(tx.messages.append('s', { role: '' })).rejects.toThrow(TypeError)
        await tx.messages.append('s', user('b'))
      })
      expect(await contents()).toEqual(['a', 'b'])
      expect((await store.sessions.get('s'))?.message_count).toBe(2)
    })

    test('calls that the function does not wait for one by one stay apart', async () => {
      await poison(store)
      const results = await store.transaction((tx) =>
        Promise.allSettled([
          tx.messages.append('s', user('a')),
          tx.messages.appendMany('s', [user('b'), user('poison')]),
          tx.messages.appendMany('s', [user('c'), user('d')]),
          tx.messages.append('s', user('poison')),
          tx.messages.append('s', user('e')),
        ]),
      )
      expect(results.map(({ status }) => status).join(' ')).toBe(
        'fulfilled rejected fulfilled rejected fulfilled',
      )
      expect(await contents()).toEqual(['a', 'c', 'd', 'e'])
    })

    test('an error that ends the transaction in SQLite is the one that the caller sees', async () => {
      await poison(store, 'rollback')
      const transaction = store.transaction(async (tx) => {
        await tx.messages.append('s', user('a'))
        await tx.messages.append('s', user('poison'))
      })
      await expect(transaction).rejects.toMatchObject({ code: 'DATABASE', cause: { message: 'poisoned' } })
      expect(await contents()).toEqual([])
      await store.messages.append('s', user('b'))
      expect(await contents()).toEqual(['b'])
    })

    test('nothing is kept after such an error, even if the function goes on', async () => {
      await poison(store, 'rollback')
      const transaction = store.transaction(async (tx) => {
        await tx.messages.append('s', user('a'))
        await tx.messages.append('s', user('poison')).catch(() => {})
        await expect(tx.messages.append('s', user('b'))).rejects.toThrow(TransactionMisuseError)
      })
      await expect(transaction).rejects.toThrow(TransactionMisuseError)
      expect(await contents()).toEqual([])
    })

    test('a constraint that is checked at the commit fails the transaction', async () => {
      const transaction = store.transaction(async (tx) => {
        await tx.messages.append('s', user('a'))
        await sql`pragma defer_foreign_keys = on`.execute(tx.db)
        await tx.db
          .insertInto('messages')
          .values({ session_id: 'ghost', role: 'user', timestamp: 1 })
          .execute()
      })
      await expect(transaction).rejects.toMatchObject({ sqlite_code: 'SQLITE_CONSTRAINT_FOREIGNKEY' })
      expect(await contents()).toEqual([])
      await store.messages.append('s', user('b'))
      expect(await contents()).toEqual(['b'])
    })
  })

  describe('what is seen', () => {
    test('its own writes, inside', async () => {
      await store.transaction(async (tx) => {
        await tx.messages.append('s', user('needle in a haystack'))
        expect(await tx.messages.count('s')).toBe(1)
        expect(await tx.messages.conversation('s')).toEqual([user('needle in a haystack')])
        expect(await tx.search.messages('needle')).toHaveLength(1)
        expect((await tx.sessions.get('s'))?.message_count).toBe(1)
        const seen: unknown[] = []
        for await (const { content } of tx.messages.iterate('s')) seen.push(content)
        for await (const { role } of tx.db
          .selectFrom('messages')
          .select('role')
          .where('session_id', '=', 's')
          .stream())
          seen.push(role)
        expect(seen).toEqual(['needle in a haystack', 'user'])
      })
    })

    test.each(['kept', 'undone'])('nothing outside, until it is %s', async (how) => {
      const transaction = await openTransaction(store)
      await transaction.tx.messages.append('s', user('needle'))
      const seen: string[] = []
      const reads = Promise.all([
        store.messages.count('s').then((count) => seen.push(`count ${count}`)),
        store.messages.list('s').then(({ length }) => seen.push(`list ${length}`)),
        store.sessions.get('s').then((session) => seen.push(`session ${session?.message_count}`)),
        store.search.messages('needle').then(({ length }) => seen.push(`search ${length}`)),
        store.db
          .selectFrom('messages')
          .select('id')
          .where('session_id', '=', 's')
          .execute()
          .then(({ length }) => seen.push(`db ${length}`)),
      ])
      await settle()
      expect(seen).toEqual([])
      if (kind.file)
        expect(await rawRow(store, "select count(*) as n from messages where session_id = 's'")).toEqual({
          n: 0,
        })
      await transaction.finish(how === 'kept' ? undefined : new Error('undo')).catch(() => {})
      await reads
      const n = how === 'kept' ? 1 : 0
      expect(seen.sort()).toEqual([`count ${n}`, `db ${n}`, `list ${n}`, `search ${n}`, `session ${n}`])
    })

    test('a read comes before the next transaction', async () => {
      const first = await openTransaction(store)
      await first.tx.messages.append('s', user('a'))
      const read = store.messages.count('s')
      const second = openTransaction(store)
      await first.finish()
      await expect(read).resolves.toBe(1)
      const { tx, finish } = await second
      await tx.messages.append('s', user('b'))
      await finish()
      expect(await contents()).toEqual(['a', 'b'])
    })
  })

  describe('calls from elsewhere', () => {
    test('wait, and are not lost when the transaction is undone', async () => {
      const transaction = await openTransaction(store)
      await transaction.tx.messages.append('s', user('undone'))
      let settled = 0
      const calls = [
        store.messages.append('s', user('kept')),
        store.messages.appendMany('s', [user('too')]),
        store.sessions.create({ id: 't', source: 'new' }),
        store.db.updateTable('sessions').set({ title: 'T' }).where('id', '=', 's').execute(),
      ]
      for (const call of calls) call.then(() => settled++)
      await settle()
      expect(settled).toBe(0)
      await expect(transaction.finish(new Error('undo'))).rejects.toThrow('undo')
      await Promise.all(calls)
      expect(await contents()).toEqual(['kept', 'too'])
      expect(await store.sessions.get('s')).toMatchObject({ title: 'T', message_count: 2 })
      expect(await store.sessions.exists('t')).toBe(true)
    })

    test('are taken in the order in which they were made', async () => {
      const order: string[] = []
      const note = (name: string) => () => order.push(name)
      await Promise.all([
        store.messages.append('s', user('a')).then(note('a')),
        store.transaction((tx) => tx.messages.append('s', user('b'))).then(note('b')),
        store.messages.append('s', user('c')).then(note('c')),
        store.messages.append('s', user('d')).then(note('d')),
        store.transaction((tx) => tx.messages.append('s', user('e'))).then(note('e')),
      ])
      expect(order.join('')).toBe('abcde')
      expect(await contents()).toEqual(['a', 'b', 'c', 'd', 'e'])
    })

    test('transactions that read and then write do not overtake each other', async () => {
      await Promise.all(
        Array.from({ length: 10 }, () =>
          store.transaction(async (tx) => {
            const { title } = (await tx.sessions.get('s'))!
            await nextTick()
            await tx.db
              .updateTable('sessions')
              .set({ title: String(Number(title) + 1) })
              .where('id', '=', 's')
              .execute()
          }),
        ),
      )
      expect((await store.sessions.get('s'))?.title).toBe('10')
    })

    test('are not mistaken for calls from inside', async () => {
      const end = gate()
      const running = store.transaction(async (tx) => {
        await tx.messages.append('s', user('inside'))
        await end.opened
      })
      const waiting = store.messages.append('s', user('outside'))
      end.open()
      await running
      await waiting
      await store.messages.append('s', user('after'))
      expect((await contents()).sort()).toEqual(['after', 'inside', 'outside'])
    })
  })

  describe('calls from inside on the store itself', () => {
    test('are refused, and the transaction goes on', async () => {
      await store.transaction(async (tx) => {
        await tx.messages.append('s', user('a'))
        await expect(store.messages.append('s', user('b'))).rejects.toThrow(TransactionMisuseError)
        await expect(store.transaction(async () => {})).rejects.toThrow(TransactionMisuseError)
        await expect(store.db.selectFrom('sessions').select('id').execute()).rejects.toThrow(
          TransactionMisuseError,
        )
        await expect(store.db.transaction().execute(async () => {})).rejects.toThrow(/tx\.db/)
        await nextTick()
        await Promise.all(
          ['c', 'd'].map(async (content) => {
            await nextTick()
            await expect(store.messages.append('s', user(content))).rejects.toMatchObject({
              code: 'TRANSACTION_MISUSE',
            })
          }),
        )
        await tx.messages.append('s', user('e'))
      })
      expect(await contents()).toEqual(['a', 'e'])
    })

    test('are fine once the transaction has ended', async () => {
      const ended = gate()
      let later: Promise<number> | undefined
      await store.transaction(async () => {
        later = ended.opened.then(() => store.messages.append('s', user('later')))
      })
      ended.open()
      await later
      expect(await contents()).toEqual(['later'])
    })

    test('are fine on another store', async () => {
      const other = await kind.open()
      await other.sessions.create({ id: 's', source: 'new' })
      await store.transaction(async (tx) => {
        await other.transaction(async (otherTx) => {
          await tx.messages.append('s', user('mine'))
          await otherTx.messages.append('s', user('theirs'))
          await expect(store.messages.count()).rejects.toThrow(TransactionMisuseError)
          await expect(other.messages.count()).rejects.toThrow(TransactionMisuseError)
        })
        expect(await other.messages.count('s')).toBe(1)
      })
      expect(await contents()).toEqual(['mine'])
    })
  })

  test('a transaction that has ended takes no more calls', async () => {
    const kept = await openTransaction(store)
    await kept.finish()
    const undone = await openTransaction(store)
    await undone.finish(new Error('undo')).catch(() => {})
    for (const { tx } of [kept, undone]) {
      await expect(tx.messages.append('s', user('late'))).rejects.toThrow(TransactionMisuseError)
      await expect(tx.sessions.get('s')).rejects.toThrow(TransactionMisuseError)
      await expect(tx.search.messages('x')).rejects.toThrow(TransactionMisuseError)
      await expect(tx.db.selectFrom('sessions').select('id').execute()).rejects.toThrow()
    }
    expect(await contents()).toEqual([])
  })

  describe('store.db', () => {
    const insert = (db: Pick<StateStore['db'], 'insertInto'>, content: string) =>
      db
        .insertInto('messages')
        .values({ session_id: 's', role: 'user', content, timestamp: 1 })
        .executeTakeFirstOrThrow()

    test('reports what a statement did', async () => {
      const { insertId, numInsertedOrUpdatedRows } = await insert(store.db, 'a')
      expect([insertId, numInsertedOrUpdatedRows]).toEqual([BigInt(kind.existing.messages + 1), 1n])
      const updated = await store.db
        .updateTable('messages')
        .set({ content: 'b' })
        .where('session_id', '=', 's')
        .execute()
      expect(updated[0]?.numUpdatedRows).toBe(1n)
      expect(
        await store.db.deleteFrom('messages').where('session_id', '=', 's').returning('content').execute(),
      ).toEqual([{ content: 'b' }])
    })

    test('its transactions keep all or nothing, and refuse calls on the store', async () => {
      await store.db.transaction().execute(async (trx) => {
        await insert(trx, 'a')
        await expect(store.messages.count()).rejects.toThrow(TransactionMisuseError)
        await expect(insert(store.db, 'x')).rejects.toThrow(TransactionMisuseError)
      })
      const error = new Error('mine')
      await expect(
        store.db.transaction().execute(async (trx) => {
          await insert(trx, 'b')
          throw error
        }),
      ).rejects.toBe(error)
      expect(await contents()).toEqual(['a'])
    })

    test('controlled transactions have savepoints', async () => {
      const trx = await store.db.startTransaction().execute()
      await insert(trx, 'a')
      const first = await trx.savepoint('first').execute()
      await insert(first, 'b')
      const second = await first.savepoint('second "point"').execute()
      await insert(second, 'c')
      const released = await second.releaseSavepoint('second "point"').execute()
      await insert(released, 'd')
      const back = await released.rollbackToSavepoint('first').execute()
      await insert(back, 'e')
      const outside = store.messages.append('s', user('outside'))
      await settle()
      await trx.commit().execute()
      await outside
      expect(await contents()).toEqual(['a', 'e', 'outside'])
      await expect(insert(trx, 'late')).rejects.toThrow()
    })

    test('controlled transactions can be undone', async () => {
      const trx = await store.db.startTransaction().execute()
      await insert(trx, 'a')
      const outside = store.messages.count('s')
      await trx.rollback().execute()
      expect(await outside).toBe(0)
      expect(await contents()).toEqual([])
    })

    test('no transaction begins or ends by hand', async () => {
      for (const statement of [
        'begin',
        'BEGIN DEFERRED TRANSACTION',
        ' /* c */ begin',
        'begin immediate',
        'begin exclusive',
        'savepoint x',
      ])
        await expect(sql.raw(statement).execute(store.db), statement).rejects.toMatchObject({
          name: expect.stringMatching(/^(TransactionMisuse|Database)Error$/),
        })
      for (const statement of ['commit', 'end', 'rollback', 'release x', 'rollback to x'])
        await expect(sql.raw(statement).execute(store.db), statement).rejects.toThrow(DatabaseError)
      await store.messages.append('s', user('a'))
      await insert(store.db, 'b')
      expect(await contents()).toEqual(['a', 'b'])
      if (kind.file)
        expect(await rawRow(store, "select count(*) as n from messages where session_id = 's'")).toEqual({
          n: 2,
        })
    })

    test('a transaction that is ended by hand from inside fails, and others go on', async () => {
      for (const statement of ['commit', 'end', 'rollback'])
        await expect(
          store.transaction(async (tx) => {
            await sql.raw(statement).execute(tx.db)
            await tx.messages.append('s', user('late'))
          }),
          statement,
        ).rejects.toThrow(TransactionMisuseError)
      await store.messages.append('s', user('after'))
      expect(await contents()).toEqual(['after'])
    })

    test('a begin by hand on one connection of Kysely is refused too', async () => {
      const begun = store.db.connection().execute(async (db) => {
        await sql`begin`.execute(db)
        await insert(db as StateStore['db'], 'a')
      })
      await expect(begun).rejects.toThrow(TransactionMisuseError)
      expect(await contents()).toEqual([])
    })

    test('streams while others write', async () => {
      await store.messages.appendMany('s', [user('a'), user('b'), user('c')])
      const seen: unknown[] = []
      for await (const { content } of store.db
        .selectFrom('messages')
        .select('content')
        .where('session_id', '=', 's')
        .orderBy('id')
        .stream(2)) {
        seen.push(content)
        await store.messages.append('s', user('meanwhile'))
      }
      expect(seen).toEqual(['a', 'b', 'c'])
      expect(await store.messages.count('s')).toBe(6)
      for await (const _ of store.db.selectFrom('messages').select('id').stream()) break
      await store.messages.append('s', user('after'))
      expect(await store.messages.count('s')).toBe(7)
    })

    test('refuses values that SQLite would take for something else', async () => {
      for (const value of [undefined, Number.NaN])
        await expect(
          sql`update sessions set model = ${value} where id = 's'`.execute(store.db),
        ).rejects.toThrow(TypeError)
      await sql`update sessions set model = ${'a\ud800'} where id = 's'`.execute(store.db)
      expect((await store.sessions.get('s'))?.model).toBe('a\ufffd')
    })

    test('errors of SQLite are errors of the store', async () => {
      await expect(sql`select nope from sessions`.execute(store.db)).rejects.toThrow(DatabaseError)
      await expect(sql`selekt`.execute(store.db)).rejects.toMatchObject({ code: 'DATABASE' })
    })
  })
})

describe.each(bothModes)('the time limit in $name', (kind) => {
  let store: StateStore
  beforeEach(async () => {
    store = await kind.open()
    await store.sessions.create({ id: 's', source: 'new' })
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
    onTestFinished(() => {
      vi.useRealTimers()
    })
  })

  test('a transaction open for over 5 seconds is undone, and others go on', async () => {
    const { tx, done } = await openTransaction(store)
    await tx.messages.append('s', user('undone'))
    const waiting = store.messages.append('s', user('waiting'))
    const read = store.messages.count('s')
    vi.advanceTimersByTime(4_999)
    await settle()
    await tx.messages.append('s', user('undone too'))
    vi.advanceTimersByTime(2)
    await expect(done).rejects.toThrow(TransactionTimeoutError)
    await expect(done).rejects.toMatchObject({ code: 'TRANSACTION_TIMEOUT' })
    expect(await read).toBe(0)
    await waiting
    await expect(tx.messages.append('s', user('late'))).rejects.toThrow(TransactionTimeoutError)
    expect((await store.messages.list('s')).map(({ content }) => content)).toEqual(['waiting'])
  })

  test("so is one of Kysely's, whether it has a callback or not", async () => {
    const entered = gate()
    const end = gate()
    const done = store.db.transaction().execute(async (trx) => {
      await trx.updateTable('sessions').set({ title: 'T' }).execute()
      entered.open()
      await end.opened
      await trx.updateTable('sessions').set({ title: 'U' }).execute()
    })
    await entered.opened
    vi.advanceTimersByTime(5_001)
    end.open()
    await expect(done).rejects.toThrow(TransactionTimeoutError)

    const trx = await store.db.startTransaction().execute()
    await trx.updateTable('sessions').set({ title: 'V' }).execute()
    vi.advanceTimersByTime(5_001)
    await expect(trx.commit().execute()).rejects.toThrow(TransactionTimeoutError)
    expect((await store.sessions.get('s'))?.title).toBeNull()
  })

  test('a transaction that ended in time is left alone', async () => {
    const { finish } = await openTransaction(store)
    vi.advanceTimersByTime(4_999)
    await finish()
    vi.advanceTimersByTime(10_000)
    const next = await openTransaction(store)
    vi.advanceTimersByTime(4_999)
    await next.tx.messages.append('s', user('kept'))
    await next.finish()
    expect(await store.messages.count('s')).toBe(1)
  })
})

describe.each(fileKinds)('closing $name', (kind) => {
  const storedIn = (path: string) => {
    const db = new Database(path, { readonly: true })
    try {
      return db
        .prepare<[], string>("select content from messages where session_id = 's' order by id")
        .pluck()
        .all()
    } finally {
      db.close()
    }
  }
  let store: StateStore
  beforeEach(async () => {
    store = await kind.open()
    await store.sessions.create({ id: 's', source: 'new' })
  })

  test('waits for what was asked before', async () => {
    const calls = Promise.all([
      store.messages.append('s', user('a')),
      store.messages.append('s', user('b')),
      store.messages.appendMany('s', [user('c'), user('d')]),
      store.messages.count('s'),
    ])
    await Promise.all([store.close(), calls])
    expect(storedIn(store.info.path)).toEqual(['a', 'b', 'c', 'd'])
  })

  test('waits for a transaction that was asked for before', async () => {
    const transaction = store.transaction((tx) => tx.messages.append('s', user('a')))
    await Promise.all([store.close(), transaction])
    expect(storedIn(store.info.path)).toEqual(['a'])
  })

  test('lets an open transaction end, and takes no other calls', async () => {
    const { tx, finish } = await openTransaction(store)
    await tx.messages.append('s', user('a'))
    const closed = store.close()
    await expect(store.messages.append('s', user('x'))).rejects.toThrow(StateStoreClosedError)
    await tx.messages.append('s', user('b'))
    await finish()
    await closed
    expect(storedIn(store.info.path)).toEqual(['a', 'b'])
  })

  test('of 40 appends that race it, each lands or rejects', async () => {
    const appends: Promise<number>[] = []
    let closed: Promise<void> | undefined
    for (let index = 0; index < 40; index++) {
      const append = store.messages.append('s', user(`m${index}`))
      append.catch(() => {})
      appends.push(append)
      if (index === 25) closed = store.close()
      if (index % 7 === 0) await nextTick()
    }
    const results = await Promise.allSettled(appends)
    await closed
    const landed = results.flatMap(({ status }, index) => (status === 'fulfilled' ? [`m${index}`] : []))
    for (const result of results)
      if (result.status === 'rejected') expect(result.reason).toBeInstanceOf(StateStoreClosedError)
    expect(landed).toHaveLength(26)
    expect(storedIn(store.info.path)).toEqual(landed)
  })

  test('twice is fine, also at once, and the file can be opened again', async () => {
    await Promise.all([store.close(), store.close()])
    await store.close()
    const again = await openStateStore({ path: store.info.path, additions: kind.additions })
    onTestFinished(() => again.close())
    expect(await again.sessions.exists('s')).toBe(true)
    expect(again.info.migrations).toEqual([])
  })

  test('happens at the end of a block', async () => {
    let inner: StateStore
    {
      await using opened = await kind.open()
      inner = opened
      expect(await inner.sessions.count()).toBe(kind.existing.sessions)
    }
    await expect(inner.sessions.count()).rejects.toThrow(StateStoreClosedError)
  })

  test('is what destroying store.db does too', async () => {
    await store.db.selectFrom('sessions').select('id').execute()
    await store.db.destroy()
    await expect(store.messages.count()).rejects.toThrow(StateStoreClosedError)
  })
})
