import { beforeEach, describe, expect, test } from 'vitest'
import type { NewSession, StateStore } from '../../src/index.ts'
import { fileKinds, kinds, openForTest, rawRow, rawRows, rawRun } from '../support/stores.ts'

const DAY = 86_400
const daysAgo = (days: number) => Date.now() / 1000 - days * DAY
const user = (content: string, timestamp?: number) => ({ role: 'user', content, timestamp })
const call = { id: 'c', type: 'function', function: { name: 'look', arguments: '{}' } }

/** Messages with one tool call each, as another program would write them, with their counters. */
async function fill(store: StateStore, id: string, count: number, timestamp = 1): Promise<void> {
  await rawRun(
    store,
    `insert into messages (session_id, role, content, tool_calls, timestamp)
     with recursive n(i) as (select 1 union all select i + 1 from n where i < ?)
     select ?, 'assistant', 'word number ' || i, ?, ? from n`,
    count,
    id,
    JSON.stringify([call]),
    timestamp,
  )
  await rawRun(
    store,
    'update sessions set message_count = message_count + ?, tool_call_count = tool_call_count + ? where id = ?',
    count,
    count,
    id,
  )
}

/** Expects no damage, right counters, and nothing left behind in any table of any row that is gone. */
async function expectClean(store: StateStore): Promise<void> {
  expect(await rawRows(store, 'pragma integrity_check')).toEqual([{ integrity_check: 'ok' }])
  expect(await rawRows(store, 'pragma foreign_key_check')).toEqual([])
  // Rank 1: the index is compared with the texts.
  await rawRun(store, "insert into messages_fts(messages_fts, rank) values('integrity-check', 1)")
  expect(await rawRow(store, 'select count(*) as count from messages_fts_docsize')).toEqual(
    await rawRow(store, 'select count(*) as count from messages'),
  )
  expect(
    await rawRows(
      store,
      `select id, message_count, tool_call_count from sessions
       where message_count is not (select count(*) from messages where session_id = sessions.id)
         or tool_call_count is not (select coalesce(sum(json_array_length(tool_calls)), 0)
                                    from messages where session_id = sessions.id)`,
    ),
  ).toEqual([])
  const columns = await rawRows<{ tab: string; col: string }>(
    store,
    `select t.name as tab, c.name as col from sqlite_schema t join pragma_table_info(t.name) c
     where t.type = 'table' and t.name like 'hs!_%' escape '!' and c.name in ('session_id', 'message_id')
       and t.name <> 'hs_bigrams_pending'`,
  )
  for (const { tab, col } of columns)
    expect(
      await rawRows(
        store,
        `select ${col} from "${tab}" where ${col} not in (select id from ${col === 'session_id' ? 'sessions' : 'messages'})`,
      ),
      `${tab}.${col}`,
    ).toEqual([])
  if (columns.some(({ tab }) => tab === 'hs_session_activity'))
    expect(
      await rawRows(
        store,
        'select id from sessions where id not in (select session_id from hs_session_activity)',
      ),
    ).toEqual([])
}

describe.each(kinds)('removing from $name', (kind) => {
  let store: StateStore
  beforeEach(async () => {
    store = await kind.open()
  })

  const create = (id: string, session: Partial<NewSession> = {}) =>
    store.sessions.create({ id, source: 'new', ...session })

  /** A session that ended and was last active so many days ago. */
  const createOld = async (id: string, days: number, session: Partial<NewSession> = {}) => {
    await create(id, { started_at: daysAgo(days), ...session })
    await store.sessions.end(id, 'user_exit')
  }

  const exist = async (...ids: string[]) => {
    const found: string[] = []
    for (const id of ids) if (await store.sessions.exists(id)) found.push(id)
    return found
  }

  describe('delete', () => {
    test('takes a session with its messages, and leaves its children without a parent', async () => {
      await create('p')
      await create('s', { parent_session_id: 'p' })
      await create('child', { parent_session_id: 's' })
      await create('grandchild', { parent_session_id: 'child' })
      await store.messages.append('s', user('walrus'))
      await store.messages.append('s', { role: 'user', content: [{ type: 'text', text: 'walrus in parts' }] })
      await store.messages.append('child', user('seal'))
      await store.titles.set('s', 'title')

      expect(await store.sessions.delete('s')).toBe(true)
      expect(await exist('p', 's', 'child', 'grandchild')).toEqual(['p', 'child', 'grandchild'])
      expect((await store.sessions.get('child'))?.parent_session_id).toBeNull()
      expect((await store.sessions.get('grandchild'))?.parent_session_id).toBe('child')
      expect(await store.messages.count('s')).toBe(0)
      expect(await store.messages.count()).toBe(kind.existing.messages + 1)
      expect(await store.search.messages('parts')).toEqual([])
      expect(await store.titles.getSession('title')).toBeNull()
      expect(
        (await store.sessions.list({ show: 'roots', source: 'new' })).map(({ id }) => id).sort(),
      ).toEqual(['child', 'p'])
      await expectClean(store)
    })

    test('says so where there is none, and refuses what is no id', async () => {
      await create('s')
      expect(await store.sessions.delete('ghost')).toBe(false)
      expect(await store.sessions.delete('s')).toBe(true)
      expect(await store.sessions.delete('s')).toBe(false)
      for (const id of ['', null, undefined, 5])
        await expect(store.sessions.delete(id as never)).rejects.toThrow(TypeError)
      expect(await store.sessions.delete('%')).toBe(false)
      expect(await store.sessions.count()).toBe(kind.existing.sessions)
    })

    test('takes an open session that is its own parent', async () => {
      await create('s')
      await rawRun(store, "update sessions set parent_session_id = 's' where id = 's'")
      expect(await store.sessions.delete('s')).toBe(true)
      await expectClean(store)
    })

    test('takes what is stored meanwhile, too', async () => {
      await create('s')
      await fill(store, 's', 2500)
      const deleted = store.sessions.delete('s')
      const appends: Promise<unknown>[] = []
      let over = false
      void deleted.then(() => {
        over = true
      })
      while (!over) {
        appends.push(store.messages.append('s', user('late')))
        await new Promise(setImmediate)
      }
      expect(await deleted).toBe(true)
      await Promise.allSettled(appends)
      expect(await store.sessions.exists('s')).toBe(false)
      expect(await store.messages.count('s')).toBe(0)
      await expectClean(store)
    })

    test('is undone with its transaction', async () => {
      await create('s')
      await create('child', { parent_session_id: 's' })
      await fill(store, 's', 1200)
      const before = await store.sessions.get('s')
      const failed = store.transaction(async (tx) => {
        expect(await tx.sessions.delete('s')).toBe(true)
        expect(await tx.sessions.exists('s')).toBe(false)
        throw new Error('no')
      })
      await expect(failed).rejects.toThrow('no')
      expect(await store.sessions.get('s')).toStrictEqual(before)
      expect((await store.sessions.get('child'))?.parent_session_id).toBe('s')
      expect(await store.messages.count('s')).toBe(1200)
      await expectClean(store)
    })
  })

  describe('deleteIfEmpty', () => {
    test('takes a session nobody has used, open or ended', async () => {
      await create('open', { system_prompt: 'Be brief.', model: 'm' })
      await createOld('ended', 1)
      expect(await store.sessions.deleteIfEmpty('open')).toBe(true)
      expect(await store.sessions.deleteIfEmpty('ended')).toBe(true)
      expect(await exist('open', 'ended')).toEqual([])
      await expectClean(store)
    })

    test('leaves one with a message, a title or a child', async () => {
      await create('message')
      await rawRun(store, "insert into messages (session_id, role, timestamp) values ('message', 'user', 1)")
      await create('title')
      await store.titles.set('title', 'mine')
      await create('child')
      await create('of child', { parent_session_id: 'child' })
      for (const id of ['message', 'title', 'child', 'ghost'])
        expect(await store.sessions.deleteIfEmpty(id), id).toBe(false)
      expect(await exist('message', 'title', 'child')).toEqual(['message', 'title', 'child'])
      await store.messages.clear('message')
      await store.titles.set('title', null)
      await store.sessions.delete('of child')
      for (const id of ['message', 'title', 'child'])
        expect(await store.sessions.deleteIfEmpty(id), id).toBe(true)
    })

    test('counts rows, not counters', async () => {
      await create('s')
      await rawRun(store, "update sessions set message_count = 5 where id = 's'")
      expect(await store.sessions.deleteIfEmpty('s')).toBe(true)
      await expect(store.sessions.deleteIfEmpty('')).rejects.toThrow(TypeError)
    })
  })

  describe('prune', () => {
    beforeEach(async () => {
      // Of the rows that are in the file before, only open ones are left: they are counted as skipped.
      await rawRun(store, "update sessions set ended_at = null, end_reason = null where source = 'old'")
    })
    const old = kind.existing.sessions

    test('goes by the last message, not by the start and not by the end', async () => {
      await createOld('resumed', 100)
      await store.messages.append('resumed', user('still here', daysAgo(1 / 1440)))
      await createOld('idle', 100)
      await store.messages.append('idle', user('long ago', daysAgo(95)))
      await createOld('silent', 100)
      await createOld('moved', 1)
      await rawRun(store, "update sessions set started_at = ? where id = 'moved'", daysAgo(91))
      await createOld('young', 89)
      expect(await store.sessions.prune({ olderThanDays: 90 })).toEqual({ deleted: 3, skipped_open: old })
      expect(await exist('resumed', 'idle', 'silent', 'moved', 'young')).toEqual(['resumed', 'young'])
      await expectClean(store)
    })

    test('takes 90 days unless told otherwise, and parts of days', async () => {
      await createOld('a', 90.01)
      await createOld('b', 89.99)
      await createOld('c', 0.6)
      await createOld('d', 0.4)
      expect((await store.sessions.prune()).deleted).toBe(1)
      expect(await exist('a', 'b')).toEqual(['b'])
      expect((await store.sessions.prune({ olderThanDays: undefined })).deleted).toBe(0)
      expect((await store.sessions.prune({ olderThanDays: 0.5 })).deleted).toBe(2)
      expect(await exist('b', 'c', 'd')).toEqual(['d'])
    })

    test('refuses an age that is not above 0, and deletes nothing', async () => {
      await createOld('s', 1000)
      const infinite = [Number.NaN, Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY]
      for (const olderThanDays of [0, -1, -0.0001, ...infinite, null, '90', [], {}, true, 90n])
        for (const dryRun of [true, false])
          await expect(
            store.sessions.prune({ olderThanDays: olderThanDays as number, dryRun }),
            String(olderThanDays),
          ).rejects.toThrow(TypeError)
      expect(await exist('s')).toEqual(['s'])
    })

    test('leaves sessions that never ended, and says how many', async () => {
      await create('open', { started_at: daysAgo(400) })
      await create('young', { started_at: daysAgo(1) })
      expect(await store.sessions.prune()).toEqual({ deleted: 0, skipped_open: 1 + old })
      await store.sessions.end('open', 'user_exit')
      await store.sessions.reopen('open')
      expect(await store.sessions.prune()).toEqual({ deleted: 0, skipped_open: 1 + old })
      await store.sessions.end('open', 'user_exit')
      expect(await store.sessions.prune()).toEqual({ deleted: 1, skipped_open: old })
    })

    test('takes only one source where it is given, by its text', async () => {
      await createOld('a', 100, { source: 'new' })
      await createOld('b', 100, { source: 'New' })
      await create('c', { started_at: daysAgo(100), source: 'new' })
      for (const source of ['', '%', 'ne_', 'absent'])
        expect(await store.sessions.prune({ source })).toEqual({ deleted: 0, skipped_open: 0 })
      expect(await store.sessions.prune({ source: 'new' })).toEqual({ deleted: 1, skipped_open: 1 })
      expect(await exist('a', 'b', 'c')).toEqual(['b', 'c'])
      for (const source of [null, 5, ['new']])
        await expect(store.sessions.prune({ source: source as never })).rejects.toThrow(TypeError)
    })

    test('only says what would go with dryRun', async () => {
      await createOld('a', 100)
      await createOld('b', 100, { source: 'other' })
      await create('c', { started_at: daysAgo(100) })
      const progress: unknown[] = []
      const dry = { dryRun: true, onProgress: (step: unknown) => progress.push(step) }
      expect(await store.sessions.prune(dry)).toEqual({ deleted: 2, skipped_open: 1 + old })
      expect(await store.sessions.prune({ ...dry, source: 'new' })).toEqual({ deleted: 1, skipped_open: 1 })
      expect(await exist('a', 'b', 'c')).toEqual(['a', 'b', 'c'])
      expect(progress).toEqual([])
      expect(await store.sessions.prune({ dryRun: false })).toEqual({ deleted: 2, skipped_open: 1 + old })
    })

    test('leaves the children of what goes, without a parent', async () => {
      await createOld('a', 100)
      await createOld('b', 100, { parent_session_id: 'a' })
      await createOld('young', 1, { parent_session_id: 'b' })
      expect((await store.sessions.prune()).deleted).toBe(2)
      expect((await store.sessions.get('young'))?.parent_session_id).toBeNull()
      await expectClean(store)
    })

    test('tells how far it is, and takes no notice of what it was not told to take', async () => {
      for (const id of ['a', 'b', 'c']) {
        await createOld(id, 100)
        await fill(store, id, 700)
      }
      await createOld('young', 1)
      const steps: { deleted: number; total: number }[] = []
      expect((await store.sessions.prune({ onProgress: (step) => steps.push(step) })).deleted).toBe(3)
      expect(steps.length).toBeGreaterThan(1)
      expect(steps.at(-1)).toEqual({ deleted: 3, total: 3 })
      for (const [index, { deleted, total }] of steps.entries()) {
        expect(total).toBe(3)
        expect(deleted).toBeGreaterThanOrEqual(steps[index - 1]?.deleted ?? 0)
      }
      expect(await exist('young')).toEqual(['young'])
      await expectClean(store)
    })

    test('deletes nothing when it is aborted before it begins', async () => {
      await createOld('a', 100)
      const reason = new Error('changed my mind')
      await expect(store.sessions.prune({ signal: AbortSignal.abort(reason) })).rejects.toBe(reason)
      expect(await exist('a')).toEqual(['a'])
    })

    test('leaves whole sessions when it is aborted', async () => {
      const sizes = { a: 2500, b: 400, c: 2500, d: 400 }
      for (const [id, size] of Object.entries(sizes)) {
        await createOld(id, 100)
        await fill(store, id, size)
      }
      const controller = new AbortController()
      const pruned = store.sessions.prune({
        signal: controller.signal,
        onProgress: () => controller.abort(),
      })
      await expect(pruned).rejects.toMatchObject({ name: 'AbortError' })
      const left = await exist('a', 'b', 'c', 'd')
      expect(left.length).toBeGreaterThan(0)
      for (const id of left) expect(await store.messages.count(id), id).toBe(sizes[id as keyof typeof sizes])
      await expectClean(store)
      // It can be run again.
      expect((await store.sessions.prune()).deleted).toBe(left.length)
    })

    test('leaves a session that somebody goes on with meanwhile, with right counters', async () => {
      await createOld('s', 100)
      await fill(store, 's', 2500)
      let appended: Promise<number> | undefined
      const result = await store.sessions.prune({
        onProgress: () => {
          appended ??= store.messages.append('s', { role: 'assistant', tool_calls: [call, call] })
        },
      })
      const id = await appended!
      expect(result).toEqual({ deleted: 0, skipped_open: old })
      expect((await store.messages.list('s', { latest: 1 }))[0]?.id).toBe(id)
      await expectClean(store)
    })

    test('does not count below 0 where other programs let the counters drift', async () => {
      await createOld('s', 100)
      await fill(store, 's', 1500)
      await rawRun(store, "update sessions set message_count = 0, tool_call_count = null where id = 's'")
      let appended: Promise<number> | undefined
      await store.sessions.prune({
        onProgress: () => {
          appended ??= store.messages.append('s', user('x'))
        },
      })
      await appended
      const session = await store.sessions.get('s')
      expect(session?.message_count).toBeGreaterThanOrEqual(0)
      expect(session?.tool_call_count).toBeGreaterThanOrEqual(0)
    })

    test('leaves a session that somebody reopens meanwhile', async () => {
      await createOld('a', 100)
      await fill(store, 'a', 1500)
      await createOld('b', 100)
      await store.messages.append('b', user('x', daysAgo(99)))
      let reopened: Promise<boolean> | undefined
      await store.sessions.prune({
        onProgress: () => {
          reopened ??= store.sessions.reopen('b')
        },
      })
      expect(await reopened).toBe(true)
      expect(await exist('a', 'b')).toEqual(['b'])
      expect(await store.messages.count('b')).toBe(1)
      await expectClean(store)
    })

    test('twice at once deletes everything once', async () => {
      for (let n = 0; n < 6; n++) {
        await createOld(`s${n}`, 100)
        await fill(store, `s${n}`, 600)
      }
      const results = await Promise.all([store.sessions.prune(), store.sessions.prune()])
      expect(results[0].deleted + results[1].deleted).toBe(6)
      expect(await store.sessions.count({ source: 'new' })).toBe(0)
      await expectClean(store)
    })

    test('inside a transaction is undone with it', async () => {
      await createOld('s', 100)
      await fill(store, 's', 1200)
      const failed = store.transaction(async (tx) => {
        expect((await tx.sessions.prune()).deleted).toBe(1)
        throw new Error('no')
      })
      await expect(failed).rejects.toThrow('no')
      expect(await store.messages.count('s')).toBe(1200)
      await expectClean(store)
    })
  })

  describe('recount', () => {
    test('puts counters right that other programs let drift', async () => {
      await create('s')
      for (let n = 0; n < 3; n++)
        await store.messages.append('s', { role: 'assistant', tool_calls: [call, call] })
      await store.messages.append('s', user('x'))
      await rawRun(
        store,
        'delete from messages where id = (select min(id) from messages where session_id = ?)',
        's',
      )
      expect(await store.sessions.get('s')).toMatchObject({ message_count: 4, tool_call_count: 6 })
      expect(await store.sessions.recount('s')).toBe(true)
      expect(await store.sessions.get('s')).toMatchObject({ message_count: 3, tool_call_count: 4 })
      await rawRun(store, "update sessions set message_count = null, tool_call_count = -7 where id = 's'")
      await store.sessions.recount('s')
      await expectClean(store)
    })

    test('counts broken and other JSON as no calls, and a session without messages as 0', async () => {
      await create('s')
      await create('empty')
      await rawRun(
        store,
        `insert into messages (session_id, role, tool_calls, timestamp)
         values ('s', 'assistant', '{broken', 1), ('s', 'assistant', '{"a": [1, 2]}', 1),
           ('s', 'assistant', '[1, 2, 3]', 1), ('s', 'assistant', 'null', 1), ('s', 'assistant', '', 1)`,
      )
      await rawRun(store, 'update sessions set message_count = 9, tool_call_count = 9')
      await store.sessions.recount('s')
      await store.sessions.recount('empty')
      expect(await store.sessions.get('s')).toMatchObject({ message_count: 5, tool_call_count: 3 })
      expect(await store.sessions.get('empty')).toMatchObject({ message_count: 0, tool_call_count: 0 })
    })

    test('says so where there is no such session', async () => {
      expect(await store.sessions.recount('ghost')).toBe(false)
      await expect(store.sessions.recount('')).rejects.toThrow(TypeError)
    })
  })

  test('clear keeps tokens, title, parent and end, and the activity goes back to the start', async () => {
    await create('p')
    await create('s', { parent_session_id: 'p', started_at: 5000 })
    await store.messages.append('s', { role: 'user', content: [{ type: 'text', text: 'x' }] })
    await fill(store, 's', 600, 6000)
    await store.usage.set('s', { input_tokens: 7, actual_cost_usd: 0.5, cost_status: 'final' })
    await store.titles.set('s', 'mine')
    await store.sessions.end('s', 'user_exit')
    const before = await store.sessions.get('s')
    expect(await store.messages.clear('s')).toBe(601)
    expect(await store.sessions.get('s')).toStrictEqual({ ...before, message_count: 0, tool_call_count: 0 })
    const summary = (await store.sessions.list({ source: 'new' })).find(({ id }) => id === 's')
    expect(summary).toMatchObject({ last_active: 5000, preview: '' })
    expect(await store.messages.clear('s')).toBe(0)
    await expect(store.messages.clear('ghost')).rejects.toMatchObject({ code: 'SESSION_NOT_FOUND' })
    await expectClean(store)
  })
})

describe('a long prune lets others in', () => {
  let store: StateStore
  let other: StateStore
  beforeEach(async () => {
    store = await fileKinds[0]!.open()
    other = await openForTest({ path: store.info.path })
    await store.sessions.create({ id: 'live', source: 'cli' })
  })

  /** Appends without a pause until the prune is over; returns what was left of it at each of them. */
  async function during<T>(pruned: Promise<T>, left: () => Promise<number>): Promise<number[]> {
    const seen: number[] = []
    let over = false
    const end = () => {
      over = true
    }
    pruned.then(end, end)
    while (!over) {
      await other.messages.append('live', user('x'))
      seen.push(await left())
    }
    return seen
  }

  test('of a session of 6,000 messages', async () => {
    await store.sessions.create({ id: 's', source: 'cli', started_at: 1 })
    await store.sessions.end('s', 'user_exit')
    await fill(store, 's', 6000)
    const steps: unknown[] = []
    const pruned = store.sessions.prune({ onProgress: (step) => steps.push(step) })
    const seen = await during(pruned, () => other.messages.count('s'))
    expect(await pruned).toEqual({ deleted: 1, skipped_open: 0 })
    expect(steps.length).toBeGreaterThanOrEqual(3)
    // Messages went while the other one was writing, and it did not have to wait for all of them.
    expect(seen.filter((left) => left > 0 && left < 6000).length).toBeGreaterThanOrEqual(2)
    expect(await store.messages.count('live')).toBe(seen.length)
    await expectClean(store)
  })

  test('of 33,000 ended sessions without messages', async () => {
    await rawRun(
      store,
      `insert into sessions (id, source, started_at, ended_at)
       with recursive n(i) as (select 1 union all select i + 1 from n where i < 33000)
       select 'e' || i, 'cli', 1, 1 from n`,
    )
    let turns = 0
    let over = false
    const turn = () => {
      turns++
      if (!over) setImmediate(turn)
    }
    turn()
    const pruned = store.sessions.prune()
    const seen = await during(pruned, async () => (await other.sessions.count()) - 1)
    over = true
    expect(await pruned).toEqual({ deleted: 33_000, skipped_open: 0 })
    expect(await store.sessions.count()).toBe(1)
    expect(seen.filter((left) => left > 0 && left < 33_000).length).toBeGreaterThanOrEqual(2)
    // This process was not kept from its work either.
    expect(turns).toBeGreaterThan(33)
    await expectClean(store)
  })
})
