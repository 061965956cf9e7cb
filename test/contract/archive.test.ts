import { beforeEach, describe, expect, test } from 'vitest'
import {
  ConflictError,
  type NewMessage,
  SessionExistsError,
  SessionNotFoundError,
  type StateStore,
  UnsupportedSchemaError,
} from '../../src/index.ts'
import { newerFile } from '../support/newer-file.ts'
import { expectSound } from '../support/processes.ts'
import { kinds, openForTest, poison } from '../support/stores.ts'

const user = (content: string): NewMessage => ({ role: 'user', content })
const call = (id: string) => ({ id, type: 'function' as const, function: { name: 'zoo', arguments: '{}' } })

describe.each(kinds)('replaceAll with archiveAs in $name', ({ open, additions, file }) => {
  let store: StateStore
  let ids: number[]

  beforeEach(async () => {
    store = await open()
    await store.sessions.create({
      id: 's',
      source: 'telegram',
      user_id: 'ada',
      model: 'model-a',
      model_config: { temperature: 0.5 },
      system_prompt: 'Be brief.',
      started_at: 1000,
    })
    await store.titles.set('s', 'Walruses')
    ids = await store.messages.appendMany('s', [
      { ...user('how many walruses?'), timestamp: 2000 },
      { role: 'assistant', content: null, tool_calls: [call('c1'), call('c2')], timestamp: 2001 },
      { ...user('海象在这里'), timestamp: 2002 },
    ])
  })

  const contents = async (id: string) => (await store.messages.list(id)).map(({ content }) => content)
  const expectNoTrace = async () => {
    expect(await store.sessions.exists('old')).toBe(false)
    expect((await store.messages.list('s')).map(({ id }) => id)).toEqual(ids)
    expect(await store.sessions.get('s')).toMatchObject({ message_count: 3, tool_call_count: 2 })
  }

  test('keeps them as they are in a session of their own', async () => {
    const before = await store.messages.list('s')
    const [summary] = await store.messages.replaceAll('s', [user('summary')], { archiveAs: 'old' })
    expect(await store.messages.list('old')).toEqual(
      before.map((message) => ({ ...message, session_id: 'old' })),
    )
    expect(await store.messages.list('s')).toMatchObject([{ id: summary, content: 'summary' }])
    expect(await store.sessions.get('s')).toMatchObject({
      title: 'Walruses',
      ended_at: null,
      message_count: 1,
      tool_call_count: 0,
    })
    expect(await store.sessions.get('old')).toMatchObject({
      source: 'telegram',
      user_id: 'ada',
      model: 'model-a',
      model_config: { _branched_from: 's' },
      system_prompt: null,
      parent_session_id: 's',
      title: null,
      started_at: 2000,
      ended_at: expect.any(Number),
      end_reason: 'replaced',
      message_count: 3,
      tool_call_count: 2,
    })
    if (file && additions) expectSound(store.info.path)
  })

  test('searches find them there', async () => {
    await store.messages.replaceAll('s', [user('summary of walruses')], { archiveAs: 'old' })
    const where = async (query: string) =>
      (await store.search.messages(query, { sources: ['telegram'] }))
        .map(({ session_id }) => session_id)
        .sort()
    expect(await where('walruses')).toEqual(['old', 's'])
    expect(await where('海象')).toEqual(['old'])
  })

  test('structured content goes with its message', async () => {
    const parts = [
      { type: 'text', text: 'a picture' },
      { type: 'image_url', image_url: { url: 'x:y' } },
    ]
    await store.messages.append('s', { role: 'user', content: parts })
    await store.messages.replaceAll('s', [], { archiveAs: 'old' })
    expect((await contents('old')).at(-1)).toEqual(parts)
  })

  test.runIf(additions)('client ids go with their messages and are free again', async () => {
    const sent = { ...user('hello'), client_id: 'update-1' }
    const id = await store.messages.append('s', sent)
    const [next] = await store.messages.replaceAll('s', [sent], { archiveAs: 'old' })
    expect(next).toBeGreaterThan(id)
    expect(await store.messages.append('s', sent)).toBe(next)
    expect(await store.messages.append('old', sent)).toBe(id)
  })

  test('more of them than one step moves, with timers in between', async () => {
    await store.messages.appendMany(
      's',
      Array.from({ length: 597 }, (_, n) => user(`n${n}`)),
    )
    let turns = 0
    const timer = setInterval(() => turns++, 0)
    await store.messages.replaceAll('s', [user('summary')], { archiveAs: 'old' })
    clearInterval(timer)
    expect(turns).toBeGreaterThan(0)
    expect(await store.messages.count('old')).toBe(600)
    expect(await store.sessions.get('old')).toMatchObject({ message_count: 600, tool_call_count: 2 })
    expect((await contents('old')).at(-1)).toBe('n596')
    expect(await contents('s')).toEqual(['summary'])
  })

  test('once for each replacement', async () => {
    const [first] = await store.messages.replaceAll('s', [user('first')], { archiveAs: 'old-1' })
    await store.messages.replaceAll('s', [user('second')], { archiveAs: 'old-2', expectedLastId: first })
    expect(await contents('old-2')).toEqual(['first'])
    expect((await store.lineage.descendants('s')).map(({ id }) => id).sort()).toEqual(['old-1', 'old-2'])
  })

  test('an archive continues nothing', async () => {
    await store.messages.replaceAll('s', [user('summary')], { archiveAs: 'old' })
    await store.sessions.end('s', 'compression')
    expect(await store.lineage.tip('s')).toBe('s')
    const next = await store.sessions.continueAs('s')
    expect(await store.lineage.tip('s')).toBe(next)
  })

  test('where there is nothing to archive, no session is made', async () => {
    await store.sessions.create({ id: 'empty', source: 'cli' })
    await store.messages.replaceAll('empty', [user('a')], { archiveAs: 'old', expectedLastId: null })
    expect(await contents('empty')).toEqual(['a'])
    expect(await store.sessions.exists('old')).toBe(false)
  })

  describe('leaves everything as it was', () => {
    test('in a conflict', async () => {
      const options = { archiveAs: 'old', expectedLastId: ids[1] }
      await expect(store.messages.replaceAll('s', [user('a')], options)).rejects.toThrow(ConflictError)
      await expectNoTrace()
    })

    test('when a message in the middle fails', async () => {
      await poison(store)
      const messages = Array.from({ length: 400 }, (_, n) => user(n === 300 ? 'poison' : 'new'))
      const call = store.messages.replaceAll('s', messages, { archiveAs: 'old' })
      await expect(call).rejects.toMatchObject({ code: 'DATABASE' })
      await expectNoTrace()
      expect(await store.search.messages('walruses')).toMatchObject([{ session_id: 's' }])
    })

    test('where the id is taken, by itself too, and in a transaction that goes on', async () => {
      await store.sessions.create({ id: 'taken', source: 'cli' })
      for (const archiveAs of ['taken', 's']) {
        const call = store.messages.replaceAll('s', [user('a')], { archiveAs })
        await expect(call).rejects.toThrow(SessionExistsError)
      }
      await store.transaction(async (tx) => {
        const call = tx.messages.replaceAll('s', [user('a')], { archiveAs: 'taken' })
        await expect(call).rejects.toThrow(SessionExistsError)
      })
      await expectNoTrace()
    })

    test('for a session that does not exist, and for what is no id', async () => {
      const ghost = store.messages.replaceAll('ghost', [user('a')], { archiveAs: 'old' })
      await expect(ghost).rejects.toThrow(SessionNotFoundError)
      for (const archiveAs of ['', 7, null, 'a\0b']) {
        const options = { archiveAs: archiveAs as string }
        await expect(store.messages.replaceAll('s', [], options)).rejects.toThrow(/^archiveAs (must|holds)/)
      }
      await expectNoTrace()
    })
  })
})

test('a file of a later schema keeps its messages where they are', async () => {
  const store = await openForTest({ path: newerFile(16), newerSchema: 'write' })
  const call = store.messages.replaceAll('s', [], { archiveAs: 'old' })
  await expect(call).rejects.toThrow(UnsupportedSchemaError)
})
