import { statSync } from 'node:fs'
import Database from 'better-sqlite3'
import { expect, test } from 'vitest'
import {
  ReadonlyStoreError,
  type StateStore,
  StateStoreClosedError,
  TransactionMisuseError,
} from '../../src/index.ts'
import { newPath, openForTest } from '../support/stores.ts'

const walBytes = (store: StateStore) => statSync(`${store.info.path}-wal`).size

async function filled(busyTimeout?: number): Promise<StateStore> {
  const store = await openForTest({ path: newPath(), busyTimeout })
  await store.sessions.create({ id: 's', source: 'cli' })
  await store.messages.append('s', { role: 'user', content: 'walrus' })
  return store
}

test('empties the log', async () => {
  const store = await filled()
  expect(walBytes(store)).toBeGreaterThan(0)
  expect(await store.maintenance.checkpoint()).toEqual({ busy: false, walBytes: 0, checkpointed: 0 })
  expect(walBytes(store)).toBe(0)
  expect(await store.messages.count('s')).toBe(1)
})

test('says that a reader is in the way, loses nothing, and lets the event loop and writers go on', async () => {
  const store = await filled(300)
  const reader = new Database(store.info.path, { readonly: true })
  reader.exec('begin')
  expect(reader.prepare('select count(*) from messages').pluck().get()).toBe(1)
  await store.messages.append('s', { role: 'user', content: 'later' })
  let turns = 0
  const timer = setInterval(() => turns++, 5)
  const checkpoint = store.maintenance.checkpoint()
  await store.messages.append('s', { role: 'user', content: 'meanwhile' })
  const result = await checkpoint
  clearInterval(timer)
  expect(turns).toBeGreaterThan(3)
  expect(result).toMatchObject({ busy: true, walBytes: walBytes(store) })
  expect(result.walBytes).toBeGreaterThan(result.checkpointed)
  expect(reader.prepare('select count(*) from messages').pluck().get()).toBe(1)
  reader.close()
  expect(await store.maintenance.checkpoint()).toMatchObject({ busy: false, walBytes: 0 })
  expect(await store.messages.count('s')).toBe(3)
})

test('waits for a reader that ends', async () => {
  const store = await filled()
  const reader = new Database(store.info.path, { readonly: true })
  reader.exec('begin')
  reader.prepare('select count(*) from messages').get()
  await store.messages.append('s', { role: 'user', content: 'later' })
  const checkpoint = store.maintenance.checkpoint()
  setTimeout(() => reader.close(), 50)
  expect(await checkpoint).toMatchObject({ busy: false, walBytes: 0 })
})

test('waits for a transaction of the store itself', async () => {
  const store = await filled()
  await store.transaction(async (tx) => {
    await expect(store.maintenance.checkpoint()).rejects.toBeInstanceOf(TransactionMisuseError)
    await tx.messages.append('s', { role: 'user', content: 'inside' })
  })
  const transaction = store.transaction((tx) => tx.messages.append('s', { role: 'user', content: 'x' }))
  const checkpoint = store.maintenance.checkpoint()
  await transaction
  expect(await checkpoint).toMatchObject({ busy: false })
  expect(await store.messages.count('s')).toBe(3)
})

test('has nothing to do in memory, and is refused on a store that only reads or is closed', async () => {
  const memory = await openForTest({ path: ':memory:' })
  expect(await memory.maintenance.checkpoint()).toEqual({ busy: false, walBytes: 0, checkpointed: 0 })
  const store = await filled()
  await store.close()
  const reader = await openForTest({ path: store.info.path, readonly: true })
  await expect(reader.maintenance.checkpoint()).rejects.toBeInstanceOf(ReadonlyStoreError)
  await reader.close()
  await expect(reader.maintenance.checkpoint()).rejects.toBeInstanceOf(StateStoreClosedError)
})
