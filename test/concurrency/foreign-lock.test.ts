import { monitorEventLoopDelay } from 'node:perf_hooks'
import { setTimeout as delay } from 'node:timers/promises'
import { beforeEach, describe, expect, it, onTestFinished } from 'vitest'
import { type StateStore, StateStoreBusyError } from '../../src/index.ts'
import { type Child, expectSound, startSql, until } from '../support/processes.ts'
import { eventsOf, newPath, openForTest } from '../support/stores.ts'

const user = (content: string) => ({ role: 'user', content })

/** Counts the turns of the event loop, and how long each took in milliseconds. */
function countTurns(): number[] {
  const turns: number[] = []
  let last = performance.now()
  const timer = setInterval(() => {
    const now = performance.now()
    turns.push(now - last)
    last = now
  }, 5)
  onTestFinished(() => clearInterval(timer))
  return turns
}

const median = (values: number[]) => values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)]

describe('while another process holds the write lock', () => {
  let path: string
  let other: Child
  let store: StateStore
  const open = async (busyTimeout?: number) => {
    store = await openForTest({ path, busyTimeout })
    await store.sessions.create({ id: 's', source: 'cli' })
    await store.messages.append('s', user('before'))
    other = await startSql(path)
    await other.ask('begin immediate')
  }
  const contents = async () => (await store.messages.list('s')).map(({ content }) => content)

  beforeEach(() => {
    path = newPath()
  })

  it('for 3 s, an append waits and lands, the event loop goes on, and reads succeed', async () => {
    await open()
    const delays = monitorEventLoopDelay({ resolution: 5 })
    delays.enable()
    onTestFinished(() => {
      delays.disable()
    })
    const turns = countTurns()
    let landed = false
    const started = performance.now()
    const append = store.messages.append('s', user('after')).then((id) => {
      landed = true
      return id
    })
    let reads = 0
    for (; performance.now() - started < 3_000; reads++) {
      expect(await contents()).toEqual(['before'])
      expect(await store.search.messages('before')).toHaveLength(1)
      expect(await store.db.selectFrom('sessions').select('id').execute()).toEqual([{ id: 's' }])
      await delay(10)
    }
    expect(reads).toBeGreaterThan(30)
    expect(landed).toBe(false)
    expect(median(turns)).toBeLessThan(50)
    // In nanoseconds.
    expect(delays.max / 1e6).toBeLessThan(250)

    await other.ask('commit')
    expect(await append).toBe(2)
    expect(await contents()).toEqual(['before', 'after'])
    expect(eventsOf(store, 'lock-wait')).toEqual([
      expect.objectContaining({ level: 'info', waited_ms: expect.toSatisfy((ms: number) => ms > 2_900) }),
    ])
    expectSound(path)
  })

  it('appendMany, a transaction and close wait too', async () => {
    await open()
    let runs = 0
    const order: string[] = []
    const all = Promise.all([
      store.messages.append('s', user('one')).then(() => order.push('append')),
      store.messages.appendMany('s', [user('two'), user('three')]).then(() => order.push('appendMany')),
      store
        .transaction(async (tx) => {
          runs++
          await tx.messages.append('s', user('four'))
        })
        .then(() => order.push('transaction')),
    ])
    const turns = countTurns()
    await until(() => turns.length >= 10)
    let closed = false
    const close = store.close().then(() => {
      closed = true
    })
    await until(() => turns.length >= 20)
    expect(order).toEqual([])
    expect(closed).toBe(false)
    expect(runs).toBe(0)

    await other.ask('commit')
    await all
    await close
    expect(runs).toBe(1)
    expect(order).toEqual(['append', 'appendMany', 'transaction'])
    const again = await openForTest({ path })
    expect((await again.messages.list('s')).map(({ content }) => content)).toEqual([
      'before',
      'one',
      'two',
      'three',
      'four',
    ])
  })

  it('an append is given up when busyTimeout is spent, with a healthy file, and the next one works', async () => {
    await open(1_000)
    const turns = countTurns()
    const error = await store.messages.append('s', user('lost')).catch((reason) => reason)
    expect(error).toBeInstanceOf(StateStoreBusyError)
    expect(error).toMatchObject({
      code: 'BUSY',
      message: expect.stringMatching(
        /^Another process kept the state file locked for 1\.\d s\. Nothing was written and the file is healthy: try again, or open the store with a longer busyTimeout\.$/,
      ),
      cause: expect.objectContaining({ code: 'SQLITE_BUSY' }),
    })
    expect(error.waited_ms).toBeGreaterThanOrEqual(1_000)
    expect(turns.length).toBeGreaterThan(5)

    await other.ask('rollback')
    expect(await store.messages.append('s', user('kept'))).toBe(2)
    expect(await contents()).toEqual(['before', 'kept'])
    expectSound(path)
  })

  it('a transaction whose time is spent has not been started', async () => {
    await open(300)
    let runs = 0
    const error = await store
      .transaction(async () => {
        runs++
      })
      .catch((reason) => reason)
    expect(error).toBeInstanceOf(StateStoreBusyError)
    expect(error.waited_ms).toBeGreaterThanOrEqual(300)
    expect(runs).toBe(0)
    await other.ask('rollback')
    await store.transaction((tx) => tx.messages.append('s', user('kept')))
    expect(await contents()).toEqual(['before', 'kept'])
  })

  it('busyTimeout 0 gives up at the first try', async () => {
    await open(0)
    const error = await store.messages.append('s', user('lost')).catch((reason) => reason)
    expect(error).toBeInstanceOf(StateStoreBusyError)
    await other.ask('rollback')
    expect(await store.messages.append('s', user('kept'))).toBe(2)
  })

  it('appends of the same tick give up together, and a later one has its own time', async () => {
    await open(300)
    const early = Promise.allSettled([
      store.messages.append('s', user('a')),
      store.messages.append('s', user('b')),
      store.messages.append('s', user('c')),
    ])
    await delay(150)
    let landed = false
    const late = store.messages.append('s', user('late')).then((id) => {
      landed = true
      return id
    })
    for (const outcome of await early)
      expect(outcome).toMatchObject({ status: 'rejected', reason: { code: 'BUSY' } })
    expect(landed).toBe(false)
    await other.ask('rollback')
    expect(await late).toBe(2)
    expect(await contents()).toEqual(['before', 'late'])
  })

  it('what waits behind a transaction gives up when its own time is spent, and says how long it waited', async () => {
    await open(300)
    const started = performance.now()
    const timed = (call: Promise<unknown>) =>
      call.then(
        () => expect.unreachable('the file is locked'),
        (error: StateStoreBusyError) => ({ error, real: performance.now() - started }),
      )
    const outcomes = await Promise.all([
      timed(store.messages.appendMany('s', [user('a')])),
      timed(store.transaction((tx) => tx.messages.append('s', user('b')))),
      timed(store.messages.append('s', user('c'))),
    ])
    for (const { error, real } of outcomes) {
      expect(error).toBeInstanceOf(StateStoreBusyError)
      expect(error.waited_ms).toBeGreaterThanOrEqual(300)
      expect(real - error.waited_ms).toBeLessThan(250)
    }
  })

  const first: [string, string, () => Promise<unknown>, () => Promise<unknown>][] = [
    [
      'an append',
      'appendMany',
      () => store.messages.appendMany('s', [user('early')]),
      () => store.messages.append('s', user('late')),
    ],
    [
      'an append',
      'a transaction',
      () => store.transaction((tx) => tx.messages.append('s', user('early'))),
      () => store.messages.append('s', user('late')),
    ],
    [
      'a transaction',
      'an append',
      () => store.messages.append('s', user('early')),
      () => store.transaction((tx) => tx.messages.append('s', user('late'))),
    ],
  ]
  it.each(first)('%s lands though %s before it gave up', { timeout: 10_000 }, async (_, __, early, late) => {
    await open(300)
    const lost = early().catch((error) => error)
    await delay(200)
    const kept = late()
    expect(await lost).toBeInstanceOf(StateStoreBusyError)
    await other.ask('rollback')
    expect(await kept).toBe(2)
    expect(await store.messages.append('s', user('next'))).toBe(3)
    expect(await contents()).toEqual(['before', 'late', 'next'])
    expectSound(path)
  })
})

it('two stores of one file in one process take turns without blocking', async () => {
  const path = newPath()
  const one = await openForTest({ path })
  const two = await openForTest({ path })
  await one.sessions.create({ id: 's', source: 'cli' })
  const turns = countTurns()
  let landed = false
  const transaction = one.transaction(async (tx) => {
    await tx.messages.append('s', user('one'))
    await until(() => turns.length >= 30)
    expect(landed).toBe(false)
  })
  const append = two.messages.append('s', user('two')).then((id) => {
    landed = true
    return id
  })
  await transaction
  expect(await append).toBe(2)
  expect(median(turns)).toBeLessThan(50)
  await Promise.all([one, two].flatMap((store) => [1, 2, 3].map(() => store.messages.append('s', user('x')))))
  expect(await one.messages.count('s')).toBe(8)
  expectSound(path)
})
