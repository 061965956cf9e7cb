import { beforeEach, describe, expect, onTestFinished, test, vi } from 'vitest'
import { Connection } from '../../src/database/connection.ts'
import {
  type NewMessage,
  SessionEndedError,
  SessionNotFoundError,
  type StateStore,
  UnsupportedSchemaError,
} from '../../src/index.ts'
import { NEWER, newerFile } from '../support/newer-file.ts'
import { eventsOf, kinds, openForTest, poison, rawRow, rawRows, rawRun } from '../support/stores.ts'

const named = (client_id: string, content = client_id): NewMessage => ({ role: 'user', client_id, content })

describe.each(kinds.filter(({ additions }) => additions))('client ids in $name', ({ open, file }) => {
  let store: StateStore

  beforeEach(async () => {
    store = await open()
    await store.sessions.create({ id: 's', source: 'cli' })
  })

  const contents = async (session = 's') => (await store.messages.list(session)).map(({ content }) => content)

  const counters = () =>
    rawRow<{ message_count: number; tool_call_count: number }>(
      store,
      "select message_count, tool_call_count from sessions where id = 's'",
    )

  const kept = () =>
    rawRows<{ client_id: string }>(store, 'select client_id from hs_client_ids order by client_id').then(
      (rows) => rows.map(({ client_id }) => client_id),
    )

  describe('append', () => {
    test('sent again: the id of the first, whose content stays, and nothing is counted', async () => {
      const calls = [{ id: 'c', type: 'function', function: { name: 'f', arguments: '{}' } }]
      const first = await store.messages.append('s', {
        ...named('a', 'first'),
        role: 'assistant',
        tool_calls: calls,
      })
      expect(await store.messages.append('s', { ...named('a', 'second'), tool_calls: calls })).toBe(first)
      expect(await contents()).toEqual(['first'])
      expect(await counters()).toEqual({ message_count: 1, tool_call_count: 1 })
    })

    test('sent twice at once: stored once', async () => {
      const ids = await Promise.all([
        store.messages.append('s', named('a')),
        store.messages.append('s', named('b')),
        store.messages.append('s', named('a', 'again')),
      ])
      expect(ids[2]).toBe(ids[0])
      expect(ids[1]).not.toBe(ids[0])
      expect(await contents()).toEqual(['a', 'b'])
    })

    test('sent again after its session has ended: the id, without an event', async () => {
      const id = await store.messages.append('s', named('a'))
      await store.sessions.end('s', 'user_exit')
      expect(await store.messages.append('s', named('a'), { requireOpen: true })).toBe(id)
      expect(eventsOf(store, 'append-to-ended-session')).toEqual([])
      await expect(store.messages.append('s', named('b'), { requireOpen: true })).rejects.toThrow(
        SessionEndedError,
      )
    })

    test('the same client id in two sessions is two messages', async () => {
      await store.sessions.create({ id: 't', source: 'cli' })
      const [a, b] = await Promise.all([
        store.messages.append('s', named('a', 'in s')),
        store.messages.append('t', named('a', 'in t')),
      ])
      expect(a).not.toBe(b)
      expect(await contents('t')).toEqual(['in t'])
    })

    test('one that failed is stored when it is sent again', async () => {
      await poison(store)
      await expect(store.messages.append('s', named('a', 'poison'))).rejects.toThrow('poisoned')
      await expect(store.messages.append('nowhere', named('a'))).rejects.toThrow(SessionNotFoundError)
      await store.messages.append('s', named('a', 'sound'))
      expect(await contents()).toEqual(['sound'])
    })

    test('inside a transaction that is rolled back, nothing is remembered', async () => {
      const send = store.transaction(async (tx) => {
        await tx.messages.append('s', named('a'))
        throw new Error('no')
      })
      await expect(send).rejects.toThrow('no')
      expect(await kept()).toEqual([])
      await store.messages.append('s', named('a'))
      expect(await contents()).toEqual(['a'])
    })

    test('is not read back, and null is none', async () => {
      const id = await store.messages.append('s', named('a'))
      expect(await store.messages.get(id)).not.toHaveProperty('client_id')
      expect(await store.messages.conversation('s')).toEqual([{ role: 'user', content: 'a' }])
      await store.messages.append('s', { role: 'user', client_id: null })
      expect(await kept()).toEqual(['a'])
    })

    test.each([
      ['an empty one', ''],
      ['a number', 7],
      ['a NUL', 'a\0b'],
      ['a lone surrogate', '\ud800'],
    ])('%s is a TypeError', async (_, client_id) => {
      const message = { role: 'user', client_id } as NewMessage
      await expect(store.messages.append('s', message)).rejects.toThrow(TypeError)
      await expect(store.messages.appendMany('s', [message])).rejects.toThrow('messages[0].client_id')
    })
  })

  describe('appendMany', () => {
    test('sent again: the same ids, and no row is written', async () => {
      const batch = ['a', 'b', 'c'].map((name) => named(name))
      const ids = await store.messages.appendMany('s', batch)
      await store.sessions.end('s', 'user_exit')
      expect(await store.messages.appendMany('s', batch, { requireOpen: true })).toEqual(ids)
      expect(await store.messages.appendMany('s', batch.toReversed())).toEqual(ids.toReversed())
      expect(await contents()).toEqual(['a', 'b', 'c'])
      expect(await counters()).toMatchObject({ message_count: 3 })
      expect(eventsOf(store, 'append-to-ended-session')).toEqual([])
    })

    test('in part: only the rest is stored and counted, the ids come in the order given', async () => {
      const b = await store.messages.append('s', named('b'))
      const ids = await store.messages.appendMany('s', [
        named('a'),
        named('b', 'again'),
        { role: 'user', content: 'nameless' },
        named('c'),
      ])
      expect(ids).toEqual([b + 1, b, b + 2, b + 3])
      expect(await contents()).toEqual(['b', 'a', 'nameless', 'c'])
      expect(await counters()).toMatchObject({ message_count: 4 })
    })

    test('the event of an ended session names the last message that was stored', async () => {
      const a = await store.messages.append('s', named('a'))
      await store.sessions.end('s', 'user_exit')
      await store.messages.appendMany('s', [named('b'), named('a')])
      expect(eventsOf(store, 'append-to-ended-session')).toMatchObject([{ message_id: a + 1 }])
    })

    test('more than one step of messages', async () => {
      const batch = Array.from({ length: 600 }, (_, index) => named(`m${index}`))
      const first = await store.messages.appendMany('s', batch.slice(0, 300))
      const ids = await store.messages.appendMany('s', batch)
      expect(ids.slice(0, 300)).toEqual(first)
      expect(await contents()).toEqual(batch.map(({ content }) => content))
      expect(await store.messages.appendMany('s', batch)).toEqual(ids)
      expect(await counters()).toMatchObject({ message_count: 600 })
    })

    test('all or none: what failed is not remembered', async () => {
      await poison(store)
      const batch = [named('a'), named('b', 'poison')]
      await expect(store.messages.appendMany('s', batch)).rejects.toThrow('poisoned')
      expect(await kept()).toEqual([])
      expect(await contents()).toEqual([])
    })

    test.each(['appendMany', 'replaceAll'] as const)(
      '%s with one given twice: a TypeError',
      async (method) => {
        await store.messages.append('s', named('kept'))
        const batch = [named('a'), named('b'), named('a', 'another')]
        await expect(store.messages[method]('s', batch)).rejects.toThrow(
          new TypeError('messages[2].client_id is that of messages[0] too: give each message its own.'),
        )
        expect(await contents()).toEqual(['kept'])
      },
    )
  })

  describe('messages that go free their client ids', () => {
    beforeEach(() => store.messages.appendMany('s', [named('a'), named('b')]))

    test('replaceAll', async () => {
      const ids = await store.messages.replaceAll('s', [named('b', 'new b'), named('c')])
      expect(await contents()).toEqual(['new b', 'c'])
      expect(await kept()).toEqual(['b', 'c'])
      expect(await store.messages.append('s', named('b'))).toBe(ids[0])
      await store.messages.append('s', named('a', 'new a'))
      expect(await contents()).toEqual(['new b', 'c', 'new a'])
    })

    test('clear', async () => {
      await store.messages.clear('s')
      expect(await kept()).toEqual([])
      await store.messages.append('s', named('a', 'new a'))
      expect(await contents()).toEqual(['new a'])
    })

    test('delete', async () => {
      await store.sessions.delete('s')
      expect(await kept()).toEqual([])
      await store.sessions.create({ id: 's', source: 'cli' })
      await store.messages.append('s', named('a', 'new a'))
      expect(await contents()).toEqual(['new a'])
    })

    test('a message that somebody else deletes', async () => {
      await rawRun(store, "delete from messages where content = 'a'")
      expect(await kept()).toEqual(['b'])
    })
  })

  describe('other writers', () => {
    test('a message that is replaced by one of another session is no longer known', async () => {
      await store.sessions.create({ id: 't', source: 'cli' })
      const id = await store.messages.append('s', named('a'))
      // REPLACE runs no delete trigger: the client id stays behind.
      await rawRun(
        store,
        "insert or replace into messages (id, session_id, role, content, timestamp) values (?, 't', 'user', 'theirs', 1)",
        id,
      )
      expect(await kept()).toEqual(['a'])
      const again = await store.messages.append('s', named('a', 'again'))
      expect(again).not.toBe(id)
      expect(await store.messages.appendMany('s', [named('a')])).toEqual([again])
      expect(await contents()).toEqual(['again'])
      expect(await contents('t')).toEqual(['theirs'])
    })

    test('a client id that outlived its message is given to the next', async () => {
      await rawRun(
        store,
        "insert into hs_client_ids (message_id, session_id, client_id) values (1000000, 's', 'a')",
      )
      const [id] = await store.messages.appendMany('s', [named('a')])
      expect(id).not.toBe(1000000)
      expect(await store.messages.append('s', named('a'))).toBe(id)
      expect(await contents()).toEqual(['a'])
    })

    test('a message moved to another session takes its client id along', async () => {
      await store.sessions.create({ id: 't', source: 'cli' })
      const id = await store.messages.append('s', named('a'))
      await rawRun(store, "update messages set session_id = 't' where id = ?", id)
      expect(await store.messages.append('t', named('a'))).toBe(id)
      expect(await store.messages.append('s', named('a'))).not.toBe(id)
    })

    test('moved to where the client id is taken: the move succeeds, and the one that was there keeps it', async () => {
      await store.sessions.create({ id: 't', source: 'cli' })
      const moved = await store.messages.append('s', named('a', 'moved'))
      const there = await store.messages.append('t', named('a', 'there'))
      await rawRun(store, "update messages set session_id = 't' where id = ?", moved)
      expect(await store.messages.append('t', named('a'))).toBe(there)
      expect((await contents('t')).toSorted()).toEqual(['moved', 'there'])
    })
  })

  test('messages without one cost no statement more', async () => {
    const spies = (['get', 'all', 'run'] as const).map((method) => vi.spyOn(Connection.prototype, method))
    onTestFinished(() => {
      vi.restoreAllMocks()
    })
    const aboutClientIds = () =>
      spies
        .flatMap(({ mock }) => mock.calls.map(([query]) => query.sql))
        .filter((sql) => sql.includes('hs_client_ids'))
    await store.messages.append('s', { role: 'user', content: 'plain' })
    await store.messages.appendMany('s', [{ role: 'user', content: 'plain' }, { role: 'user' }])
    expect(aboutClientIds()).toEqual([])
    await store.messages.append('s', named('a'))
    expect(aboutClientIds()).toHaveLength(2)
  })

  test.runIf(file)('a second store on the file knows them', async () => {
    const id = await store.messages.append('s', named('a'))
    const second = await openForTest({ path: store.info.path })
    expect(await second.messages.append('s', named('a'))).toBe(id)
  })
})

describe('where client ids cannot be kept', () => {
  const isRefused = async (store: StateStore, session: string) => {
    const before = await store.messages.count(session)
    for (const send of [
      () => store.messages.append(session, named('a')),
      () => store.messages.appendMany(session, [{ role: 'user' }, named('a')]),
      () => store.transaction((tx) => tx.messages.append(session, named('a'))),
    ])
      await expect(send()).rejects.toThrow(UnsupportedSchemaError)
    expect(await store.messages.count(session)).toBe(before)
  }

  test('a file without additions', async () => {
    const plain = kinds.find(({ additions }) => !additions)!
    const store = await plain.open()
    await store.sessions.create({ id: 's', source: 'cli' })
    await isRefused(store, 's')
    await expect(store.messages.replaceAll('s', [named('a')])).rejects.toThrow(UnsupportedSchemaError)
    await store.messages.append('s', { role: 'user', client_id: null, content: 'plain' })
  })

  test.each(NEWER)('a file of Hermes schema %s', async (schema) => {
    const store = await openForTest({ path: newerFile(schema), newerSchema: 'write' })
    await store.sessions.create({ id: 's', source: 'cli' })
    await isRefused(store, 's')
  })
})
