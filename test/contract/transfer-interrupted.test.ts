import { rmSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import { ExportInterruptedError, type ImportOptions, ReadonlyStoreError } from '../../src/index.ts'
import { expectSound, startSql } from '../support/processes.ts'
import { kinds, newPath, openForTest } from '../support/stores.ts'
import { collect, messages, session, sizes } from '../support/transfer.ts'

const memory = () => openForTest({ path: ':memory:' })

describe('an import that is given up', () => {
  test.each(kinds)(
    'writes nothing while it checks, and whole sessions afterwards ($name)',
    async ({ open }) => {
      const store = await open()
      const before = await sizes(store)
      const reason = new Error('enough')
      const records = Array.from({ length: 10 }, (_, n) => session(`s${n}`, { messages: messages(300) }))
      const abortIn = async (phase: 'checking' | 'writing') => {
        const giveUp = new AbortController()
        const aborted = store.transfer.importSessions(records, {
          signal: giveUp.signal,
          onProgress: (progress) => {
            if (progress.phase === phase && progress.sessions >= 3) giveUp.abort(reason)
          },
        })
        await expect(aborted).rejects.toBe(reason)
      }
      await expect(
        store.transfer.importSessions(records, { signal: AbortSignal.abort(reason) }),
      ).rejects.toBe(reason)
      await abortIn('checking')
      expect(await sizes(store)).toEqual(before)
      await abortIn('writing')
      const written = Object.entries(await sizes(store)).filter(([id]) => !(id in before))
      expect(written.length).toBeGreaterThanOrEqual(3)
      expect(written.length).toBeLessThan(10)
      expect(new Set(written.map(([, count]) => count))).toEqual(new Set([300]))
      const steps: object[] = []
      const again = await store.transfer.importSessions(records, { onProgress: (step) => steps.push(step) })
      expect(again.imported).toBe(10 - written.length)
      expect(steps.at(-1)).toEqual({
        phase: 'writing',
        sessions: 10,
        messages: 300 * (10 - written.length),
        total_sessions: 10,
        total_messages: 3000,
      })
      expect((await store.maintenance.check()).ok).toBe(true)
    },
  )

  test('by what gives its records writes nothing', async () => {
    const store = await memory()
    const reason = new Error('no more')
    async function* records() {
      yield session('s')
      throw reason
    }
    await expect(store.transfer.importSessions(records())).rejects.toBe(reason)
    expect(await sizes(store)).toEqual({})
  })
})

test('a store that only reads refuses an import', async () => {
  const path = newPath()
  await (await openForTest({ path })).close()
  const store = await openForTest({ path, readonly: true })
  await expect(store.transfer.importSessions([session('s')])).rejects.toBeInstanceOf(ReadonlyStoreError)
})

test.each([
  [{ ids: 'other' }, "ids must be 'skip' or 'new'."],
  [{ titles: 'other' }, "titles must be 'number' or 'drop'."],
])('%j is refused', async (options, message) => {
  const store = await memory()
  await expect(store.transfer.importSessions([], options as ImportOptions)).rejects.toThrow(message)
})

describe('an export', () => {
  async function filled() {
    const path = newPath()
    const store = await openForTest({ path })
    await store.transfer.importSessions(
      Array.from({ length: 60 }, (_, n) => session(`s${n}`, { messages: messages(20) })),
    )
    return { path, store }
  }

  test('that loses the write-ahead log says so, and the store goes on', async () => {
    const { path, store } = await filled()
    const records = store.transfer.exportAll()
    await records.next()
    await records.next()
    for (const suffix of ['-wal', '-shm']) rmSync(path + suffix)
    await store.messages.append('s0', { role: 'user', content: 'after' })
    await expect(collect(records)).rejects.toBeInstanceOf(ExportInterruptedError)
    await store.messages.append('s0', { role: 'user', content: 'later' })
    expect(await store.messages.count('s0')).toBe(22)
    expect(await collect(store.transfer.exportAll())).toHaveLength(62)
    await store.close()
    expectSound(path)
  })

  test('keeps the log, and lets it go when the loop is left', async () => {
    const { store } = await filled()
    await store.maintenance.checkpoint()
    for await (const record of store.transfer.exportAll()) {
      if (record.type === 'header') continue
      await store.messages.append('s0', { role: 'user', content: 'meanwhile' })
      break
    }
    expect(await store.maintenance.checkpoint()).toMatchObject({ busy: false, walBytes: 0 })
  })

  test('is of one moment, whatever another process writes', async () => {
    const { path, store } = await filled()
    const other = await startSql(path)
    const seen: number[] = []
    for await (const record of store.transfer.exportAll()) {
      if (record.type !== 'session') continue
      seen.push(record.messages.length)
      await other.ask(
        `insert into messages (session_id, role, timestamp) select id, 'user', 1 from sessions where id > '${record.id}'`,
      )
      await other.ask(`delete from messages where session_id = 's59' and id % 2 = ${seen.length % 2}`)
    }
    expect(seen).toEqual(Array.from({ length: 60 }, () => 20))
    await other.kill()
  })
})
