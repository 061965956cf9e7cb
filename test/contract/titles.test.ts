import { beforeEach, describe, expect, test } from 'vitest'
import { type StateStore, TitleInUseError } from '../../src/index.ts'
import { fileKinds, kinds, openForTest, rawRow, rawRun } from '../support/stores.ts'

const automatic: [taken: string[], title: string, given: string][] = [
  [['a'], 'a', 'a #2'],
  [['a'], 'A', 'A'],
  [['a', 'a #2', 'a #3'], 'a', 'a #4'],
  [['a', 'a #7'], 'a', 'a #8'],
  [['a #2'], 'a #2', 'a #3'],
  [['a #2'], 'a', 'a'],
  [['a', 'a #2'], 'a #2', 'a #3'],
  [['x'.repeat(100)], 'x'.repeat(100), `${'x'.repeat(97)} #2`],
  [['x'.repeat(100), `${'x'.repeat(97)} #2`], 'x'.repeat(100), `${'x'.repeat(97)} #3`],
  // The base is cut before its space.
  [[`${'x'.repeat(96)} yyy`], `${'x'.repeat(96)} yyy`, `${'x'.repeat(96)} #2`],
  [['🚀'.repeat(99)], '🚀'.repeat(99), `${'🚀'.repeat(97)} #2`],
]

const meanings: [titles: string[], title: string, found: string | null][] = [
  [[], 't', null],
  [['t'], 't', 't'],
  [['t', 't #2'], 't', 't #2'],
  // The highest number, though it started before the others.
  [['t', 't #2', 't #3'], 't', 't #3'],
  [['t #9', 't #10'], 't', 't #10'],
  [['t', 't #2', 't #3'], 't #2', 't #2'],
  [['t', 't #2'], 't #4', null],
  [['t #7'], 't', 't #7'],
  [['Issue #42'], 'Issue', 'Issue #42'],
  // The same number twice: the newest.
  [['t #02', 't #2'], 't', 't #02'],
  [['t #2', 't #02'], 't', 't #2'],
  [['t #2', 't #02'], 't #02', 't #02'],
  // No numbers: other digits, more than nine of them, no space, text behind.
  [['t', 't #٣'], 't', 't'],
  [['t', 't #٣'], 't #٣', 't #٣'],
  [['t', 't #1234567890'], 't', 't'],
  [['t', 't #123456789'], 't', 't #123456789'],
  [['t', 't#2', 't #2 draft', 't #', 't #2.5', 't #-2'], 't', 't'],
  // A family of its own.
  [['t', 't #2 #3'], 't', 't'],
  [['t #2', 't #2 #3'], 't #2', 't #2'],
  [['t #2 #3'], 't #2', null],
  // Case and wildcards are text.
  [['t #2'], 'T', null],
  [['abc', 'abc #2'], 'a_c', null],
  [['abc', 'abc #2'], 'a%', null],
  [['a_c', 'a_c #2', 'abc #3'], 'a_c', 'a_c #2'],
  [["it's", `it's #2`], "it's", "it's #2"],
  // Cleaned first.
  [['école', 'école #2'], ' e\u0301cole\u200b ', 'école #2'],
  [['t', 't #2'], 't  \u200b#2', 't #2'],
  [['t'], '', null],
  [['t'], '\u200b', null],
]

const nextTitles: [titles: string[], title: string, expected: string][] = [
  [[], 'Fix build', 'Fix build'],
  [['fix build'], 'Fix build', 'Fix build'],
  [['Fix build'], 'Fix build', 'Fix build #2'],
  [['Fix build', 'Fix build #2'], 'Fix build', 'Fix build #3'],
  [['Fix build', 'Fix build #9', 'Fix build #10'], 'Fix build', 'Fix build #11'],
  [['Fix build', 'Fix build #2'], 'Fix build #2', 'Fix build #3'],
  [['Fix build #2'], 'Fix build #2', 'Fix build #3'],
  [['Issue #42'], 'Issue #42', 'Issue #43'],
  [[], 'nope #7', 'nope'],
  [[], ' #5', '#5'],
  [['#5'], '#5', '#5 #2'],
  [['x #007'], 'x', 'x #8'],
  [['a #٣'], 'a #٣', 'a #٣ #2'],
  [['big #99999999999999999999'], 'big #99999999999999999999', 'big #99999999999999999999 #2'],
  [['a_c'], 'a%c', 'a%c'],
  [['x', 'x #2 draft', 'x #٣'], 'x', 'x #2'],
  [['école'], 'e\u0301cole\u200b', 'école #2'],
  [['x'.repeat(100)], 'x'.repeat(100), `${'x'.repeat(97)} #2`],
  [['x'.repeat(97), `${'x'.repeat(97)} #9`], 'x'.repeat(97), `${'x'.repeat(96)} #10`],
]

const lookalikes: [string, first: string, second: string][] = [
  ['composed and decomposed', 'e\u0301cole', '\u00e9cole'],
  ['white space', 'Fix build', ' Fix\u00a0\n build'],
  ['a zero width space', 'Fix build', 'Fix\u200b build'],
  ['a stray joiner', 'Fix build', 'Fix\u200d build'],
  ['a direction mark', 'שלום', '\u200fשלום'],
]

describe.each(kinds)('titles in $name', (kind) => {
  let store: StateStore
  beforeEach(async () => {
    store = await kind.open()
  })

  const create = (id: string, started_at = 2000) => store.sessions.create({ id, source: 'cli', started_at })

  /** Sessions of these titles, named after them; the first started last. */
  const titled = async (...titles: string[]) => {
    for (const [index, title] of titles.entries()) {
      await create(`of ${title}`, 5000 - index)
      await store.titles.set(`of ${title}`, title)
    }
  }

  /** A session and nothing else: the cases of a table share a file. */
  const restart = async () => {
    await rawRun(store, "delete from sessions where source = 'cli'")
    await create('s')
  }

  describe('set', () => {
    test('gives a title, cleaned', async () => {
      await create('s')
      expect(await store.titles.get('s')).toBeNull()
      expect(await store.titles.set('s', '  Fix\u200b \n e\u0301cole ')).toBe(true)
      expect(await store.titles.get('s')).toBe('Fix \u00e9cole')
      expect((await store.sessions.get('s'))?.title).toBe('Fix \u00e9cole')
      expect(await rawRow(store, "select title from sessions where id = 's'")).toEqual({
        title: 'Fix \u00e9cole',
      })
      expect(await store.titles.set('s', 'Another')).toBe(true)
      expect(await store.titles.get('s')).toBe('Another')
    })

    test('takes it away with null, and with what nobody could see', async () => {
      for (const nothing of [null, '', ' \t', '\u200b\u3164', '\ufe0f']) {
        await restart()
        await titled('a')
        expect(await store.titles.set('of a', nothing)).toBe(true)
        expect(await rawRow(store, "select title from sessions where id = 'of a'")).toEqual({ title: null })
        // Any number of sessions have none.
        expect(await store.titles.set('s', nothing)).toBe(true)
      }
    })

    test('says so where there is no such session', async () => {
      expect(await store.titles.set('ghost', 'a')).toBe(false)
      expect(await store.titles.set('ghost', null)).toBe(false)
      expect(await store.titles.get('ghost')).toBeNull()
    })

    test('refuses what is too long or no text, and keeps the title', async () => {
      await titled('a')
      await expect(store.titles.set('of a', 'b'.repeat(101))).rejects.toThrow('too long')
      for (const title of ['b'.repeat(101), undefined, 5, {}])
        await expect(store.titles.set('of a', title as never)).rejects.toThrow(TypeError)
      for (const id of ['', null, 5])
        await expect(store.titles.set(id as never, 'b')).rejects.toThrow(TypeError)
      expect(await store.titles.get('of a')).toBe('a')
    })

    test('refuses a title in use, and says by whom', async () => {
      await store.sessions.create({ id: 'holder', source: 'telegram' })
      await store.titles.set('holder', 'Fix build')
      await create('s')
      await store.titles.set('s', 'mine')
      const refused = store.titles.set('s', ' Fix  build ')
      await expect(refused).rejects.toThrow(TitleInUseError)
      await expect(refused).rejects.toThrow('already in use')
      await expect(refused).rejects.toMatchObject({
        code: 'TITLE_IN_USE',
        title: 'Fix build',
        session_id: 'holder',
        source: 'telegram',
      })
      expect(await store.titles.get('s')).toBe('mine')
      expect(await store.titles.get('holder')).toBe('Fix build')
    })

    test('refuses titles that look the same', async () => {
      for (const [name, first, second] of lookalikes) {
        await restart()
        await titled(first)
        await expect(store.titles.set('s', second), name).rejects.toMatchObject({ session_id: `of ${first}` })
      }
    })

    test('letter case makes a difference', async () => {
      await titled('école', 'École', 'fix', 'Fix')
      for (const title of ['école', 'École', 'fix', 'Fix'])
        expect((await store.titles.getSession(title))?.id).toBe(`of ${title}`)
      expect(await store.titles.getSession('FIX')).toBeNull()
    })

    test('a session can be given its own title again', async () => {
      await titled('a')
      expect(await store.titles.set('of a', 'a')).toBe(true)
    })

    test('a title is free again when its session loses it or goes', async () => {
      await titled('a', 'b')
      await create('s')
      await store.titles.set('of a', null)
      expect(await store.titles.set('s', 'a')).toBe(true)
      await store.sessions.delete('of b')
      expect(await store.titles.set('s', 'b')).toBe(true)
      expect(await store.titles.getSession('a')).toBeNull()
    })

    test('of two that want one title at once, one gets it', async () => {
      await create('a')
      await create('b')
      const results = await Promise.allSettled([store.titles.set('a', 't'), store.titles.set('b', 't')])
      expect(results).toMatchObject([{ status: 'fulfilled' }, { reason: { code: 'TITLE_IN_USE' } }])
    })

    test('a transaction that fails leaves the title', async () => {
      await titled('a')
      const failed = store.transaction(async (tx) => {
        await tx.titles.set('of a', 'b')
        expect(await tx.titles.get('of a')).toBe('b')
        throw new Error('no')
      })
      await expect(failed).rejects.toThrow('no')
      expect(await store.titles.get('of a')).toBe('a')
    })

    test('a refused title does not end a transaction', async () => {
      await titled('a')
      await create('s')
      await store.transaction(async (tx) => {
        await expect(tx.titles.set('s', 'a')).rejects.toThrow(TitleInUseError)
        await tx.titles.set('s', 'b')
      })
      expect(await store.titles.get('s')).toBe('b')
    })
  })

  describe('getSession', () => {
    test('finds the session of a title, whole', async () => {
      await store.sessions.create({ id: 's', source: 'cli', system_prompt: 'Be brief.' })
      await store.titles.set('s', 'école 100%')
      const session = await store.sessions.get('s')
      expect(session?.system_prompt).toBe('Be brief.')
      for (const title of ['école 100%', ' e\u0301cole\u200b  100%'])
        expect(await store.titles.getSession(title)).toStrictEqual(session)
    })

    test('finds nothing else', async () => {
      await titled('Fix build')
      for (const title of ['fix', 'Fix', 'Fix build #2', 'Fix_build', '%', '', '\u200b', 'of Fix build'])
        expect(await store.titles.getSession(title)).toBeNull()
    })
  })

  describe('setIfEmpty', () => {
    test('gives a title to a session that has none, and only then', async () => {
      await create('s')
      expect(await store.titles.setIfEmpty('s', ' Fix\n build ')).toBe('Fix build')
      expect(await store.titles.setIfEmpty('s', 'other')).toBeNull()
      expect(await store.titles.setIfEmpty('s', 'Fix build')).toBeNull()
      expect(await store.titles.get('s')).toBe('Fix build')
    })

    test('gives none where there is no session or nothing to see', async () => {
      await create('s')
      expect(await store.titles.setIfEmpty('ghost', 'a')).toBeNull()
      expect(await store.titles.setIfEmpty('s', '\u200b ')).toBeNull()
      expect(await store.titles.get('s')).toBeNull()
      await expect(store.titles.setIfEmpty('s', null as never)).rejects.toThrow(TypeError)
      await expect(store.titles.setIfEmpty('', 'a')).rejects.toThrow(TypeError)
    })

    test('takes the next free number where the title is taken', async () => {
      for (const [taken, title, given] of automatic) {
        await restart()
        await titled(...taken)
        expect(await store.titles.setIfEmpty('s', title), `${title} beside ${taken}`).toBe(given)
        expect(await store.titles.get('s')).toBe(given)
      }
    })

    test('what it gives is found by its own text, wherever the base was cut', async () => {
      // Cut behind a joiner, between two emoji that it joins.
      const title = `${'x'.repeat(95)}👨\u200d👩\u200d👧`
      await titled(title)
      await create('s')
      const given = await store.titles.setIfEmpty('s', title)
      expect(given).toMatch(/ #2$/)
      expect((await store.titles.getSession(given!))?.id).toBe('s')
      await create('t')
      await expect(store.titles.set('t', given)).rejects.toMatchObject({ session_id: 's' })
    })

    test('twenty at once get twenty titles', async () => {
      const ids = Array.from({ length: 20 }, (_, index) => `s${index}`)
      for (const id of ids) await create(id)
      const given = await Promise.all(ids.map((id) => store.titles.setIfEmpty(id, 'Auto')))
      expect(given).toEqual(['Auto', ...Array.from({ length: 19 }, (_, index) => `Auto #${index + 2}`)])
    })

    test('a title that a user gives wins, whichever comes first', async () => {
      await create('a')
      await create('b')
      const both = await Promise.all([store.titles.setIfEmpty('a', 'auto'), store.titles.set('a', 'user a')])
      expect(both).toEqual(['auto', true])
      const reversed = await Promise.all([
        store.titles.set('b', 'user b'),
        store.titles.setIfEmpty('b', 'auto'),
      ])
      expect(reversed).toEqual([true, null])
      expect(await store.titles.get('a')).toBe('user a')
      expect(await store.titles.get('b')).toBe('user b')
      // The automatic one is free again.
      await create('c')
      expect(await store.titles.setIfEmpty('c', 'auto')).toBe('auto')
    })

    test('inside a transaction takes what that transaction left free', async () => {
      await titled('a')
      await create('s')
      await store.transaction(async (tx) => {
        await tx.titles.set('of a', null)
        expect(await tx.titles.setIfEmpty('s', 'a')).toBe('a')
        expect(await tx.titles.setIfEmpty('of a', 'a')).toBe('a #2')
      })
    })
  })

  describe('resolve', () => {
    test('finds the session a title means', async () => {
      for (const [titles, title, found] of meanings) {
        await restart()
        await titled(...titles)
        expect(await store.titles.resolve(title), `${title} among ${titles}`).toBe(
          found === null ? null : `of ${found}`,
        )
      }
    })

    test('refuses what is no text', async () => {
      for (const title of [undefined, null, 5]) {
        await expect(store.titles.resolve(title as never)).rejects.toThrow(TypeError)
        await expect(store.titles.getSession(title as never)).rejects.toThrow(TypeError)
        await expect(store.titles.next(title as never)).rejects.toThrow(TypeError)
      }
    })
  })

  describe('next', () => {
    test('is the next free title of the family, and takes nothing', async () => {
      for (const [titles, title, expected] of nextTitles) {
        await restart()
        await titled(...titles)
        expect(await store.titles.next(title), `${title} beside ${titles}`).toBe(expected)
        expect(await store.titles.next(title)).toBe(expected)
      }
    })

    test('stays free of use beyond nine digits', async () => {
      await titled('x', 'x #999999999')
      const given = new Set<string>()
      for (let n = 0; n < 3; n++) {
        const title = await store.titles.next('x')
        given.add(title)
        await create(`s${n}`)
        expect(await store.titles.set(`s${n}`, title)).toBe(true)
      }
      expect(given.size).toBe(3)
    })

    test('refuses a base nobody could see', async () => {
      await expect(store.titles.next(' \u200b')).rejects.toThrow(TypeError)
    })
  })

  test('titles that other programs wrote are found by what they are', async () => {
    await create('s')
    await rawRun(store, "update sessions set title = 'by hand #3' where id = 's'")
    expect(await store.titles.resolve('by hand')).toBe('s')
    expect(await store.titles.next('by hand')).toBe('by hand #4')
    expect((await store.titles.getSession('by hand #3'))?.id).toBe('s')
  })
})

test('two stores on one file give different titles', async () => {
  const store = await fileKinds[0]!.open()
  const other = await openForTest({ path: store.info.path })
  const ids = Array.from({ length: 20 }, (_, index) => `s${index}`)
  for (const id of ids) await store.sessions.create({ id, source: 'cli' })
  const given = await Promise.all(
    ids.map((id, index) => (index % 2 === 0 ? store : other).titles.setIfEmpty(id, 'Auto')),
  )
  expect(new Set(given)).toEqual(
    new Set(['Auto', ...Array.from({ length: 19 }, (_, index) => `Auto #${index + 2}`)]),
  )
})
