import { beforeEach, describe, expect, test } from 'vitest'
import type { NewSession, Relative, StateStore } from '../../src/index.ts'
import { sql } from '../support/processes.ts'
import { kinds, openForTest, rawRows, rawRun } from '../support/stores.ts'

/** Level by level; the order within a level is nobody's business. */
const byLevel = (relatives: Relative[]) =>
  relatives.toSorted((a, b) => a.depth - b.depth || (a.id < b.id ? -1 : 1))

const depths = (relatives: Relative[]) => relatives.map(({ depth }) => depth)

describe.each(kinds)('lineage in $name', (kind) => {
  let store: StateStore
  beforeEach(async () => {
    store = await kind.open()
  })

  const create = (id: string, parent_session_id?: string, session: Partial<NewSession> = {}) =>
    store.sessions.create({ id, source: 'cli', parent_session_id, ...session })

  /** Links that create() would refuse, as other programs have left them. */
  const link = (id: string, parent: string) =>
    rawRun(store, 'update sessions set parent_session_id = ? where id = ?', parent, id)

  describe('a tree', () => {
    /** r → a → (c, d → e), r → b. */
    beforeEach(async () => {
      await create('r')
      await create('a', 'r')
      await create('b', 'r')
      await create('c', 'a')
      await create('d', 'a')
      await create('e', 'd')
      await create('elsewhere')
    })

    test('ancestors are the line from the parent to the root', async () => {
      expect(await store.lineage.ancestors('e')).toStrictEqual([
        { id: 'd', parent_session_id: 'a', depth: 1 },
        { id: 'a', parent_session_id: 'r', depth: 2 },
        { id: 'r', parent_session_id: null, depth: 3 },
      ])
      expect(await store.lineage.ancestors('b')).toStrictEqual([
        { id: 'r', parent_session_id: null, depth: 1 },
      ])
      expect(await store.lineage.ancestors('r')).toEqual([])
    })

    test('descendants are all below, level by level', async () => {
      const below = await store.lineage.descendants('r')
      expect(byLevel(below)).toStrictEqual([
        { id: 'a', parent_session_id: 'r', depth: 1 },
        { id: 'b', parent_session_id: 'r', depth: 1 },
        { id: 'c', parent_session_id: 'a', depth: 2 },
        { id: 'd', parent_session_id: 'a', depth: 2 },
        { id: 'e', parent_session_id: 'd', depth: 3 },
      ])
      expect(depths(below)).toEqual([1, 1, 2, 2, 3])
      expect(await store.lineage.descendants('d')).toStrictEqual([
        { id: 'e', parent_session_id: 'd', depth: 1 },
      ])
      expect(await store.lineage.descendants('e')).toEqual([])
    })

    test('the root is at the top of the line', async () => {
      for (const id of ['r', 'a', 'b', 'c', 'e']) expect(await store.lineage.root(id)).toBe('r')
      expect(await store.lineage.root('elsewhere')).toBe('elsewhere')
    })

    test('what is deleted leaves the line', async () => {
      await store.sessions.delete('a')
      expect(await store.lineage.descendants('r')).toStrictEqual([
        { id: 'b', parent_session_id: 'r', depth: 1 },
      ])
      expect(await store.lineage.root('e')).toBe('d')
      expect(await store.lineage.ancestors('c')).toEqual([])
    })

    test('a transaction sees its own', async () => {
      await store.transaction(async (tx) => {
        await tx.sessions.create({ id: 'f', source: 'cli', parent_session_id: 'e' })
        expect(await tx.lineage.root('f')).toBe('r')
        expect(depths(await tx.lineage.ancestors('f'))).toEqual([1, 2, 3, 4])
      })
    })
  })

  test('of a session that does not exist is nothing', async () => {
    expect(await store.lineage.ancestors('ghost')).toEqual([])
    expect(await store.lineage.descendants('ghost')).toEqual([])
    expect(await store.lineage.root('ghost')).toBeNull()
    expect(await store.lineage.tip('ghost')).toBeNull()
  })

  test('refuses what is no id', async () => {
    for (const id of ['', null, undefined, 5])
      for (const method of ['ancestors', 'descendants', 'root', 'tip'] as const)
        await expect(store.lineage[method](id as never)).rejects.toThrow(TypeError)
  })

  describe('circles that other programs left', () => {
    test('a session that is its own parent', async () => {
      await create('s')
      await create('child', 's')
      await link('s', 's')
      expect(await store.lineage.ancestors('s')).toEqual([])
      expect(await store.lineage.root('s')).toBe('s')
      expect(await store.lineage.descendants('s')).toStrictEqual([
        { id: 'child', parent_session_id: 's', depth: 1 },
      ])
      expect(await store.lineage.ancestors('child')).toStrictEqual([
        { id: 's', parent_session_id: 's', depth: 1 },
      ])
      expect(await store.lineage.tip('s')).toBe('s')
      await store.sessions.end('s', 'compression')
      await store.sessions.delete('child')
      expect(await store.lineage.tip('s')).toBe('s')
    })

    test('three in a circle, with a session below it', async () => {
      await create('a')
      await create('b', 'a')
      await create('c', 'b')
      await create('below', 'c')
      await link('a', 'c')
      expect(await store.lineage.ancestors('b')).toStrictEqual([
        { id: 'a', parent_session_id: 'c', depth: 1 },
        { id: 'c', parent_session_id: 'b', depth: 2 },
      ])
      expect(await store.lineage.ancestors('below')).toStrictEqual([
        { id: 'c', parent_session_id: 'b', depth: 1 },
        { id: 'b', parent_session_id: 'a', depth: 2 },
        { id: 'a', parent_session_id: 'c', depth: 3 },
      ])
      expect(byLevel(await store.lineage.descendants('b'))).toStrictEqual([
        { id: 'c', parent_session_id: 'b', depth: 1 },
        { id: 'a', parent_session_id: 'c', depth: 2 },
        { id: 'below', parent_session_id: 'c', depth: 2 },
      ])
      // A circle has no top: any of it will do.
      expect(['a', 'b', 'c']).toContain(await store.lineage.root('below'))
      for (const id of ['a', 'b', 'c']) await store.sessions.end(id, 'compression')
      expect(['a', 'b', 'c', 'below']).toContain(await store.lineage.tip('a'))
    })

    test.runIf(kind.file)('a parent that is not in the file', async () => {
      await create('s')
      await create('child', 's')
      const path = store.info.path
      sql(path, "insert into sessions (id, source, started_at) values ('gone', 'cli', 1)")
      await link('s', 'gone')
      // As programs do that leave foreign keys off, which is SQLite's default.
      const { default: Database } = await import('better-sqlite3')
      const db = new Database(path)
      db.pragma('foreign_keys = off')
      db.exec("delete from sessions where id = 'gone'")
      db.close()
      expect(await rawRows(store, "select parent_session_id from sessions where id = 's'")).toEqual([
        { parent_session_id: 'gone' },
      ])
      expect(await store.lineage.ancestors('child')).toStrictEqual([
        { id: 's', parent_session_id: 'gone', depth: 1 },
      ])
      expect(await store.lineage.root('child')).toBe('s')
      expect(await store.lineage.descendants('gone')).toEqual([])
      expect(await store.lineage.tip('s')).toBe('s')
    })
  })

  describe('tip', () => {
    /** A parent that ended by compression. */
    beforeEach(async () => {
      await create('p', undefined, { started_at: 2000 })
      await store.sessions.end('p', 'compression')
    })

    test('is the session itself where nothing continues it', async () => {
      expect(await store.lineage.tip('p')).toBe('p')
    })

    test('is the last of its continuations', async () => {
      await create('b', 'p')
      await store.sessions.end('b', 'compression')
      await create('c', 'b')
      for (const id of ['p', 'b', 'c']) expect(await store.lineage.tip(id)).toBe('c')
      await store.sessions.end('c', 'user_exit')
      await create('after the end', 'c')
      expect(await store.lineage.tip('p')).toBe('c')
    })

    test('does not follow children of a session that ended in another way', async () => {
      for (const reason of ['user_exit', 'session_reset', 'compression_failed']) {
        await create(reason)
        await create(`after ${reason}`, reason)
        expect(await store.lineage.tip(reason)).toBe(reason)
        await store.sessions.end(reason, reason)
        expect(await store.lineage.tip(reason)).toBe(reason)
      }
    })

    test('is the session itself again when it is reopened', async () => {
      await create('b', 'p')
      expect(await store.lineage.tip('p')).toBe('b')
      await store.sessions.reopen('p')
      expect(await store.lineage.tip('p')).toBe('p')
    })

    test('of several continuations takes the latest, then the highest id', async () => {
      await create('c1', 'p', { started_at: 3000 })
      await create('c3', 'p', { started_at: 4000 })
      await create('c2', 'p', { started_at: 4000 })
      await create('c4', 'p', { started_at: 3500 })
      expect(await store.lineage.tip('p')).toBe('c3')
    })

    test('goes by the link, not by the clock', async () => {
      // The child was written first, and its clock is behind.
      await create('b', 'p', { started_at: 1000 })
      expect(await store.lineage.tip('p')).toBe('b')
    })

    test.each(['_delegate_from', '_branched_from', '_reset_from'])(
      'passes over a child marked %s',
      async (mark) => {
        await create('marked', 'p', { started_at: 9000, model_config: { [mark]: 'p' } })
        expect(await store.lineage.tip('p')).toBe('p')
        await create('b', 'p', { started_at: 3000, model_config: { temperature: 1 } })
        expect(await store.lineage.tip('p')).toBe('b')
        // As Python writes it, after other keys.
        await create('python', 'p', { started_at: 9000 })
        await rawRun(
          store,
          "update sessions set model_config = ? where id = 'python'",
          `{"temperature": 0.5, "${mark}": "p"}`,
        )
        expect(await store.lineage.tip('p')).toBe('b')
        // A session that goes on from there is not the conversation's tip either.
        await store.sessions.end('marked', 'compression')
        await create('further', 'marked')
        expect(await store.lineage.tip('p')).toBe('b')
        expect(await store.lineage.tip('marked')).toBe('further')
      },
    )

    test.each(['_delegate_from', '_branched_from', '_reset_from'])(
      'is no session elsewhere that is marked %s',
      async (mark) => {
        await create('other')
        await create('of other', 'other', { started_at: 9000, model_config: { [mark]: 'other' } })
        expect(await store.lineage.tip('p')).toBe('p')
        await create('b', 'p', { started_at: 3000 })
        expect(await store.lineage.tip('p')).toBe('b')
      },
    )

    test('takes a child with any other configuration for a continuation', async () => {
      await create('b', 'p')
      for (const model_config of [
        '{"note": "made by _branched_from"}',
        '{"note": "\\"_delegate_from\\""}',
        '{"xbranched_from": 1}',
        '{"a_delegate_from": 1}',
        '{broken',
        '',
        '[]',
        'null',
      ]) {
        await rawRun(store, "update sessions set model_config = ? where id = 'b'", model_config)
        expect(await store.lineage.tip('p'), model_config).toBe('b')
      }
    })
  })

  if (kind.existing.sessions > 0)
    test('what was in the file before has its lineage', async () => {
      expect(await store.lineage.tip('old-root')).toBe('old-tip')
      expect(await store.lineage.root('old-tip')).toBe('old-root')
    })
})

describe('long lines and large trees', () => {
  let store: StateStore
  beforeEach(async () => {
    store = await openForTest({ path: ':memory:' })
  })

  /** Sessions n0, n1, … in one statement; `parent` is SQL for the number of the parent of number i. */
  const fill = (count: number, parent: string, ended = 'null') =>
    rawRun(
      store,
      `insert into sessions (id, source, parent_session_id, started_at, ended_at, end_reason)
       with recursive n(i) as (select 0 union all select i + 1 from n where i + 1 < ?)
       select 'n' || i, 'cli', case when i > 0 then 'n' || (${parent}) end, i, 1, ${ended} from n`,
      count,
    )

  test('a chain of 10,000', async () => {
    await fill(10_000, 'i - 1', "'compression'")
    const up = await store.lineage.ancestors('n9999')
    expect(up).toHaveLength(9999)
    expect(up.every(({ id, depth }) => id === `n${9999 - depth}`)).toBe(true)
    expect(depths(up)).toEqual(Array.from({ length: 9999 }, (_, index) => index + 1))
    const down = await store.lineage.descendants('n0')
    expect(down).toHaveLength(9999)
    expect(
      down.every(
        ({ id, parent_session_id, depth }) => id === `n${depth}` && parent_session_id === `n${depth - 1}`,
      ),
    ).toBe(true)
    expect(await store.lineage.root('n9999')).toBe('n0')
    expect(await store.lineage.tip('n0')).toBe('n9999')
  })

  test('a tree of 100,000', async () => {
    await fill(100_000, '(i - 1) / 10')
    const parentOf = (number: number) => Math.floor((number - 1) / 10)
    const depthOf = (number: number): number => (number === 0 ? 0 : 1 + depthOf(parentOf(number)))
    const tree = await store.lineage.descendants('n0')
    expect(new Set(tree.map(({ id }) => id)).size).toBe(99_999)
    expect(tree).toHaveLength(99_999)
    const wrong = tree.filter(({ id, parent_session_id, depth }) => {
      const number = Number(id.slice(1))
      return parent_session_id !== `n${parentOf(number)}` || depth !== depthOf(number)
    })
    expect(wrong).toEqual([])
    // Children first, then grandchildren.
    expect(tree.every(({ depth }, index) => depth >= (tree[index - 1]?.depth ?? 0))).toBe(true)
    expect(await store.lineage.root('n99999')).toBe('n0')
    expect(depths(await store.lineage.ancestors('n99999'))).toEqual([1, 2, 3, 4, 5])
  })
})
