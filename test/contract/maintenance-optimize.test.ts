import { statSync } from 'node:fs'
import Database from 'better-sqlite3'
import { expect, test } from 'vitest'
import { ReadonlyStoreError, type StateStore, TransactionMisuseError } from '../../src/index.ts'
import { expectIndexesSound } from '../support/index-damage.ts'
import { kinds, newPath, openForTest } from '../support/stores.ts'

/** Two sessions of 200 long messages, of which the first is deleted again. */
async function halfEmpty(store: StateStore): Promise<void> {
  for (const id of ['a', 'b']) {
    await store.sessions.create({ id, source: 'cli' })
    const messages = Array.from({ length: 200 }, (_, n) => ({
      role: 'user',
      content: `walrus ${id}${n} 海象 ${'ice '.repeat(400)}`,
    }))
    await store.messages.appendMany(id, messages)
  }
  await store.sessions.delete('a')
}

test.each(kinds)('$name gives its free pages back, and answers as before', async (kind) => {
  const store = await kind.open()
  await halfEmpty(store)
  const before = {
    conversation: await store.messages.list('b'),
    words: await store.search.messages('b7'),
    unsegmented: await store.search.messages('海象'),
  }
  const result = await store.maintenance.optimize()
  expect(result).toMatchObject({ vacuum: 'done', checkpoint: { busy: false, walBytes: 0 } })
  expect(result.bytesAfter).toBeLessThan(result.bytesBefore * 0.75)
  expect({
    conversation: await store.messages.list('b'),
    words: await store.search.messages('b7'),
    unsegmented: await store.search.messages('海象'),
  }).toEqual(before)
  expect((await store.maintenance.check()).ok).toBe(true)
  if (kind.file) {
    expect(statSync(store.info.path).size).toBe(result.bytesAfter)
    expectIndexesSound(store.info.path)
  }
  expect(await store.maintenance.optimize()).toMatchObject({
    vacuum: 'little-free',
    bytesBefore: result.bytesAfter,
  })
})

test('a reader of an older state keeps the log, and is no error', async () => {
  const store = await openForTest({ path: newPath(), busyTimeout: 100 })
  await halfEmpty(store)
  const reader = new Database(store.info.path, { readonly: true })
  reader.exec('begin')
  expect(reader.prepare('select count(*) from messages').pluck().get()).toBe(200)
  expect(await store.maintenance.optimize()).toMatchObject({ vacuum: 'done', checkpoint: { busy: true } })
  expect(reader.prepare('select count(*) from messages').pluck().get()).toBe(200)
  reader.close()
  expect((await store.maintenance.check()).ok).toBe(true)
})

test('waits for others: a transaction of the store, and a writer elsewhere', async () => {
  const store = await openForTest({ path: newPath() })
  await halfEmpty(store)
  const writer = new Database(store.info.path)
  writer.exec('begin immediate')
  setTimeout(() => writer.exec('commit'), 50)
  const [result] = await Promise.all([
    store.maintenance.optimize(),
    store.transaction((tx) => tx.messages.append('b', { role: 'user', content: 'meanwhile' })),
  ])
  writer.close()
  expect(result.vacuum).toBe('done')
  expect(await store.messages.count('b')).toBe(201)
})

test('is refused inside a transaction and on a store that only reads', async () => {
  const store = await openForTest({ path: newPath() })
  await store.transaction(async () => {
    await expect(store.maintenance.optimize()).rejects.toBeInstanceOf(TransactionMisuseError)
  })
  await store.close()
  const reader = await openForTest({ path: store.info.path, readonly: true })
  await expect(reader.maintenance.optimize()).rejects.toBeInstanceOf(ReadonlyStoreError)
})
