import { setImmediate as nextTick } from 'node:timers/promises'
import { sql } from 'kysely'
import { beforeEach, describe, expect, test } from 'vitest'
import {
  ReadonlyStoreError,
  type StateStore,
  StateStoreClosedError,
  TransactionMisuseError,
} from '../../src/index.ts'
import { fileKinds, openForTest } from '../support/stores.ts'

/** What each operation may do in a store of each state; `run` needs the session `s` and the message `id`. */
interface Operation {
  name: string
  writes: boolean
  run(store: StateStore, id: number): Promise<unknown>
}

const message = { role: 'user', content: 'x' }

const reads: Omit<Operation, 'writes'>[] = [
  { name: 'sessions.get', run: (store) => store.sessions.get('s') },
  { name: 'sessions.exists', run: (store) => store.sessions.exists('s') },
  { name: 'sessions.list', run: (store) => store.sessions.list() },
  { name: 'sessions.count', run: (store) => store.sessions.count() },
  { name: 'messages.list', run: (store) => store.messages.list('s') },
  { name: 'messages.iterate', run: (store) => store.messages.iterate('s').next() },
  { name: 'messages.get', run: (store, id) => store.messages.get(id) },
  { name: 'messages.conversation', run: (store) => store.messages.conversation('s') },
  { name: 'messages.count', run: (store) => store.messages.count('s') },
  { name: 'search.messages', run: (store) => store.search.messages('x') },
  { name: 'db: select', run: (store) => store.db.selectFrom('sessions').select('id').execute() },
  {
    name: 'db: stream',
    run: async (store) => {
      for await (const row of store.db.selectFrom('sessions').select('id').stream()) return row
    },
  },
]

const writes: Omit<Operation, 'writes'>[] = [
  { name: 'sessions.create', run: (store) => store.sessions.create({ source: 'cli' }) },
  { name: 'sessions.ensure', run: (store) => store.sessions.ensure({ id: 'new' }) },
  { name: 'sessions.end', run: (store) => store.sessions.end('s', 'user_exit') },
  { name: 'sessions.continueAs', run: (store) => store.sessions.continueAs('s') },
  { name: 'sessions.reopen', run: (store) => store.sessions.reopen('s') },
  { name: 'sessions.setSystemPrompt', run: (store) => store.sessions.setSystemPrompt('s', 'p') },
  { name: 'sessions.setModel', run: (store) => store.sessions.setModel('s', 'm') },
  { name: 'messages.append', run: (store) => store.messages.append('s', message) },
  { name: 'messages.appendMany', run: (store) => store.messages.appendMany('s', [message, message]) },
  { name: 'messages.replaceAll', run: (store) => store.messages.replaceAll('s', [message]) },
  { name: 'messages.clear', run: (store) => store.messages.clear('s') },
  {
    name: 'db: update',
    run: (store) => store.db.updateTable('sessions').set({ model: 'm' }).where('id', '=', 's').execute(),
  },
  { name: 'db: returning', run: (store) => sql`delete from messages returning id`.execute(store.db) },
  // A transaction takes the write lock, whatever it then does.
  { name: 'transaction', run: (store) => store.transaction((tx) => tx.sessions.get('s')) },
  {
    name: 'db.transaction',
    run: (store) =>
      store.db.transaction().execute((trx) => trx.selectFrom('sessions').select('id').execute()),
  },
  {
    name: 'db.startTransaction',
    run: async (store) => {
      const trx = await store.db.startTransaction().execute()
      await trx.rollback().execute()
    },
  },
]

const operations: Operation[] = [
  ...reads.map((operation) => ({ ...operation, writes: false })),
  ...writes.map((operation) => ({ ...operation, writes: true })),
]

describe.each(fileKinds)('states of $name', (kind) => {
  let store: StateStore
  let id: number
  beforeEach(async () => {
    store = await kind.open()
    await store.sessions.create({ id: 's', source: 'cli' })
    id = await store.messages.append('s', message)
  })

  const contents = async (of: StateStore) => (await of.messages.list('s')).map(({ content }) => content)

  describe('open: everything is allowed', () => {
    test.each(operations)('$name', async ({ run }) => {
      await run(store, id)
    })
  })

  test('closed: everything is refused, but for closing again', async () => {
    await store.close()
    for (const { name, run } of operations)
      await expect(run(store, id), name).rejects.toThrow(StateStoreClosedError)
    await store.close()
    expect(store.info.path).not.toBe('')
  })

  test('closed: mistakes in arguments are still TypeErrors', async () => {
    await store.close()
    await expect(store.messages.append('s', { role: '' })).rejects.toThrow(TypeError)
    await expect(store.sessions.get('')).rejects.toThrow(TypeError)
    await expect(store.search.messages('x', { limit: -1 })).rejects.toThrow(TypeError)
  })

  test('inside its own transaction: everything is refused at once', async () => {
    await store.transaction(async (tx) => {
      for (const { name, run } of operations)
        await expect(run(store, id), name).rejects.toThrow(TransactionMisuseError)
      await expect(store.close()).rejects.toThrow(TransactionMisuseError)
      await tx.messages.append('s', { role: 'user', content: 'inside' })
    })
    expect(await contents(store)).toEqual(['x', 'inside'])
  })

  describe('another transaction is open: everything waits for its end', () => {
    test.each(operations)('$name', async ({ run }) => {
      let end: () => void = () => {}
      const ended = new Promise<void>((resolve) => {
        end = resolve
      })
      await new Promise<void>((entered) => {
        const transaction = store.transaction(async () => {
          entered()
          await ended
        })
        transaction.catch(() => {})
      })
      let settled = false
      const result = run(store, id).finally(() => {
        settled = true
      })
      for (let tick = 0; tick < 5; tick++) await nextTick()
      expect(settled).toBe(false)
      end()
      await result
    })
  })

  describe('read-only', () => {
    let readonly: StateStore
    beforeEach(async () => {
      await store.close()
      readonly = await openForTest({ path: store.info.path, readonly: true })
    })

    test('reads are allowed', async () => {
      expect(readonly.info.readonly).toBe(true)
      for (const operation of operations) if (!operation.writes) await operation.run(readonly, id)
      expect(await contents(readonly)).toEqual(['x'])
    })

    test('writes are refused, and the store can still be read', async () => {
      for (const { name, writes, run } of operations)
        if (writes) await expect(run(readonly, id), name).rejects.toThrow(ReadonlyStoreError)
      expect(await contents(readonly)).toEqual(['x'])
    })

    test('the error does not advise what was done already', async () => {
      const append = readonly.messages.append('s', message)
      await expect(append).rejects.toMatchObject({ code: 'READONLY' })
      await expect(append).rejects.not.toThrow(/open it with readonly: true/)
    })
  })
})
