import { describe, expect, test } from 'vitest'
import type { StateStore } from '../../src/index.ts'
import { type NewerSchema, newerFile, usageTable } from '../support/newer-file.ts'
import { openForTest, rawRow, rawRows, rawRun } from '../support/stores.ts'

const ids = <Id>(rows: { id: Id }[]) => rows.map(({ id }) => id)

const openNewer = (schema: NewerSchema, sql?: string) => openForTest({ path: newerFile(schema, sql) })

describe('usage that is read', () => {
  const zero = { cache_read_tokens: 0, cache_write_tokens: 0, reasoning_tokens: 0, actual_cost_usd: 0 }

  test('by model is what the file tells by model, and the columns of sessions of which it does not', async () => {
    const store = await openNewer(26)
    expect(await store.usage.byModel()).toEqual([
      {
        model: 'model-a',
        sessions: 2,
        input_tokens: 90,
        output_tokens: 45,
        estimated_cost_usd: 0.375,
        ...zero,
      },
      {
        model: 'model-b',
        sessions: 1,
        input_tokens: 20,
        output_tokens: 10,
        estimated_cost_usd: 0.25,
        ...zero,
      },
      { model: null, sessions: 3, input_tokens: 0, output_tokens: 0, estimated_cost_usd: 0, ...zero },
    ])
  })

  test('by model names the most expensive first, where costs are only estimated', async () => {
    const store = await openNewer(
      26,
      "UPDATE session_model_usage SET estimated_cost_usd = 0.75 WHERE model = 'model-b'",
    )
    expect((await store.usage.byModel()).map(({ model }) => model)).toEqual(['model-b', 'model-a', null])
  })

  test('in sum and by source is that of the sessions', async () => {
    const store = await openNewer(26)
    const used = { input_tokens: 110, output_tokens: 55, estimated_cost_usd: 0.625, ...zero }
    expect(await store.usage.totals()).toEqual({ sessions: 5, ...used })
    expect(await store.usage.bySource()).toEqual([
      { source: 'cli', sessions: 3, ...used },
      {
        source: 'telegram',
        sessions: 2,
        input_tokens: 0,
        output_tokens: 0,
        estimated_cost_usd: 0,
        ...zero,
      },
    ])
    expect(ids(await store.usage.topSessions({ limit: 2 }))).toEqual(['root', 'tip'])
  })

  test.each([8, 11, 16] as const)('by model is that of the sessions in schema %i', async (schema) => {
    const store = await openNewer(schema)
    expect(await store.usage.byModel()).toMatchObject([
      { model: 'model-a', sessions: 2, input_tokens: 110, output_tokens: 55, estimated_cost_usd: 0.625 },
      { model: null, input_tokens: 0 },
    ])
  })
})

interface UsageRow {
  session_id: string
  model: string
  first_seen: number
  last_seen: number
}

const NUMBERS = [
  'input_tokens',
  'output_tokens',
  'cache_read_tokens',
  'cache_write_tokens',
  'reasoning_tokens',
  'estimated_cost_usd',
  'actual_cost_usd',
] as const

describe.each<[string, string, object]>([
  ['with tasks', '', { task: '' }],
  ['without tasks', `DROP TABLE session_model_usage; ${usageTable('billing_mode')}`, {}],
])('usage by model that is written, in a file %s', (_, sql, task) => {
  const open = () => openForTest({ path: newerFile(26, sql), newerSchema: 'write' })

  const rowsOf = (store: StateStore, id: string) =>
    rawRows<UsageRow>(store, 'select * from session_model_usage where session_id = ? order by model', id)

  /** The sums of a session's rows, and what its own columns say. */
  async function compared(store: StateStore, id: string): Promise<void> {
    const sums = NUMBERS.map((name) => `sum(${name}) as ${name}`).join()
    const counted = await rawRow<Record<string, number>>(
      store,
      `select ${sums} from session_model_usage where session_id = ?`,
      id,
    )
    const session = await rawRow<Record<string, number | null>>(
      store,
      `select ${NUMBERS.join()} from sessions where id = ?`,
      id,
    )
    for (const name of NUMBERS) expect(counted[name], name).toBeCloseTo(session[name] ?? 0, 9)
  }

  test('gets a row for the model of a session, and adds up in it', async () => {
    const store = await open()
    await store.sessions.create({ id: 'new', source: 'cli', model: 'model-n' })
    expect(await rowsOf(store, 'new')).toEqual([])
    const started = Date.now() / 1000
    await store.usage.add('new', { input_tokens: 10, output_tokens: 2, estimated_cost_usd: 0.5 })
    const [first, ...others] = await rowsOf(store, 'new')
    expect(others).toEqual([])
    expect(first).toEqual({
      session_id: 'new',
      model: 'model-n',
      billing_provider: '',
      billing_base_url: '',
      billing_mode: '',
      ...task,
      api_call_count: 0,
      input_tokens: 10,
      output_tokens: 2,
      cache_read_tokens: 0,
      cache_write_tokens: 0,
      reasoning_tokens: 0,
      estimated_cost_usd: 0.5,
      actual_cost_usd: 0,
      cost_status: null,
      cost_source: null,
      first_seen: expect.closeTo(started, -1),
      last_seen: first?.first_seen,
    })

    await store.usage.add('new', {
      input_tokens: 5,
      cache_read_tokens: 3,
      cache_write_tokens: 4,
      reasoning_tokens: 6,
    })
    await store.usage.add('new', { estimated_cost_usd: 0.25, actual_cost_usd: 0.125 })
    const [second] = await rowsOf(store, 'new')
    expect(await rowsOf(store, 'new')).toHaveLength(1)
    expect(second).toMatchObject({
      input_tokens: 15,
      output_tokens: 2,
      cache_read_tokens: 3,
      cache_write_tokens: 4,
      reasoning_tokens: 6,
      estimated_cost_usd: 0.75,
      actual_cost_usd: 0.125,
      first_seen: first?.first_seen,
    })
    expect(second?.last_seen).toBeGreaterThanOrEqual(first!.last_seen)
    await compared(store, 'new')
    expect((await store.usage.byModel()).find(({ model }) => model === 'model-n')).toMatchObject({
      sessions: 1,
      input_tokens: 15,
      estimated_cost_usd: 0.75,
    })
  })

  test('says last when a session used it', async () => {
    const store = await open()
    await store.usage.add('tip', { input_tokens: 1 })
    await rawRun(
      store,
      "update session_model_usage set first_seen = 1, last_seen = 2 where session_id = 'tip'",
    )
    await store.usage.add('tip', { input_tokens: 1 })
    const [row] = await rowsOf(store, 'tip')
    expect(row?.first_seen).toBe(1)
    expect(row?.last_seen).toBeCloseTo(Date.now() / 1000, -1)
  })

  test('is told apart by who is billed, and by the model of the time', async () => {
    const store = await open()
    const billing = { billing_provider: 'p', billing_base_url: 'https://p.example', billing_mode: 'metered' }
    await store.sessions.create({ id: 'new', source: 'cli' })
    await store.usage.add('new', { input_tokens: 10, model: 'model-n', ...billing })
    await store.sessions.setModel('new', 'model-o')
    await store.usage.add('new', { input_tokens: 20, billing_provider: 'q' })
    await store.sessions.setModel('new', 'model-n')
    await store.usage.add('new', { input_tokens: 5, output_tokens: 1 })
    expect(await rowsOf(store, 'new')).toMatchObject([
      { model: 'model-n', ...billing, input_tokens: 15, output_tokens: 1 },
      { model: 'model-o', ...billing, input_tokens: 20, output_tokens: 0 },
    ])
    await compared(store, 'new')
    const [n, o] = (await store.usage.byModel()).filter(({ model }) => /model-[no]/.test(model ?? ''))
    expect([n, o]).toMatchObject([
      { model: 'model-o', sessions: 1, input_tokens: 20 },
      { model: 'model-n', sessions: 1, input_tokens: 15 },
    ])
  })

  test('takes over what a session used before there were rows', async () => {
    const store = await open()
    await store.usage.add('tip', { output_tokens: 1, estimated_cost_usd: 0.5 })
    expect(await rowsOf(store, 'tip')).toMatchObject([
      { model: 'model-a', input_tokens: 10, output_tokens: 6, estimated_cost_usd: 0.625 },
    ])
    await compared(store, 'tip')

    await store.usage.add('chat', { input_tokens: 30 })
    expect(await rowsOf(store, 'chat')).toEqual([])
    await store.usage.add('chat', { input_tokens: 4, model: 'model-n' })
    expect(await rowsOf(store, 'chat')).toMatchObject([{ model: 'model-n', input_tokens: 34 }])
    await compared(store, 'chat')
    expect(await store.usage.totals()).toMatchObject({ input_tokens: 144, output_tokens: 56 })
  })

  test('grows by what totals grew, and not where they stayed', async () => {
    const store = await open()
    await store.sessions.create({ id: 'new', source: 'cli', model: 'model-n' })
    await store.usage.set('new', { input_tokens: 100, actual_cost_usd: 0.5 })
    expect(await rowsOf(store, 'new')).toMatchObject([{ input_tokens: 100, actual_cost_usd: 0.5 }])
    await store.usage.set('new', { input_tokens: 130, output_tokens: 8, actual_cost_usd: 0.75 })
    await store.usage.set('new', { input_tokens: 130, output_tokens: 8 })
    await store.usage.set('new', { input_tokens: 20 }, { monotonic: true })
    expect(await rowsOf(store, 'new')).toMatchObject([
      { input_tokens: 130, output_tokens: 8, actual_cost_usd: 0.75 },
    ])
    await compared(store, 'new')
    await store.sessions.setModel('new', 'model-o')
    await store.usage.set('new', { input_tokens: 150 })
    expect(await rowsOf(store, 'new')).toMatchObject([
      { model: 'model-n', input_tokens: 130 },
      { model: 'model-o', input_tokens: 20 },
    ])
    await compared(store, 'new')
  })

  test('equals the session after many calls', async () => {
    const store = await open()
    await store.sessions.create({ id: 'new', source: 'cli', model: 'model-n' })
    for (let round = 1; round <= 12; round++) {
      if (round % 4 === 0) await store.sessions.setModel('new', `model-${round}`)
      await store.usage.add('new', {
        input_tokens: round,
        output_tokens: 2 * round,
        cache_read_tokens: round % 3,
        reasoning_tokens: round % 2,
        estimated_cost_usd: 0.1 * round,
        ...(round > 6 ? { actual_cost_usd: 0.2 } : {}),
      })
      await compared(store, 'new')
    }
    expect(ids((await rowsOf(store, 'new')).map(({ model }) => ({ id: model })))).toEqual([
      'model-12',
      'model-4',
      'model-8',
      'model-n',
    ])
    expect(await store.sessions.get('new')).toMatchObject({ input_tokens: 78, output_tokens: 156 })
  })

  test('is not changed by writes that use nothing', async () => {
    const store = await open()
    const before = await rawRows(store, 'select * from session_model_usage')
    await store.messages.append('tip', { role: 'user', content: 'x' })
    await store.sessions.end('tip', 'user_exit')
    await store.sessions.setModel('root', 'model-n')
    await store.titles.set('tip', 'Seal')
    await store.usage.add('tip', { cost_status: 'final' })
    await store.usage.add('tip', { input_tokens: 0 })
    expect(await rawRows(store, 'select * from session_model_usage')).toEqual(before)
  })

  test('is undone with the transaction', async () => {
    const store = await open()
    const before = await rawRows(store, 'select * from session_model_usage')
    const failing = store.transaction(async (tx) => {
      await tx.usage.add('tip', { input_tokens: 5 })
      throw new Error('no')
    })
    await expect(failing).rejects.toThrow('no')
    expect(await rawRows(store, 'select * from session_model_usage')).toEqual(before)
  })
})
