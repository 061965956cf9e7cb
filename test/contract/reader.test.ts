import { renameSync, rmSync } from 'node:fs'
import type { Worker } from 'node:worker_threads'
import Database from 'better-sqlite3'
import { beforeEach, describe, expect, it, vi } from 'vitest'
import { openStateStore, type StateStore, StateStoreClosedError } from '../../src/index.ts'
import type { FromThread } from '../../src/reader/protocol.ts'
import { damage } from '../support/index-damage.ts'
import { until } from '../support/processes.ts'
import { eventsOf, newPath, openForTest } from '../support/stores.ts'

/** The threads that the test has started, and whether it may. */
const threads = vi.hoisted(() => ({ started: [] as Worker[], refused: false }))

vi.mock(import('../../src/reader/start.ts'), async (original) => {
  const { startWorker } = await original()
  return {
    startWorker: (data) => {
      if (threads.refused) throw new Error('no threads here')
      const worker = startWorker(data)
      threads.started.push(worker)
      return worker
    },
  }
})

let path: string
let store: StateStore

beforeEach(async () => {
  threads.started.length = 0
  threads.refused = false
  path = newPath()
  store = await openForTest({ path, worker: true })
  await store.sessions.create({ id: 's', source: 'cli' })
  await store.titles.set('s', 'Containers')
  await append('docker on the first day', '修改服务端', 'deployed')
})

async function append(...contents: string[]): Promise<void> {
  await store.messages.appendMany(
    's',
    contents.map((content) => ({ role: 'user', content })),
  )
}

/** More than one statement looks at. */
const MANY = Array.from({ length: 12_000 }, (_, n) => `message ${n}`)

describe('a search in another thread', () => {
  it('finds what a search in this one finds', async () => {
    await append(...MANY.slice(0, 1_000))
    const own = await openForTest({ path })
    for (const query of ['docker', '修改', 'deploy', 'docker nowhere', 'message', 'nowhere'])
      for (const options of [{ limit: 1_000 }, { orderBy: 'newest' }, { scan: true }] as const)
        expect(await store.search.messages(query, options)).toEqual(await own.search.messages(query, options))
    for (const query of ['docker', 'containers', 's'])
      expect(await store.search.sessions(query)).toEqual(await own.search.sessions(query))
    const page = await store.search.messages('message', { limit: 250 })
    expect(await store.search.messages('message', { limit: 5, after: page[249] })).toEqual(
      (await own.search.messages('message', { limit: 255 })).slice(250),
    )
    expect(threads.started).toHaveLength(1)
  })

  it('sees what was written before it', async () => {
    for (let n = 1; n <= 3; n++) {
      await append(`kubernetes ${n}`)
      expect(await store.search.messages('kubernetes')).toHaveLength(n)
    }
  })

  it('is in this thread inside a transaction, and sees its writes', async () => {
    await store.transaction(async (tx) => {
      await tx.messages.append('s', { role: 'user', content: 'uncommitted' })
      expect(await tx.search.messages('uncommitted')).toHaveLength(1)
    })
    expect(threads.started).toHaveLength(0)
    expect(await store.search.messages('uncommitted')).toHaveLength(1)
  })

  it('that is aborted rejects with the reason and stops', async () => {
    await append(...MANY)
    await store.search.messages('docker')
    const answers: FromThread['type'][] = []
    threads.started[0]?.on('message', ({ type }: FromThread) => answers.push(type))
    const controller = new AbortController()
    const search = store.search.messages('nowhere', { scan: true, signal: controller.signal })
    setImmediate(() => controller.abort('enough'))
    await expect(search).rejects.toBe('enough')
    await until(() => answers.length > 0)
    expect(answers).toEqual(['failed'])
    expect(await store.search.messages('docker')).toHaveLength(1)
  })

  it('rejects when the store is closed meanwhile', async () => {
    await append(...MANY)
    await store.search.messages('docker')
    const search = store.search.messages('nowhere', { scan: true })
    const rejected = expect(search).rejects.toThrow(StateStoreClosedError)
    setImmediate(() => store.close())
    await rejected
    await store.close()
    await expect(store.search.messages('docker')).rejects.toThrow(StateStoreClosedError)
  })

  it('goes on where another store of the file is closed', async () => {
    const other = await openForTest({ path, worker: true })
    const search = other.search.messages('docker')
    await store.close()
    expect(await search).toHaveLength(1)
  })

  it('finds everything where the index is damaged', async () => {
    await append(...MANY.slice(0, 100))
    await store.search.messages('docker')
    damage(path, 'messages_fts', 'zeroed segments')
    expect(await store.search.messages('message 99')).toHaveLength(1)
    expect(eventsOf(store, 'word-index-unused')).toHaveLength(1)
    expect(eventsOf(store, 'reader-failed')).toEqual([])
  })

  it('reads again after the write-ahead log was lost', async () => {
    await store.search.messages('docker')
    rmSync(`${path}-wal`)
    const search = store.search.messages('docker', { scan: true })
    await append('docker on the second day')
    expect(await search).not.toHaveLength(0)
    expect(eventsOf(store, 'log-lost')).toHaveLength(1)
    expect(await store.search.messages('docker')).toHaveLength(2)
    expect(threads.started).toHaveLength(2)
    expect(eventsOf(store, 'reader-failed')).toEqual([])
  })
})

describe('a thread that', () => {
  it('crashes is started again, and its searches with it', async () => {
    await store.search.messages('docker')
    const search = store.search.messages('deployed')
    await threads.started[0]?.terminate()
    expect(await search).toHaveLength(1)
    expect(threads.started).toHaveLength(2)
    expect(eventsOf(store, 'reader-failed')).toMatchObject([{ path, starts_again: true }])
  })

  it('cannot be started leaves searches to this one', async () => {
    threads.refused = true
    expect(await store.search.messages('docker')).toHaveLength(1)
    threads.refused = false
    expect(await store.search.sessions('docker')).toHaveLength(1)
    expect(threads.started).toHaveLength(0)
    expect(eventsOf(store, 'reader-failed')).toMatchObject([
      { path, reason: 'no threads here', starts_again: false },
    ])
  })

  it('finds another file in place of the one that is open does not read it', async () => {
    const other = newPath()
    await (await openStateStore({ path: other })).close()
    renameSync(path, `${path}.away`)
    renameSync(other, path)
    expect(await store.search.messages('docker')).toHaveLength(1)
    expect(eventsOf(store, 'reader-failed')).toMatchObject([{ starts_again: false }])
  })
})

describe('no thread is started for', () => {
  it('a store that was opened without', async () => {
    const own = await openForTest({ path, worker: false })
    expect(await own.search.messages('docker')).toHaveLength(1)
    expect(threads.started).toHaveLength(0)
  })

  it('a store in memory', async () => {
    const memory = await openForTest({ path: ':memory:', worker: true })
    await memory.sessions.create({ id: 'm', source: 'cli' })
    await memory.messages.append('m', { role: 'user', content: 'docker' })
    expect(await memory.search.messages('docker')).toHaveLength(1)
    expect(threads.started).toHaveLength(0)
  })

  it('a file in rollback-journal mode', async () => {
    await store.close()
    const db = new Database(path)
    db.pragma('journal_mode = delete')
    db.close()
    const own = await openForTest({ path, worker: true, readonly: true })
    expect(await own.search.messages('docker')).toHaveLength(1)
    expect(threads.started).toHaveLength(0)
  })
})
