import { beforeEach, describe, expect, test, vi } from 'vitest'
import type { NewSession, StateStore, Usage } from '../../src/index.ts'
import { kinds, rawRow, rawRun } from '../support/stores.ts'

const tokenColumns = [
  'input_tokens',
  'output_tokens',
  'cache_read_tokens',
  'cache_write_tokens',
  'reasoning_tokens',
] as const
const costColumns = ['estimated_cost_usd', 'actual_cost_usd'] as const
const latestColumns = ['cost_status', 'cost_source', 'pricing_version'] as const
const firstColumns = ['billing_provider', 'billing_base_url', 'billing_mode', 'model'] as const

const badValues: [columns: readonly string[], values: unknown[]][] = [
  [tokenColumns, [-1, 1.5, 2 ** 53, 1e300, Number.NaN, Number.POSITIVE_INFINITY, '5', null, true, 5n]],
  [costColumns, [-0.01, Number.NaN, Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY, '1', null, 5n]],
  [
    [...latestColumns, ...firstColumns],
    [5, null, {}],
  ],
]

/** Sums of nothing. */
const zero = {
  input_tokens: 0,
  output_tokens: 0,
  cache_read_tokens: 0,
  cache_write_tokens: 0,
  reasoning_tokens: 0,
  estimated_cost_usd: 0,
  actual_cost_usd: 0,
}

const utc = (time: string) => Date.parse(`${time}Z`) / 1000

/** Starts of sessions, and the days they fall on, worked out by hand. */
const dayZones: [timeZone: string, ...starts: [utc: string, day: string][]][] = [
  ['UTC', ['2026-12-01T23:59:59.999', '2026-12-01'], ['2026-12-02T00:00:00', '2026-12-02']],
  // UTC-8: the new year is eight hours late.
  ['America/Los_Angeles', ['2026-01-01T07:59:59', '2025-12-31'], ['2026-01-01T08:00:00', '2026-01-01']],
  // UTC+14: the day begins at 10:00 of the day before.
  ['Pacific/Kiritimati', ['2026-12-01T09:59:59', '2026-12-01'], ['2026-12-01T10:00:00', '2026-12-02']],
  // UTC+5:45.
  ['Asia/Kathmandu', ['2026-06-01T18:14:59', '2026-06-01'], ['2026-06-01T18:15:00', '2026-06-02']],
  // UTC+13:45 in its summer.
  ['Pacific/Chatham', ['2026-01-01T10:14:59', '2026-01-01'], ['2026-01-01T10:15:00', '2026-01-02']],
  // 29 March has 23 hours: from 23:00 UTC (UTC+1) to 22:00 UTC (UTC+2).
  [
    'Europe/Berlin',
    ['2026-03-28T22:59:59', '2026-03-28'],
    ['2026-03-28T23:00:00', '2026-03-29'],
    ['2026-03-29T21:59:59', '2026-03-29'],
    ['2026-03-29T22:00:00', '2026-03-30'],
  ],
  // 25 October has 25 hours: from 22:00 UTC (UTC+2) to 23:00 UTC (UTC+1).
  [
    'Europe/Berlin',
    ['2026-10-24T21:59:59', '2026-10-24'],
    ['2026-10-24T22:00:00', '2026-10-25'],
    ['2026-10-25T22:59:59', '2026-10-25'],
    ['2026-10-25T23:00:00', '2026-10-26'],
  ],
  // 1 November has 25 hours: from 04:00 UTC (UTC-4) to 05:00 UTC (UTC-5).
  [
    'America/New_York',
    ['2026-11-01T03:59:59', '2026-10-31'],
    ['2026-11-01T04:00:00', '2026-11-01'],
    ['2026-11-02T04:59:59', '2026-11-01'],
    ['2026-11-02T05:00:00', '2026-11-02'],
  ],
  ['UTC', ['1969-07-20T23:59:59', '1969-07-20'], ['1969-07-21T00:00:00', '1969-07-21']],
]

describe.each(kinds)('usage in $name', (kind) => {
  let store: StateStore
  beforeEach(async () => {
    store = await kind.open()
  })

  const create = async (id: string, usage: Usage = {}, session: Partial<NewSession> = {}) => {
    await store.sessions.create({ id, source: 'new', ...session })
    await store.usage.set(id, usage)
  }

  describe.each(['add', 'set'] as const)('%s', (mode) => {
    beforeEach(() => create('s'))

    test.each(tokenColumns)('counts %s', async (column) => {
      await store.usage[mode]('s', { [column]: 100 })
      await store.usage[mode]('s', { [column]: 40 })
      const expected = mode === 'add' ? 140 : 40
      expect(await store.sessions.get('s')).toMatchObject({
        ...zero,
        estimated_cost_usd: null,
        actual_cost_usd: null,
        [column]: expected,
      })
      expect(
        await rawRow(
          store,
          `select ${column} as cell, typeof(${column}) as type from sessions where id = 's'`,
        ),
      ).toEqual({ cell: expected, type: 'integer' })
    })

    test('counts dollars', async () => {
      for (const column of costColumns) {
        await store.usage[mode]('s', { [column]: 1.25 })
        await store.usage[mode]('s', { [column]: 0.5 })
        expect((await store.sessions.get('s'))?.[column]).toBe(mode === 'add' ? 1.75 : 0.5)
      }
    })

    test('takes the latest cost_status, cost_source and pricing_version', async () => {
      for (const column of latestColumns) {
        await store.usage[mode]('s', { [column]: 'first' })
        await store.usage[mode]('s', { [column]: 'second' })
        await store.usage[mode]('s', { input_tokens: 1 })
        expect((await store.sessions.get('s'))?.[column]).toBe('second')
      }
    })

    test('keeps the first billing_provider, billing_base_url, billing_mode and model', async () => {
      for (const column of firstColumns) {
        await store.usage[mode]('s', { [column]: 'first' })
        await store.usage[mode]('s', { [column]: 'second' })
        expect((await store.sessions.get('s'))?.[column]).toBe('first')
      }
    })

    test('keeps the model the session was created with, until setModel', async () => {
      await create('m', {}, { model: 'created' })
      await store.usage[mode]('m', { model: 'used', input_tokens: 1 })
      expect((await store.sessions.get('m'))?.model).toBe('created')
      await store.sessions.setModel('m', 'chosen')
      await store.usage[mode]('m', { model: 'used' })
      expect((await store.sessions.get('m'))?.model).toBe('chosen')
    })

    test('leaves alone what is undefined or not there', async () => {
      const all: Usage = {
        input_tokens: 1,
        output_tokens: 2,
        cache_read_tokens: 3,
        cache_write_tokens: 4,
        reasoning_tokens: 5,
        estimated_cost_usd: 1.25,
        actual_cost_usd: 0.75,
        cost_status: 'final',
        cost_source: 'provider',
        pricing_version: '2026-01',
        billing_provider: 'p',
        billing_base_url: 'https://p.example',
        billing_mode: 'metered',
        model: 'm',
      }
      await store.usage[mode]('s', all)
      const before = await store.sessions.get('s')
      expect(before).toMatchObject(all)
      const nothing = Object.fromEntries(Object.keys(all).map((name) => [name, undefined]))
      expect(await store.usage[mode]('s', nothing)).toBe(true)
      expect(await store.usage[mode]('s', {})).toBe(true)
      expect(await store.sessions.get('s')).toStrictEqual(before)
    })

    test('NULL cells count as 0, and stay where nothing is given', async () => {
      await rawRun(
        store,
        `update sessions set input_tokens = null, output_tokens = null, actual_cost_usd = null where id = 's'`,
      )
      await store.usage[mode]('s', { input_tokens: 50, actual_cost_usd: 0.5 })
      expect(await store.sessions.get('s')).toMatchObject({
        input_tokens: 50,
        output_tokens: 0,
        actual_cost_usd: 0.5,
      })
      expect(await rawRow(store, "select output_tokens from sessions where id = 's'")).toEqual({
        output_tokens: null,
      })
    })

    test('refuses what is no amount, and writes nothing of that call', async () => {
      await store.usage.set('s', { input_tokens: 7, output_tokens: 7, estimated_cost_usd: 0.5 })
      const before = await store.sessions.get('s')
      for (const [columns, values] of badValues)
        for (const column of columns)
          for (const value of values)
            await expect(
              store.usage[mode]('s', { output_tokens: 3, reasoning_tokens: 3, [column]: value }),
              `${column} ${String(value)}`,
            ).rejects.toThrow(TypeError)
      expect(await store.sessions.get('s')).toStrictEqual(before)
    })

    test('refuses what is no usage, and what is no id', async () => {
      for (const usage of [undefined, null, 5, 'x', []])
        await expect(store.usage[mode]('s', usage as never)).rejects.toThrow(TypeError)
      for (const id of ['', null, 5])
        await expect(store.usage[mode](id as never, { input_tokens: 1 })).rejects.toThrow(TypeError)
    })

    test('says so where there is no such session, and makes none', async () => {
      expect(await store.usage[mode]('s', { input_tokens: 1 })).toBe(true)
      expect(await store.usage[mode]('ghost', { input_tokens: 1 })).toBe(false)
      expect(await store.sessions.exists('ghost')).toBe(false)
    })

    test('takes the largest whole number', async () => {
      await store.usage[mode]('s', { input_tokens: Number.MAX_SAFE_INTEGER })
      expect((await store.sessions.get('s'))?.input_tokens).toBe(Number.MAX_SAFE_INTEGER)
    })

    test('an open transaction decides whether it happened', async () => {
      const failed = store.transaction(async (tx) => {
        await tx.usage[mode]('s', { input_tokens: 9 })
        expect((await tx.sessions.get('s'))?.input_tokens).toBe(9)
        throw new Error('no')
      })
      await expect(failed).rejects.toThrow('no')
      expect((await store.sessions.get('s'))?.input_tokens).toBe(0)
    })
  })

  test('totals that are set replace each other', async () => {
    await create('s')
    for (const input_tokens of [1000, 2500, 5000]) await store.usage.set('s', { input_tokens })
    expect((await store.sessions.get('s'))?.input_tokens).toBe(5000)
  })

  test('tokens that are set without a cost leave the cost', async () => {
    await create('s', { input_tokens: 10, estimated_cost_usd: 1.25, actual_cost_usd: 1 })
    await store.usage.set('s', { input_tokens: 20 })
    expect(await store.sessions.get('s')).toMatchObject({
      input_tokens: 20,
      estimated_cost_usd: 1.25,
      actual_cost_usd: 1,
    })
  })

  test('both modes can be mixed: what is added comes on top of what was set', async () => {
    await create('s')
    await store.usage.add('s', { input_tokens: 100 })
    await store.usage.set('s', { input_tokens: 40 })
    await store.usage.add('s', { input_tokens: 5 })
    expect((await store.sessions.get('s'))?.input_tokens).toBe(45)
  })

  test('calls that arrive together all count, in their order', async () => {
    await create('s')
    await Promise.all([
      ...Array.from({ length: 50 }, () => store.usage.add('s', { input_tokens: 1 })),
      store.usage.set('s', { input_tokens: 1000 }),
      ...Array.from({ length: 50 }, () => store.usage.add('s', { input_tokens: 2 })),
    ])
    expect((await store.sessions.get('s'))?.input_tokens).toBe(1100)
  })

  test('set lowers a total, unless told never to', async () => {
    await create('s', { input_tokens: 10_000, estimated_cost_usd: 2, cost_status: 'a' })
    await store.usage.set(
      's',
      { input_tokens: 300, estimated_cost_usd: 0.5, output_tokens: 7, cost_status: 'b' },
      { monotonic: true },
    )
    expect(await store.sessions.get('s')).toMatchObject({
      input_tokens: 10_000,
      estimated_cost_usd: 2,
      output_tokens: 7,
      cost_status: 'b',
    })
    await store.usage.set('s', { input_tokens: 10_001, actual_cost_usd: 0.25 }, { monotonic: true })
    expect(await store.sessions.get('s')).toMatchObject({ input_tokens: 10_001, actual_cost_usd: 0.25 })
    await store.usage.set('s', { input_tokens: 300 }, { monotonic: false })
    expect((await store.sessions.get('s'))?.input_tokens).toBe(300)
    await rawRun(store, "update sessions set input_tokens = null where id = 's'")
    await store.usage.set('s', { input_tokens: 0 }, { monotonic: true })
    expect(await rawRow(store, "select input_tokens from sessions where id = 's'")).toEqual({
      input_tokens: 0,
    })
  })

  test('ten times 0.1 dollars are 1 dollar, wherever it is read', async () => {
    await create('s', {}, { model: 'm', started_at: utc('2026-12-01T12:00:00') })
    for (let n = 0; n < 10; n++) await store.usage.add('s', { estimated_cost_usd: 0.1, actual_cost_usd: 0.1 })
    const one = { estimated_cost_usd: 1, actual_cost_usd: 1 }
    expect(await store.sessions.get('s')).toMatchObject(one)
    expect((await store.sessions.list({ source: 'new' }))[0]).toMatchObject(one)
    expect((await store.usage.topSessions())[0]).toMatchObject(one)
    expect((await store.usage.byModel())[0]).toMatchObject({ model: 'm', ...one })
    expect((await store.usage.bySource())[0]).toMatchObject({ source: 'new', ...one })
    expect((await store.usage.byDay({ timeZone: 'UTC' }))[0]).toMatchObject({ day: '2026-12-01', ...one })
    expect(await store.usage.totals()).toMatchObject(one)
  })

  test('ten sessions of 0.1 dollars are 1 dollar', async () => {
    for (let n = 0; n < 10; n++)
      // On ten quarters of an hour: byDay adds them up in JavaScript.
      await create(
        `s${n}`,
        { estimated_cost_usd: 0.1 },
        { model: 'm', started_at: utc('2026-12-01T12:00:00') + n * 900 },
      )
    expect((await store.usage.byModel())[0]?.estimated_cost_usd).toBe(1)
    expect((await store.usage.bySource())[0]?.estimated_cost_usd).toBe(1)
    expect((await store.usage.byDay({ timeZone: 'UTC' }))[0]?.estimated_cost_usd).toBe(1)
    expect((await store.usage.totals()).estimated_cost_usd).toBe(1)
  })

  test('small amounts are not rounded away', async () => {
    await create('s', { estimated_cost_usd: 0.000_000_375 })
    await store.usage.add('s', { estimated_cost_usd: 0.000_000_375 })
    expect((await store.sessions.get('s'))?.estimated_cost_usd).toBe(0.000_000_75)
  })

  describe('reports', () => {
    /** What the rows of the migrated file add to each report: sessions without any tokens. */
    const old = kind.existing.sessions

    test('of nothing are empty', async () => {
      expect(await store.usage.totals()).toStrictEqual({ sessions: old, ...zero })
      if (old > 0) return
      expect(await store.usage.byModel()).toEqual([])
      expect(await store.usage.bySource()).toEqual([])
      expect(await store.usage.byDay()).toEqual([])
      expect(await store.usage.topSessions()).toEqual([])
    })

    beforeEach(async ({ task }) => {
      if (task.name === 'of nothing are empty') return
      // The actual cost counts where it is known, though the estimate is higher.
      await create(
        'a1',
        { input_tokens: 10, output_tokens: 20, estimated_cost_usd: 9, actual_cost_usd: 1 },
        { source: 'cli', model: 'large' },
      )
      await create(
        'a2',
        { cache_read_tokens: 3, cache_write_tokens: 4, reasoning_tokens: 5, estimated_cost_usd: 2.5 },
        { source: 'cli', model: 'large' },
      )
      await create('b1', { input_tokens: 7, estimated_cost_usd: 3 }, { source: 'telegram', model: 'small' })
      await create('c1', { output_tokens: 500 }, { source: 'cron', model: 'free' })
      await create('c2', { output_tokens: 500 }, { source: 'cron', model: 'also free' })
      await create('d1', { input_tokens: 30 }, { source: 'cron' })
      await rawRun(store, "update sessions set output_tokens = null where id = 'd1'")
    })

    test('by model, the most expensive first, then by tokens, then by name', async () => {
      const oldRow = { ...zero, model: 'claude-3-opus', sessions: 1 }
      expect(await store.usage.byModel()).toStrictEqual([
        {
          model: 'large',
          sessions: 2,
          input_tokens: 10,
          output_tokens: 20,
          cache_read_tokens: 3,
          cache_write_tokens: 4,
          reasoning_tokens: 5,
          estimated_cost_usd: 11.5,
          actual_cost_usd: 1,
        },
        { ...zero, model: 'small', sessions: 1, input_tokens: 7, estimated_cost_usd: 3 },
        { ...zero, model: 'also free', sessions: 1, output_tokens: 500 },
        { ...zero, model: 'free', sessions: 1, output_tokens: 500 },
        // Sessions without a model are a group of their own.
        { ...zero, model: null, sessions: old > 0 ? 3 : 1, input_tokens: 30 },
        ...(old > 0 ? [oldRow] : []),
      ])
    })

    test('by source, the most expensive first', async () => {
      expect(await store.usage.bySource()).toStrictEqual([
        {
          source: 'cli',
          sessions: 2,
          input_tokens: 10,
          output_tokens: 20,
          cache_read_tokens: 3,
          cache_write_tokens: 4,
          reasoning_tokens: 5,
          estimated_cost_usd: 11.5,
          actual_cost_usd: 1,
        },
        { ...zero, source: 'telegram', sessions: 1, input_tokens: 7, estimated_cost_usd: 3 },
        { ...zero, source: 'cron', sessions: 3, input_tokens: 30, output_tokens: 1000 },
        ...(old > 0 ? [{ ...zero, source: 'old', sessions: 3 }] : []),
      ])
    })

    test('of the whole file', async () => {
      expect(await store.usage.totals()).toStrictEqual({
        sessions: 6 + old,
        input_tokens: 47,
        output_tokens: 1020,
        cache_read_tokens: 3,
        cache_write_tokens: 4,
        reasoning_tokens: 5,
        estimated_cost_usd: 14.5,
        actual_cost_usd: 1,
      })
    })

    test('name the most expensive sessions, then those with the most tokens, then by id', async () => {
      const ids = async (limit?: number) =>
        (await store.usage.topSessions({ limit })).map(({ id }) => id).filter((id) => !id.startsWith('old-'))
      expect(await ids()).toEqual(['b1', 'a2', 'a1', 'c1', 'c2', 'd1'])
      expect(await ids(2)).toEqual(['b1', 'a2'])
      expect(await ids(0)).toEqual([])
      const [top] = await store.usage.topSessions({ limit: 1 })
      const { system_prompt: _, ...fields } = (await store.sessions.get('b1'))!
      expect(top).toStrictEqual(fields)
    })

    test('name ten sessions unless told otherwise', async () => {
      for (let n = 0; n < 8; n++) await create(`e${n}`)
      expect(await store.usage.topSessions()).toHaveLength(10)
      expect(await store.usage.topSessions({ limit: 100 })).toHaveLength(14 + old)
      for (const limit of [-1, 1.5, Number.NaN, '5'])
        await expect(store.usage.topSessions({ limit: limit as number })).rejects.toThrow(TypeError)
    })

    test('inside a transaction see what it wrote', async () => {
      await store.transaction(async (tx) => {
        await tx.usage.add('b1', { input_tokens: 1000 })
        expect((await tx.usage.totals()).input_tokens).toBe(1047)
      })
    })
  })

  describe('by day', () => {
    test('a session counts wholly on the day it started', async () => {
      for (const [timeZone, ...starts] of dayZones) {
        await rawRun(store, "delete from messages where session_id like 'day%'")
        await rawRun(store, "delete from sessions where id like 'day%'")
        const expected = new Map<string, { sessions: number; input_tokens: number }>()
        for (const [index, [start, day]] of starts.entries()) {
          const input_tokens = 10 ** index
          await create(`day${index}`, { input_tokens }, { started_at: utc(start) })
          const known = expected.get(day) ?? { sessions: 0, input_tokens: 0 }
          expected.set(day, {
            sessions: known.sessions + 1,
            input_tokens: known.input_tokens + input_tokens,
          })
          // What happens later does not move it.
          await store.messages.append(`day${index}`, { role: 'user', content: 'x' })
        }
        const days = (await store.usage.byDay({ timeZone })).filter(({ input_tokens }) => input_tokens > 0)
        expect(days, timeZone).toStrictEqual(
          [...expected].reverse().map(([day, sums]) => ({ ...zero, day, ...sums })),
        )
      }
    })

    test('is in the time zone of the process unless told otherwise', async () => {
      vi.stubEnv('TZ', 'Pacific/Kiritimati')
      try {
        const timeZone = Intl.DateTimeFormat().resolvedOptions().timeZone
        await create('s', { input_tokens: 1 }, { started_at: utc('2026-12-01T10:00:00') })
        const [day] = await store.usage.byDay()
        expect(day).toEqual((await store.usage.byDay({ timeZone }))[0])
        if (timeZone === 'Pacific/Kiritimati') expect(day?.day).toBe('2026-12-02')
      } finally {
        vi.unstubAllEnvs()
      }
    })

    test('refuses what is no time zone', async () => {
      for (const timeZone of ['Mars/Olympus', '', 'Europe/berlin/x', 5, null])
        await expect(store.usage.byDay({ timeZone: timeZone as string })).rejects.toThrow(TypeError)
    })

    test('a start no calendar reaches does not stop the report', async () => {
      await create('s', { input_tokens: 1 }, { started_at: utc('2026-12-01T12:00:00') })
      // Microseconds taken for seconds.
      await create('wrong', { input_tokens: 2 }, { started_at: 1.8e15 })
      expect(await store.usage.byDay({ timeZone: 'UTC' })).toContainEqual({
        ...zero,
        day: '2026-12-01',
        sessions: 1,
        input_tokens: 1,
      })
    })
  })
})
