import { copyFileSync } from 'node:fs'
import { CompiledQuery } from 'kysely'
import { beforeEach, describe, expect, it } from 'vitest'
import { DiskFullError, openStateStore, type StateStore, StateStoreError } from '../../src/index.ts'
import { type Fault, failAt, useFaultyDriver } from '../support/faulty-driver.ts'
import { expectSound, sql } from '../support/processes.ts'
import { newPath, openForTest } from '../support/stores.ts'

const user = (content: string) => ({ role: 'user', content })

interface Operation {
  name: string
  run(store: StateStore): Promise<unknown>
  /** The least number of calls of the driver it makes. */
  calls: number
}

const operations: Operation[] = [
  { name: 'append', calls: 8, run: (store) => store.messages.append('s', user('new 海象')) },
  {
    name: 'appendMany',
    calls: 8,
    run: (store) =>
      store.messages.appendMany('s', [
        user('one'),
        { role: 'user', content: [{ type: 'text', text: 'two' }] },
        user('three'),
      ]),
  },
  {
    name: 'replaceAll',
    calls: 8,
    run: (store) => store.messages.replaceAll('s', [user('instead'), user('of them')]),
  },
  {
    name: 'transaction',
    calls: 10,
    run: (store) =>
      store.transaction(async (tx) => {
        await tx.messages.append('s', user('first'))
        await tx.sessions.end('s', 'compression')
        await tx.sessions.create({ id: 'next', source: 'cli', parent_session_id: 's' })
        await tx.messages.append('next', user('second'))
      }),
  },
  { name: 'delete', calls: 6, run: (store) => store.sessions.delete('s') },
  { name: 'prune', calls: 6, run: (store) => store.sessions.prune({ olderThanDays: 1 }) },
]

const faults: Fault[] = [
  { code: 'SQLITE_FULL', endsTransaction: true },
  { code: 'SQLITE_IOERR_WRITE', endsTransaction: true },
  { code: 'SQLITE_IOERR_READ', endsTransaction: false },
  { code: 'SQLITE_BUSY', endsTransaction: false },
]

async function write(path: string): Promise<void> {
  const store = await openStateStore({ path })
  for (const id of ['s', 'old']) {
    await store.sessions.create({ id, source: 'cli', started_at: 1000 })
    await store.messages.appendMany(
      id,
      ['walrus', 'heron', '海象'].map((content) => ({ ...user(content), timestamp: 1000 })),
    )
  }
  await store.sessions.end('old', 'done')
  await store.close()
}

/** All that the operations can change. */
const rows = (path: string) => [
  sql(path, 'select id, session_id, role, content from messages order by id'),
  sql(path, 'select id, parent_session_id, end_reason, message_count from sessions order by id'),
  sql(path, 'select message_id, content from hs_structured_content order by message_id'),
]

describe.each(operations)('$name, at whichever call of the driver it fails', ({ name, run, calls }) => {
  beforeEach(useFaultyDriver)

  it.each(faults)('with $code (the transaction ended by SQLite: $endsTransaction)', async (fault) => {
    const original = newPath()
    await write(original)
    let step = 1
    for (; ; step++) {
      const path = `${original}-${step}`
      copyFileSync(original, path)
      const before = rows(path)
      const store = await openForTest({ path, busyTimeout: 2_000 })
      const failure = failAt(step, fault)
      const error = await run(store).then(
        () => undefined,
        (error: unknown) => error,
      )
      const reached = failure.stop()
      if (error !== undefined) {
        expect(error, `step ${step}`).toBeInstanceOf(
          fault.code === 'SQLITE_FULL' ? DiskFullError : StateStoreError,
        )
        expect(rows(path), `step ${step}`).toEqual(before)
      } else {
        // What is done after the commit may fail without failing the call, and a lock is waited for.
        expect(rows(path), `step ${step}`).not.toEqual(before)
      }
      expectSound(path)

      await store.sessions.ensure({ id: 's' })
      const id = await store.messages.append('s', user(`${name} went on`))
      expect(await store.messages.get(id), `step ${step}`).toMatchObject({ content: `${name} went on` })
      expect((await store.search.messages('went on')).map((hit) => hit.id)).toEqual([id])
      expect(store.info.wordIndexProblem).toBeNull()
      await store.close()
      expectSound(path)
      if (!reached) break
    }
    expect(step).toBeGreaterThan(calls)
  })
})

it('a full disk refuses what does not fit with nothing of it stored, and takes it once there is room', async () => {
  const path = newPath()
  const store = await openForTest({ path })
  await store.sessions.create({ id: 's', source: 'cli' })
  await store.messages.append('s', user('before'))
  const limit = async (pages: number) => {
    await store.db.executeQuery(CompiledQuery.raw(`pragma max_page_count = ${pages}`))
  }
  const messages = Array.from({ length: 50 }, (_, n) => user(`${n} ${'word '.repeat(1_000)}`))
  // As many pages as there are.
  await limit(1)
  const before = rows(path)
  const calls: [string, () => Promise<unknown>][] = [
    ['append', () => store.messages.append('s', user('x'.repeat(100_000)))],
    ['appendMany', () => store.messages.appendMany('s', messages)],
    ['replaceAll', () => store.messages.replaceAll('s', messages)],
    ['transaction', () => store.transaction((tx) => tx.messages.appendMany('s', messages))],
    ['together', () => Promise.all(messages.map((message) => store.messages.append('s', message)))],
  ]
  for (const [name, call] of calls) {
    const error = await call().catch((reason: unknown) => reason)
    expect(error, name).toBeInstanceOf(DiskFullError)
    expect(error, name).toMatchObject({
      code: 'DISK_FULL',
      message: `The disk of '${path}' is full: free some space and repeat the call. Nothing was written.`,
    })
    expect(await store.messages.count('s'), name).toBe(before[0]!.length)
    expect(rows(path), name).toEqual(before)
    expectSound(path)
  }

  await limit(1_000_000)
  for (const [, call] of calls) await call()
  expect(await store.messages.count('s')).toBe(150)
  expectSound(path)
})
