import { setImmediate as nextTick } from 'node:timers/promises'
import { beforeEach, describe, expect, it } from 'vitest'
import { type StateStore, StateStoreClosedError, TransactionMisuseError } from '../../src/index.ts'
import { expectSound, gate, start } from '../support/processes.ts'
import { newPath, openForTest } from '../support/stores.ts'

const user = (content: string) => ({ role: 'user', content })

let store: StateStore
beforeEach(async () => {
  store = await openForTest({ path: newPath() })
  await store.sessions.create({ id: 's', source: 'cli' })
})
const contents = async () => (await store.messages.list('s')).map(({ content }) => content)

/** A transaction that has written and now waits, for something to be called from outside of it. */
async function openTransaction(end: () => void = () => {}) {
  const written = gate()
  const ending = gate()
  const transaction = store.transaction(async (tx) => {
    await tx.messages.append('s', user('inside'))
    written.open()
    await ending.opened
    end()
  })
  await written.opened
  return { transaction, end: ending.open }
}

describe('while a transaction waits', () => {
  it('an append from elsewhere is not lost when the transaction throws', async () => {
    const open = await openTransaction(() => {
      throw new Error('changed my mind')
    })
    const append = store.messages.append('s', user('outside'))
    const statement = store.db
      .insertInto('messages')
      .values({ session_id: 's', role: 'user', content: 'statement', timestamp: 1 })
      .execute()
    const count = store.messages.count('s')
    open.end()
    await expect(open.transaction).rejects.toThrow('changed my mind')
    await append
    await statement
    expect(await contents()).toEqual(['outside', 'statement'])
    // Neither what was taken back nor what it kept waiting was to be seen.
    expect(await count).toBe(0)
  })

  it('an append from elsewhere comes after it when it commits', async () => {
    const open = await openTransaction()
    const append = store.messages.append('s', user('outside'))
    const many = store.messages.appendMany('s', [user('two'), user('three')])
    open.end()
    await open.transaction
    await Promise.all([append, many])
    expect(await contents()).toEqual(['inside', 'outside', 'two', 'three'])
    expectSound(store.info.path)
  })

  it('reads from elsewhere see it whole or not at all', async () => {
    const open = await openTransaction()
    const reads = [store.messages.count('s'), store.search.messages('inside').then((hits) => hits.length)]
    open.end()
    expect(await Promise.all(reads)).toEqual([1, 1])
    await open.transaction
  })

  it.each<[string, (outer: StateStore) => Promise<unknown>]>([
    ['append', (outer) => outer.messages.append('s', user('x'))],
    ['appendMany', (outer) => outer.messages.appendMany('s', [user('x')])],
    ['a read', (outer) => outer.messages.count()],
    ['a search', (outer) => outer.search.messages('x')],
    ['a query', (outer) => outer.db.selectFrom('sessions').select('id').execute()],
    ['another transaction', (outer) => outer.transaction(async () => {})],
    ['close', (outer) => outer.close()],
  ])('%s on the store itself from inside is refused instead of hanging', async (_, call) => {
    await store.transaction(async (tx) => {
      await expect(call(store)).rejects.toThrow(TransactionMisuseError)
      // Also later on, and in what was started inside.
      await nextTick()
      await expect(Promise.resolve().then(() => call(store))).rejects.toThrow(TransactionMisuseError)
      await tx.messages.append('s', user('inside'))
    })
    expect(await contents()).toEqual(['inside'])
  })
})

it.each(['store', 'store.db'])(
  'appends of code that is under way are not taken for those of the first transaction of a process, of %s',
  async (way) => {
    // In a process of its own: the first transaction of all is meant.
    const child = await start('first-transaction.mjs', way)
    expect(JSON.parse(await child.ask('go', 'outcomes'))).toEqual({ timer: ['stored'], loop: ['stored'] })
  },
)

describe('iterating while messages are appended', () => {
  it('gives every message that was there, then a prefix of the rest, in order', async () => {
    await store.messages.appendMany(
      's',
      Array.from({ length: 600 }, (_, n) => user(`early ${n}`)),
    )
    let writing = true
    const writer = (async () => {
      for (let n = 0; writing; n++)
        await Promise.all([
          store.messages.append('s', user(`late ${n}`)),
          store.messages.append('s', { role: 'user', content: [{ type: 'text', text: 'part' }] }),
        ])
    })()
    const seen: number[] = []
    for await (const { id } of store.messages.iterate('s')) {
      seen.push(id)
      // Slower than the writer at first, then faster, so that it comes to an end.
      if (seen.length % 10 === 0 && seen.length < 700) await nextTick()
      if (seen.length === 700) writing = false
    }
    writing = false
    await writer
    const ids = (await store.messages.list('s')).map(({ id }) => id)
    expect(seen.length).toBeGreaterThanOrEqual(600)
    expect(ids.length).toBeGreaterThan(610)
    expect(seen).toEqual(ids.slice(0, seen.length))
    expectSound(store.info.path)
  })

  it('goes on while another process and a checkpoint are at work', async () => {
    await store.messages.appendMany(
      's',
      Array.from({ length: 300 }, (_, n) => user(`${n}`)),
    )
    const other = await openForTest({ path: store.info.path })
    let seen = 0
    for await (const { content } of store.messages.iterate('s')) {
      if (seen < 300) expect(content).toBe(`${seen}`)
      // Over 50 writes: with a checkpoint among them.
      if (seen < 60) await other.messages.append('s', user('late'))
      seen++
    }
    expect(seen).toBe(360)
  })
})

it('40 appends that race a close each land or reject, and the file tells the same', async () => {
  const appends: Promise<number>[] = []
  for (let n = 0; n < 20; n++) appends.push(store.messages.append('s', user(`${n}`)))
  await nextTick()
  for (let n = 20; n < 30; n++) appends.push(store.messages.append('s', user(`${n}`)))
  const close = store.close()
  for (let n = 30; n < 40; n++) appends.push(store.messages.append('s', user(`${n}`)))
  const outcomes = await Promise.allSettled(appends)
  await close
  await store.close()

  const landed = outcomes.flatMap((outcome, n) => (outcome.status === 'fulfilled' ? [`${n}`] : []))
  expect(landed).toHaveLength(30)
  for (const outcome of outcomes)
    if (outcome.status === 'rejected') expect(outcome.reason).toBeInstanceOf(StateStoreClosedError)
  await expect(store.messages.count()).rejects.toThrow(StateStoreClosedError)
  await expect(store.transaction(async () => {})).rejects.toThrow(StateStoreClosedError)
  await expect(store.db.selectFrom('sessions').selectAll().execute()).rejects.toThrow(StateStoreClosedError)
  store = await openForTest({ path: store.info.path })
  expect(await contents()).toEqual(landed)
})
