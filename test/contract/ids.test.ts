import { beforeEach, describe, expect, test } from 'vitest'
import type { StateStore } from '../../src/index.ts'
import { kinds } from '../support/stores.ts'

describe.each(kinds)('ids in $name', (kind) => {
  let store: StateStore
  beforeEach(async () => {
    store = await kind.open()
  })

  const create = async (...ids: string[]) => {
    for (const id of ids) await store.sessions.create({ id, source: 'cli' })
  }

  const resolved = async (...texts: string[]) =>
    Object.fromEntries(
      await Promise.all(texts.map(async (text) => [text, await store.sessions.resolveId(text)])),
    )

  test('nothing short means the only session there is', async () => {
    await create('abcd1234')
    expect(await resolved('', 'a', 'ab', 'abc', ' ', '\u200b')).toEqual({
      '': null,
      a: null,
      ab: null,
      abc: null,
      ' ': null,
      '\u200b': null,
    })
    for (const text of ['', 'a', 'abc']) expect(await store.sessions.matchPrefix(text)).toEqual([])
  })

  test('four characters and more mean a session if only one begins with them', async () => {
    await create('abcd1234', 'abcd5678', 'abce1234')
    expect(await resolved('abce', 'abcd1', 'abcd5678', 'abcd', 'abcx', 'bcd1', 'abcd12345')).toEqual({
      abce: 'abce1234',
      abcd1: 'abcd1234',
      abcd5678: 'abcd5678',
      abcd: null,
      abcx: null,
      bcd1: null,
      abcd12345: null,
    })
  })

  test('ambiguity can be told from absence', async () => {
    await create('abcd5678', 'abcd1234', 'abce1234')
    expect(await store.sessions.matchPrefix('abcd')).toEqual(['abcd1234', 'abcd5678'])
    expect(await store.sessions.matchPrefix('abcx')).toEqual([])
  })

  test('a whole id means itself, however short, and though others begin with it', async () => {
    await create('abcd', 'abcd1234', 'abcd5678', 'x', 'xy')
    expect(await resolved('abcd', 'x', 'xy')).toEqual({ abcd: 'abcd', x: 'x', xy: 'xy' })
    expect(await store.sessions.matchPrefix('abcd')).toEqual(['abcd'])
    expect(await store.sessions.matchPrefix('x')).toEqual(['x'])
  })

  test('letter case makes a difference', async () => {
    await create('abcd1', 'ABCD2')
    expect(await resolved('abcd', 'ABCD', 'Abcd', 'aBCD')).toEqual({
      abcd: 'abcd1',
      ABCD: 'ABCD2',
      Abcd: null,
      aBCD: null,
    })
  })

  test('wildcards are text', async () => {
    await create(
      '20260101_120000_abcdef',
      '20260101x120000_abcdef',
      '100%ready',
      '100xready',
      '[abc]*?',
      "it's'1",
    )
    expect(await resolved('%%%%', '____', '****', '?????', '[a-z]*', '100_', '2026_101', '%ready')).toEqual({
      '%%%%': null,
      ____: null,
      '****': null,
      '?????': null,
      '[a-z]*': null,
      '100_': null,
      '2026_101': null,
      '%ready': null,
    })
    expect(await resolved('20260101_', '100%', '[abc', "it's", 'it"s')).toEqual({
      '20260101_': '20260101_120000_abcdef',
      '100%': '100%ready',
      '[abc': '[abc]*?',
      "it's": "it's'1",
      'it"s': null,
    })
  })

  test('characters beyond 16 bits count as one, and sort behind all others', async () => {
    await create('𠮷𠮷𠮷𠮷1', '🚀🚀🚀🚀', 'zzzz', 'zzzz\uffff', 'zzzz🚀', 'zzzz🚀🚀')
    expect(await resolved('𠮷𠮷𠮷', '𠮷𠮷𠮷𠮷', '🚀🚀🚀', 'zzzz🚀', '🚀🚀🚀🚀')).toEqual({
      𠮷𠮷𠮷: null,
      𠮷𠮷𠮷𠮷: '𠮷𠮷𠮷𠮷1',
      '🚀🚀🚀': null,
      'zzzz🚀': 'zzzz🚀',
      '🚀🚀🚀🚀': '🚀🚀🚀🚀',
    })
    await create('yyyy\uffff', 'yyyy🚀', 'yyyya')
    expect(await store.sessions.matchPrefix('yyyy')).toEqual(['yyyya', 'yyyy\uffff', 'yyyy🚀'])
  })

  test('the last of all characters may follow a prefix', async () => {
    await create('yyyy1', 'yyyy\u{10ffff}', 'yyyy\u{10ffff}1', 'yyyz')
    expect(await store.sessions.matchPrefix('yyyy')).toEqual(['yyyy1', 'yyyy\u{10ffff}', 'yyyy\u{10ffff}1'])
  })

  test('half a character, NUL and other odd texts mean nothing', async () => {
    await create('rock🚀', 'abcd1')
    for (const text of ['rock\ud83d', 'abcd\0', 'abcd ', ' abcd', 'abcd\u200b', 'x'.repeat(100_000)])
      expect(await store.sessions.resolveId(text)).toBeNull()
  })

  test('matches come in order, ten unless told otherwise', async () => {
    await create(...Array.from({ length: 12 }, (_, index) => `many-${String.fromCharCode(108 - index)}`))
    expect(await store.sessions.matchPrefix('many-')).toEqual(
      [...'abcdefghij'].map((letter) => `many-${letter}`),
    )
    expect(await store.sessions.matchPrefix('many-', { limit: 2 })).toEqual(['many-a', 'many-b'])
    expect(await store.sessions.matchPrefix('many-', { limit: 100 })).toHaveLength(12)
    expect(await store.sessions.matchPrefix('many-', { limit: 0 })).toEqual([])
    expect(await store.sessions.matchPrefix('many-a', { limit: 0 })).toEqual([])
  })

  test('refuses what is no text, and limits that are no count', async () => {
    for (const text of [undefined, null, 5, {}]) {
      await expect(store.sessions.resolveId(text as never)).rejects.toThrow(TypeError)
      await expect(store.sessions.matchPrefix(text as never)).rejects.toThrow(TypeError)
    }
    for (const limit of [-1, 1.5, Number.NaN, '5'])
      await expect(store.sessions.matchPrefix('abcd', { limit: limit as number })).rejects.toThrow(TypeError)
  })

  test('a transaction sees its own', async () => {
    await store.transaction(async (tx) => {
      await tx.sessions.create({ id: 'inside1', source: 'cli' })
      expect(await tx.sessions.resolveId('insi')).toBe('inside1')
    })
    await store.sessions.delete('inside1')
    expect(await store.sessions.resolveId('insi')).toBeNull()
  })
})
