import { beforeEach, describe, expect, test } from 'vitest'
import {
  type Continuation,
  SessionContinuedError,
  SessionEndedError,
  SessionExistsError,
  SessionNotFoundError,
  type StateStore,
  TitleInUseError,
} from '../../src/index.ts'
import { NEWER, newerFile } from '../support/newer-file.ts'
import { eventsOf, kinds, openForTest, rawRun } from '../support/stores.ts'

describe.each(kinds)('sessions.continueAs in $name', ({ open, existing }) => {
  let store: StateStore

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
  })

  test('ends the session by compression and makes its child', async () => {
    const before = Date.now() / 1000
    const next = await store.sessions.continueAs('s')
    expect(await store.sessions.get('s')).toMatchObject({ end_reason: 'compression', started_at: 1000 })
    const parent = await store.sessions.get('s')
    const child = await store.sessions.get(next)
    expect(child).toMatchObject({
      parent_session_id: 's',
      source: 'telegram',
      user_id: 'ada',
      model: 'model-a',
      model_config: null,
      system_prompt: null,
      title: null,
      ended_at: null,
    })
    expect(child?.started_at).toBeGreaterThanOrEqual(before)
    expect(child?.started_at).toBe(parent?.ended_at)
    expect(await store.lineage.tip('s')).toBe(next)
  })

  test('what is given is not inherited, null included', async () => {
    await store.sessions.continueAs('s', {
      id: 'next',
      source: 'cli',
      user_id: null,
      model: 'model-b',
      model_config: { temperature: 1 },
      system_prompt: 'Summary.',
      title: 'Own title',
    })
    expect(await store.sessions.get('next')).toMatchObject({
      source: 'cli',
      user_id: null,
      model: 'model-b',
      model_config: { temperature: 1 },
      system_prompt: 'Summary.',
      title: 'Own title',
    })
  })

  describe('the title', () => {
    test('is the next of the family', async () => {
      await store.titles.set('s', 'Fix build')
      const second = await store.sessions.continueAs('s')
      const third = await store.sessions.continueAs(second)
      expect(await store.titles.get('s')).toBe('Fix build')
      expect(await store.titles.get(second)).toBe('Fix build #2')
      expect(await store.titles.get(third)).toBe('Fix build #3')
    })

    test.each([null, ' \u200b '])('%j gives none', async (title) => {
      await store.titles.set('s', 'Fix build')
      expect(await store.titles.get(await store.sessions.continueAs('s', { title }))).toBeNull()
    })

    test('of another session: rejected, and the session stays open', async () => {
      await store.sessions.create({ id: 'other', source: 'cli' })
      await store.titles.set('other', 'Taken')
      const call = store.sessions.continueAs('s', { id: 'next', title: 'Taken' })
      await expect(call).rejects.toThrow(TitleInUseError)
      expect(await store.sessions.get('s')).toMatchObject({ ended_at: null, end_reason: null })
      expect(await store.sessions.exists('next')).toBe(false)
    })
  })

  describe('is refused', () => {
    test('where the session is continued already: the error names who continues it, and the tip', async () => {
      const child = await store.sessions.continueAs('s', { id: 'child' })
      const error = await store.sessions.continueAs('s').catch((reason) => reason)
      expect(error).toBeInstanceOf(SessionContinuedError)
      expect(error).toMatchObject({
        code: 'SESSION_CONTINUED',
        session_id: 's',
        child_session_id: child,
        tip: child,
      })
      const grandchild = await store.sessions.continueAs(child)
      await expect(store.sessions.continueAs('s')).rejects.toMatchObject({
        child_session_id: child,
        tip: grandchild,
      })
      expect(await store.sessions.count()).toBe(existing.sessions + 3)
    })

    test('to all but one of those that try at once', async () => {
      const results = await Promise.allSettled(
        ['a', 'b', 'c'].map((id) => store.sessions.continueAs('s', { id })),
      )
      const won = results.flatMap((result) => (result.status === 'fulfilled' ? [result.value] : []))
      expect(won).toHaveLength(1)
      for (const result of results)
        if (result.status === 'rejected') expect(result.reason).toMatchObject({ child_session_id: won[0] })
      expect((await store.lineage.descendants('s')).map(({ id }) => id)).toEqual(won)
    })

    test('where the session has ended for another reason', async () => {
      await store.sessions.end('s', 'user_exit')
      await expect(store.sessions.continueAs('s')).rejects.toThrow(SessionEndedError)
      expect(await store.sessions.get('s')).toMatchObject({ end_reason: 'user_exit' })
      expect(await store.lineage.descendants('s')).toEqual([])
    })

    test('where the session does not exist', async () => {
      await expect(store.sessions.continueAs('nowhere', { id: 'next' })).rejects.toThrow(SessionNotFoundError)
      expect(await store.sessions.exists('next')).toBe(false)
    })

    test.each(['other', 's'])('under the id of a session that exists: %s', async (id) => {
      await store.sessions.create({ id: 'other', source: 'cli' })
      const error = await store.sessions.continueAs('s', { id }).catch((reason) => reason)
      expect(error).toBeInstanceOf(SessionExistsError)
      expect(error).toMatchObject({ code: 'SESSION_EXISTS', session_id: id })
      expect(await store.sessions.get('s')).toMatchObject({ ended_at: null })
      expect(await store.sessions.get('other')).toMatchObject({ parent_session_id: null })
    })

    test.each<[string, unknown]>([
      ['null', null],
      ['an empty id', { id: '' }],
      ['an empty source', { source: '' }],
      ['source null', { source: null }],
      ['a number as title', { title: 5 }],
      ['a title that is too long', { title: 'x'.repeat(101) }],
      ['a model_config that is text', { model_config: '{}' }],
      ['the mark of a branch', { model_config: { _branched_from: 's' } }],
    ])('%s: a TypeError', async (_, continuation) => {
      await expect(store.sessions.continueAs('s', continuation as Continuation)).rejects.toThrow(TypeError)
      expect(await store.sessions.get('s')).toMatchObject({ ended_at: null })
    })
  })

  describe('where the session has ended by compression', () => {
    beforeEach(() => store.sessions.end('s', 'compression'))

    test('and nobody continues it: the child is made, the end stays', async () => {
      const before = await store.sessions.get('s')
      const next = await store.sessions.continueAs('s')
      expect(await store.lineage.tip('s')).toBe(next)
      expect(await store.sessions.get('s')).toEqual(before)
    })

    test('and its child is a branch: that one continues nothing', async () => {
      await store.sessions.create({
        id: 'branch',
        source: 'cli',
        parent_session_id: 's',
        model_config: { _branched_from: 's' },
      })
      const next = await store.sessions.continueAs('s')
      expect(await store.lineage.tip('s')).toBe(next)
    })

    test('a late message is kept with an event that names the continuation, and rejected with requireOpen', async () => {
      const next = await store.sessions.continueAs('s')
      const message = { role: 'user', content: 'late' } as const
      await store.messages.append('s', message)
      expect(eventsOf(store, 'append-to-ended-session')).toMatchObject([{ session_id: 's', tip: next }])
      const error = await store.messages.append('s', message, { requireOpen: true }).catch((reason) => reason)
      expect(error).toBeInstanceOf(SessionEndedError)
      expect(error).toMatchObject({ session_id: 's', end_reason: 'compression', tip: next })
      expect(error.message).toContain(`'${next}'`)
      expect(await store.messages.count('s')).toBe(1)
    })

    test('requireOpen, and nobody continues it: the error names no other session', async () => {
      const call = store.messages.append('s', { role: 'user' }, { requireOpen: true })
      await expect(call).rejects.toMatchObject({ tip: null, message: expect.stringContaining('reopen') })
    })
  })

  test('starts after every other child, whatever the clock of whoever made it', async () => {
    const started_at = Date.now() / 1000 + 3600
    await store.sessions.create({ id: 'delegate', source: 'cli', parent_session_id: 's', started_at })
    const next = await store.sessions.continueAs('s')
    expect((await store.sessions.get(next))?.started_at).toBeCloseTo(started_at + 0.001, 6)
    expect(await store.lineage.tip('s')).toBe(next)
  })

  test('after reopen, a session is continued anew', async () => {
    const first = await store.sessions.continueAs('s')
    await store.sessions.reopen('s')
    const second = await store.sessions.continueAs('s')
    expect(await store.lineage.tip('s')).toBe(second)
    expect(second).not.toBe(first)
  })

  test('in a transaction: with its first messages, or not at all', async () => {
    const compress = (fail: boolean) =>
      store.transaction(async (tx) => {
        const next = await tx.sessions.continueAs('s', { id: 'next' })
        await tx.messages.append(next, { role: 'user', content: 'Summary' })
        if (fail) throw new Error('no')
        return next
      })
    await expect(compress(true)).rejects.toThrow('no')
    expect(await store.sessions.get('s')).toMatchObject({ ended_at: null })
    expect(await store.sessions.exists('next')).toBe(false)
    expect(await store.messages.count(await compress(false))).toBe(1)
  })

  test('in a transaction that goes on after a refusal, nothing of it stays', async () => {
    await store.sessions.create({ id: 'other', source: 'cli' })
    await store.titles.set('other', 'Taken')
    await store.transaction(async (tx) => {
      await expect(tx.sessions.continueAs('s', { id: 'next', title: 'Taken' })).rejects.toThrow(
        TitleInUseError,
      )
    })
    expect(await store.sessions.get('s')).toMatchObject({ ended_at: null })
    expect(await store.sessions.exists('next')).toBe(false)
  })

  test('a title that another program left untidy has a next one too', async () => {
    await rawRun(store, "update sessions set title = ? where id = 's'", `${'long '.repeat(40)}`)
    const next = await store.sessions.continueAs('s')
    expect([...((await store.titles.get(next)) ?? '')].length).toBeLessThanOrEqual(100)
    expect(await store.titles.get(next)).toMatch(/ #2$/)
  })
})

test.each(NEWER)('sessions.continueAs in a file of Hermes schema %s', async (schema) => {
  const store = await openForTest({ path: newerFile(schema), newerSchema: 'write' })
  await store.sessions.create({ id: 's', source: 'telegram', model: 'model-a' })
  await store.titles.set('s', 'Fix build')
  const next = await store.sessions.continueAs('s', { system_prompt: 'Summary.' })
  expect(await store.sessions.get(next)).toMatchObject({
    parent_session_id: 's',
    source: 'telegram',
    model: 'model-a',
    system_prompt: 'Summary.',
    title: 'Fix build #2',
  })
  expect(await store.lineage.tip('s')).toBe(next)
  await expect(store.sessions.continueAs('s')).rejects.toThrow(SessionContinuedError)
})
