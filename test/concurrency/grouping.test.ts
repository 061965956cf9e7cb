import { readFileSync } from 'node:fs'
import { expect, it } from 'vitest'
import { SessionNotFoundError, type StateStore } from '../../src/index.ts'
import { expectSound } from '../support/processes.ts'
import { newPath, openForTest } from '../support/stores.ts'

const user = (content: string) => ({ role: 'user', content })

/**
 * How many commits the write-ahead log holds: its frames that end a transaction, by the file format at
 * https://sqlite.org/fileformat2.html#walformat. SQLite holds no locks on this file that reading it could drop.
 */
function commits(path: string): number {
  const wal = readFileSync(`${path}-wal`)
  const pageSize = wal.readUInt32BE(8)
  let count = 0
  for (let frame = 32; frame + 24 <= wal.length; frame += 24 + pageSize) {
    // Frames of a former run through the log have another salt.
    if (wal.compare(wal, 16, 24, frame + 8, frame + 16) !== 0) break
    if (wal.readUInt32BE(frame + 4) > 0) count++
  }
  return count
}

/** Appends in one tick, and how many commits that made. */
async function appendTogether(store: StateStore, sessions: string[]) {
  const before = commits(store.info.path)
  const outcomes = await Promise.allSettled(
    sessions.map((session, n) => store.messages.append(session, user(`message ${n}`))),
  )
  return { outcomes, commits: commits(store.info.path) - before }
}

it('counts commits', async () => {
  const store = await openForTest({ path: newPath() })
  const before = commits(store.info.path)
  await store.sessions.create({ id: 's', source: 'cli' })
  await store.messages.append('s', user('one'))
  await store.messages.append('s', user('two'))
  expect(commits(store.info.path) - before).toBe(3)
})

it('50 appends of one tick get their own ids in order and share a commit', async () => {
  // A group ends after some milliseconds, so that timers get their turn: one on a busy machine may take two.
  const made: number[] = []
  for (let round = 0; round < 3; round++) {
    const path = newPath()
    const store = await openForTest({ path })
    await store.sessions.create({ id: 's', source: 'cli' })
    await store.messages.append('s', user('first'))
    const { outcomes, commits } = await appendTogether(store, new Array(50).fill('s'))
    made.push(commits)
    expect(outcomes).toEqual(Array.from({ length: 50 }, (_, n) => ({ status: 'fulfilled', value: n + 2 })))
    expect((await store.messages.list('s', { after: 1 })).map(({ id, content }) => [id, content])).toEqual(
      Array.from({ length: 50 }, (_, n) => [n + 2, `message ${n}`]),
    )
    expect((await store.sessions.get('s'))?.message_count).toBe(51)
    expectSound(path)
  }
  expect(Math.min(...made)).toBe(1)
  expect(Math.max(...made)).toBeLessThan(10)
})

it('one bad append among 50 rejects alone', async () => {
  const made: number[] = []
  for (let round = 0; round < 3; round++) {
    const path = newPath()
    const store = await openForTest({ path })
    await store.sessions.create({ id: 's', source: 'cli' })
    await store.messages.append('s', user('first'))
    const { outcomes, commits } = await appendTogether(store, new Array(50).fill('s').with(20, 'nobody'))
    made.push(commits)
    expect(outcomes[20]).toMatchObject({ status: 'rejected', reason: expect.any(SessionNotFoundError) })
    const good = outcomes.toSpliced(20, 1)
    expect(good).toEqual(Array.from({ length: 49 }, (_, n) => ({ status: 'fulfilled', value: n + 2 })))
    expect((await store.messages.list('s', { after: 1 })).map(({ content }) => content)).toEqual(
      Array.from({ length: 50 }, (_, n) => `message ${n}`).toSpliced(20, 1),
    )
    expect((await store.sessions.get('s'))?.message_count).toBe(50)
    expectSound(path)
  }
  // One that its session does not take has written nothing: the others share a commit, more on a busy machine.
  expect(Math.min(...made)).toBe(1)
  expect(Math.max(...made)).toBeLessThan(10)
})

it('every second append is bad: the others land, each once', async () => {
  const path = newPath()
  const store = await openForTest({ path })
  await store.sessions.create({ id: 's', source: 'cli' })
  const { outcomes } = await appendTogether(
    store,
    Array.from({ length: 50 }, (_, n) => (n % 2 === 0 ? 's' : 'nobody')),
  )
  expect(outcomes.map(({ status }) => status)).toEqual(
    Array.from({ length: 50 }, (_, n) => (n % 2 === 0 ? 'fulfilled' : 'rejected')),
  )
  expect((await store.messages.list('s')).map(({ content }) => content)).toEqual(
    Array.from({ length: 25 }, (_, n) => `message ${2 * n}`),
  )
  expectSound(path)
})
