import { beforeEach, describe, expect, test } from 'vitest'
import { ConflictError, type NewMessage, SessionNotFoundError, type StateStore } from '../../src/index.ts'
import { kinds } from '../support/stores.ts'

const user = (content: string): NewMessage => ({ role: 'user', content })

describe.each(kinds)('expectedLastId in $name', ({ open, additions }) => {
  let store: StateStore

  beforeEach(async () => {
    store = await open()
    await store.sessions.create({ id: 's', source: 'cli' })
    await store.sessions.create({ id: 'other', source: 'cli' })
  })

  const contents = async () => (await store.messages.list('s')).map(({ content }) => content)

  describe.each(['appendMany', 'replaceAll'] as const)('%s', (method) => {
    test('null and 0 expect a session without messages', async () => {
      await store.messages.append('other', user('not of this session'))
      await store.messages[method]('s', [user('a')], { expectedLastId: null })
      for (const expectedLastId of [null, 0])
        await expect(store.messages[method]('s', [user('b')], { expectedLastId })).rejects.toThrow(
          ConflictError,
        )
      expect(await contents()).toEqual(['a'])
      await store.messages.clear('s')
      await store.messages[method]('s', [user('c')], { expectedLastId: 0 })
      expect(await contents()).toEqual(['c'])
    })

    test('an id expects that message to be the last', async () => {
      const first = await store.messages.append('s', user('a'))
      await store.messages.append('other', user('not of this session'))
      const ids = await store.messages[method]('s', [user('b'), user('c')], { expectedLastId: first })
      const kept = await contents()
      const error = await store.messages[method]('s', [user('d')], { expectedLastId: first }).catch((e) => e)
      expect(error).toBeInstanceOf(ConflictError)
      expect(error).toMatchObject({ code: 'CONFLICT', session_id: 's', expected: first, actual: ids.at(-1) })
      expect(error.message).toContain('read its messages again')
      expect(await contents()).toEqual(kept)
      expect(await store.sessions.get('s')).toMatchObject({ message_count: kept.length })
    })

    test('an id where the session has no messages', async () => {
      const call = store.messages[method]('s', [user('a')], { expectedLastId: 7 })
      await expect(call).rejects.toMatchObject({ expected: 7, actual: null })
      expect(await contents()).toEqual([])
    })

    test('undefined is not checked', async () => {
      await store.messages.append('s', user('a'))
      await store.messages[method]('s', [user('b')], { expectedLastId: undefined })
      expect(await contents()).toContain('b')
    })

    test('also without any message to store', async () => {
      await expect(store.messages[method]('s', [], { expectedLastId: 7 })).rejects.toThrow(ConflictError)
      expect(await store.messages[method]('s', [], { expectedLastId: null })).toEqual([])
    })

    test.each([null, 7])(
      '%s for a session that does not exist: SessionNotFoundError',
      async (expectedLastId) => {
        const call = store.messages[method]('nowhere', [user('a')], { expectedLastId })
        await expect(call).rejects.toThrow(SessionNotFoundError)
      },
    )

    test.each([-1, 0.5, '7', Number.NaN])('%s is a TypeError', async (value) => {
      const options = { expectedLastId: value as number }
      await expect(store.messages[method]('s', [user('a')], options)).rejects.toThrow(
        /^expectedLastId must be/,
      )
    })

    test('of several at once that have seen the same, one gets its way', async () => {
      const first = await store.messages.append('s', user('seen'))
      const results = await Promise.allSettled(
        ['a', 'b', 'c'].map((text) => store.messages[method]('s', [user(text)], { expectedLastId: first })),
      )
      expect(results.map(({ status }) => status).toSorted()).toEqual(['fulfilled', 'rejected', 'rejected'])
    })

    test('inside a transaction, which can go on after a conflict', async () => {
      await store.transaction(async (tx) => {
        const id = await tx.messages.append('s', user('a'))
        await expect(tx.messages[method]('s', [user('b')], { expectedLastId: null })).rejects.toThrow(
          ConflictError,
        )
        await tx.messages[method]('s', [user('c')], { expectedLastId: id })
      })
      expect(await contents()).toEqual(method === 'appendMany' ? ['a', 'c'] : ['c'])
    })
  })

  test.runIf(additions)('a batch that is stored already is no conflict when it is sent again', async () => {
    const batch = [
      { ...user('a'), client_id: 'a' },
      { ...user('b'), client_id: 'b' },
    ]
    const ids = await store.messages.appendMany('s', batch, { expectedLastId: null })
    await store.messages.append('s', user('later'))
    expect(await store.messages.appendMany('s', batch, { expectedLastId: null })).toEqual(ids)
    const more = [...batch, { ...user('c'), client_id: 'c' }]
    await expect(store.messages.appendMany('s', more, { expectedLastId: null })).rejects.toThrow(
      ConflictError,
    )
    expect(await contents()).toEqual(['a', 'b', 'later'])
  })
})
