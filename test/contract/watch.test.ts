import { setTimeout as delay } from 'node:timers/promises'
import { describe, expect, test } from 'vitest'
import {
  type Message,
  type StateStore,
  StateStoreClosedError,
  TransactionMisuseError,
} from '../../src/index.ts'
import { gate, sql } from '../support/processes.ts'
import { fileKinds, kinds, openForTest } from '../support/stores.ts'

const user = (content: string) => ({ role: 'user', content })

async function opened(open: () => Promise<StateStore>): Promise<StateStore> {
  const store = await open()
  for (const id of ['s', 't']) await store.sessions.create({ id, source: 'cli' })
  await store.messages.append('s', user('before'))
  return store
}

/** The contents of the next messages. */
async function take(watch: AsyncIterator<Message>, count: number): Promise<unknown[]> {
  const contents: unknown[] = []
  while (contents.length < count) {
    const { value, done } = await watch.next()
    if (done) break
    contents.push(value.content)
  }
  return contents
}

describe.each(kinds)('watch in $name', (kind) => {
  test('yields what is stored after the call, in order, each message once', async () => {
    const store = await opened(kind.open)
    const watch = store.watch()
    await store.messages.append('s', user('1'))
    expect(await take(watch, 1)).toEqual(['1'])
    const next = take(watch, 2)
    await Promise.all([store.messages.append('t', user('2')), store.messages.append('s', user('3'))])
    expect(await next).toEqual(['2', '3'])
    const [id] = await store.messages.appendMany('s', [
      { role: 'tool', content: [{ type: 'text', text: '你好' }] },
    ])
    expect(await watch.next()).toEqual({ done: false, value: await store.messages.get(id!) })
    await watch.return?.()
  })

  test('goes on after a message, from the beginning, and in one session', async () => {
    const store = await opened(kind.open)
    const ids = await store.messages.appendMany('s', [user('1'), user('2')])
    await store.messages.append('t', user('3'))
    await store.messages.append('s', user('4'))
    expect(await take(store.watch({ after: ids[0] }), 3)).toEqual(['2', '3', '4'])
    expect(await take(store.watch({ after: ids[0], sessionId: 's' }), 2)).toEqual(['2', '4'])
    expect(await take(store.watch({ after: 0, sessionId: 't' }), 1)).toEqual(['3'])
    const all = await take(store.watch({ after: 0 }), kind.existing.messages + 5)
    expect(all.slice(kind.existing.messages)).toEqual(['before', '1', '2', '3', '4'])
  })

  test('yields nothing of a transaction before it is committed, and all of it then', async () => {
    const store = await opened(kind.open)
    const early = store.watch()
    const { opened: go, open: letGo } = gate()
    const stored = gate()
    const transaction = store.transaction(async (tx) => {
      await tx.messages.append('s', user('1'))
      stored.open()
      await go
      await tx.messages.append('s', user('2'))
    })
    await stored.opened
    const late = store.watch()
    const seen: unknown[] = []
    const both = Promise.all([early, late].map(async (watch) => seen.push(await take(watch, 2))))
    await delay(5)
    expect(seen).toEqual([])
    letGo()
    await transaction
    await both
    expect(seen).toEqual([
      ['1', '2'],
      ['1', '2'],
    ])
  })

  test('a slow reader of many messages loses none', async () => {
    const store = await opened(kind.open)
    const watch = store.watch()
    for (let n = 0; n < 4; n++)
      await store.messages.appendMany(
        's',
        Array.from({ length: 260 }, (_, index) => user(`${n * 260 + index}`)),
      )
    expect(await take(watch, 1_040)).toEqual(Array.from({ length: 1_040 }, (_, n) => `${n}`))
  })

  test('replaced messages come under their new ids, deleted ones not at all', async () => {
    const store = await opened(kind.open)
    const watch = store.watch()
    const id = await store.messages.append('t', user('gone'))
    await store.sessions.delete('t')
    const ids = await store.messages.replaceAll('s', [user('new')])
    expect(await watch.next()).toMatchObject({ value: { id: ids[0], content: 'new' } })
    expect(ids[0]).toBeGreaterThan(id)
  })
})

describe('watching ends', () => {
  const waiting = async () => {
    const store = await opened(() => openForTest({ path: ':memory:' }))
    const abort = new AbortController()
    const watch = store.watch({ signal: abort.signal })
    return { store, abort, watch, next: watch.next() }
  }

  test('with the reason of the signal, also one that was aborted before', async () => {
    const { store, abort, next, watch } = await waiting()
    const reason = new StateStoreClosedError()
    abort.abort(reason)
    await expect(next).rejects.toBe(reason)
    expect(await watch.next()).toEqual({ done: true, value: undefined })
    const aborted = store.watch({ after: 0, signal: AbortSignal.abort(reason) })
    await expect(aborted.next()).rejects.toBe(reason)
  })

  test('when it is left, though it waits', async () => {
    const { watch, next, store } = await waiting()
    expect(await watch.return?.()).toEqual({ done: true, value: undefined })
    expect(await next).toEqual({ done: true, value: undefined })
    for await (const { content } of store.watch({ after: 0 })) {
      expect(content).toBe('before')
      break
    }
  })

  test('when the store is closed, also while another one keeps the file open', async () => {
    const { next, store } = await waiting()
    await store.close()
    expect(await next).toEqual({ done: true, value: undefined })
    const [kind] = fileKinds
    const one = await opened(kind!.open)
    const two = await openForTest({ path: one.info.path })
    const ended = one.watch().next()
    const goesOn = two.watch().next()
    await one.close()
    expect(await ended).toMatchObject({ done: true })
    await two.messages.append('s', user('on'))
    expect(await goesOn).toMatchObject({ value: { content: 'on' } })
  })

  test('though a transaction keeps it from reading', async () => {
    const { store, watch, next } = await waiting()
    const { opened: go, open: letGo } = gate()
    const begun = gate()
    const transaction = store.transaction(async (tx) => {
      await tx.messages.append('s', user('1'))
      begun.open()
      await go
    })
    await begun.opened
    const second = store.watch({ after: 0 })
    const reading = second.next()
    await delay(5)
    await second.return?.()
    expect(await reading).toMatchObject({ done: true })
    letGo()
    await transaction
    expect(await next).toMatchObject({ value: { content: '1' } })
    await watch.return?.()
  })
})

test('what is not valid is refused at the call, and so is a transaction', async () => {
  const store = await opened(() => openForTest({ path: ':memory:' }))
  for (const options of [{ after: -1 }, { after: 'x' }, { sessionId: 7 }, { signal: {} }, null])
    expect(() => store.watch(options as object)).toThrow(TypeError)
  const watch = store.watch({ after: 0 })
  await store.transaction(async () => {
    expect(() => store.watch()).toThrow(TransactionMisuseError)
    await expect(watch.next()).rejects.toThrow(TransactionMisuseError)
  })
  expect(await take(watch, 1)).toEqual(['before'])
  await store.close()
  expect(() => store.watch()).toThrow(StateStoreClosedError)
})

test.each(fileKinds)('what another connection commits is seen in $name, read-only too', async (kind) => {
  const store = await opened(kind.open)
  const { path } = store.info
  await store.close()
  for (const readonly of [false, true]) {
    const watching = await openForTest({ path, readonly })
    const next = watching.watch({ sessionId: 's' }).next()
    sql(path, "insert into messages (session_id, role, content, timestamp) values ('s', 'user', 'theirs', 1)")
    expect(await next).toMatchObject({ value: { content: 'theirs' } })
    await watching.close()
  }
})
