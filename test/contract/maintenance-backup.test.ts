import { existsSync, readdirSync, renameSync, statSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { setImmediate as nextTick } from 'node:timers/promises'
import Database from 'better-sqlite3'
import { describe, expect, test } from 'vitest'
import {
  CannotOpenError,
  DamagedFileError,
  FileReplacedError,
  type StateStore,
  StateStoreClosedError,
  TargetExistsError,
  TransactionMisuseError,
} from '../../src/index.ts'
import { ALL_DAMAGES, damage, overwriteRoot, query } from '../support/index-damage.ts'
import { NEWER, newerFile } from '../support/newer-file.ts'
import { gate } from '../support/processes.ts'
import { kinds, newFolder, newPath, openForTest } from '../support/stores.ts'

async function fill(store: StateStore, count = 40): Promise<void> {
  await store.sessions.create({ id: 's', source: 'cli' })
  for (let n = 0; n < count; n++)
    await store.messages.append('s', { role: 'user', content: `walrus ${n} 海象在这里` })
}

const copyPath = () => join(newFolder(), 'copy.db')
const filesBeside = (path: string) => readdirSync(dirname(path))

describe.each(kinds)('a backup of $name', ({ open, existing, additions }) => {
  test('is one file for its owner alone, and holds what the store holds', async () => {
    const store = await open()
    await fill(store)
    const path = copyPath()
    const steps: { copied: number; total: number }[] = []
    const result = await store.maintenance.backup(path, { onProgress: (step) => steps.push(step) })
    expect(result).toEqual({
      path,
      bytes: statSync(path).size,
      messages: existing.messages + 40,
      sessions: existing.sessions + 1,
    })
    expect(filesBeside(path)).toEqual(['copy.db'])
    if (process.platform !== 'win32') expect(statSync(path).mode & 0o777).toBe(0o600)
    expect(steps[0]?.total).toBe(result.bytes)

    const copy = await openForTest({ path, additions })
    expect(copy.info).toMatchObject({ migrations: [], mended: [], additions, wordIndexProblem: null })
    expect(await copy.messages.conversation('s')).toEqual(await store.messages.conversation('s'))
    for (const query of ['walrus 7', '海象'])
      expect(await copy.search.messages(query)).toEqual(await store.search.messages(query))
    // Neither knows of the other.
    await store.messages.append('s', { role: 'user', content: 'later' })
    expect(await copy.messages.count('s')).toBe(40)
  })
})

test('a store that only reads is backed up, also where there is no write-ahead log', async () => {
  const path = newPath()
  const writer = await openForTest({ path })
  await fill(writer)
  await writer.close()
  const reader = await openForTest({ path, readonly: true })
  expect(await reader.maintenance.backup(copyPath())).toMatchObject({ messages: 40, sessions: 1 })
  await reader.close()
  const plain = new Database(path)
  plain.pragma('journal_mode = delete')
  plain.close()
  const again = await openForTest({ path, readonly: true })
  expect(again.info.journalMode).toBe('delete')
  expect(await again.maintenance.backup(copyPath())).toMatchObject({ messages: 40, sessions: 1 })
  expect(filesBeside(path)).toEqual(['state.db'])
})

test.each(NEWER)('a file of schema %i is backed up as it is', async (schema) => {
  const store = await openForTest({ path: newerFile(schema) })
  const path = copyPath()
  const { messages } = await store.maintenance.backup(path)
  expect(messages).toBe(query<number>(store.info.path, 'select count(*) from messages')[0])
  expect((await openForTest({ path })).info).toMatchObject({ schemaVersion: store.info.schemaVersion })
})

test('what is written meanwhile, by this store and by others, neither tears nor delays a copy', async () => {
  const store = await openForTest({ path: newPath(), synchronous: 'normal' })
  await fill(store)
  await store.messages.appendMany(
    's',
    Array.from({ length: 300 }, () => ({ role: 'user', content: 'x'.repeat(50_000) })),
  )
  const acknowledged = await store.messages.count()
  const other = new Database(store.info.path)
  const insert = other.prepare(
    "insert into messages (session_id, role, content, timestamp) values ('s', 'user', 'other', 1)",
  )
  let steps = 0
  const ours: Promise<number>[] = []
  const path = copyPath()
  const { messages } = await store.maintenance.backup(path, {
    onProgress: () => {
      steps++
      insert.run()
      ours.push(store.messages.append('s', { role: 'user', content: 'ours' }))
    },
  })
  other.close()
  await Promise.all(ours)
  expect(steps).toBeGreaterThan(3)
  expect(ours.length + steps).toBe((await store.messages.count()) - acknowledged)
  expect(messages).toBe(acknowledged)
  expect(await (await openForTest({ path })).messages.count()).toBe(acknowledged)
})

test('appends of the same tick that were not awaited may be left out, acknowledged ones are not', async () => {
  const store = await openForTest({ path: newPath() })
  await fill(store, 3)
  const append = store.messages.append('s', { role: 'user', content: 'under way' })
  const { messages } = await store.maintenance.backup(copyPath())
  await append
  expect([3, 4]).toContain(messages)
  expect(await store.maintenance.backup(copyPath())).toMatchObject({ messages: 4 })
})

describe('nothing is written', () => {
  test.each(['', '-wal', '-shm', '-journal'])('over or beside a target%s that is there', async (end) => {
    const store = await openForTest({ path: newPath() })
    const path = copyPath()
    writeFileSync(path + end, 'precious')
    const failure = await store.maintenance.backup(path).catch((error) => error)
    expect(failure).toBeInstanceOf(TargetExistsError)
    expect(failure).toMatchObject({ code: 'TARGET_EXISTS', path: path + end })
    expect(filesBeside(path)).toEqual([`copy.db${end}`])
    await expect(store.maintenance.backup(store.info.path)).rejects.toBeInstanceOf(TargetExistsError)
  })

  test('over a target that appears meanwhile', async () => {
    const store = await openForTest({ path: newPath() })
    const path = copyPath()
    const backup = store.maintenance.backup(path, { onProgress: () => writeFileSync(path, 'precious') })
    await expect(backup).rejects.toBeInstanceOf(TargetExistsError)
    expect(filesBeside(path)).toEqual(['copy.db'])
    expect(statSync(path).size).toBe('precious'.length)
  })

  test('for bad arguments, in a folder that is not there, or from inside a transaction', async () => {
    const store = await openForTest({ path: newPath() })
    for (const path of ['', ':memory:', 'a\0b', undefined, 7])
      await expect(store.maintenance.backup(path as string)).rejects.toBeInstanceOf(TypeError)
    const nowhere = join(newFolder(), 'missing', 'copy.db')
    await expect(store.maintenance.backup(nowhere)).rejects.toBeInstanceOf(CannotOpenError)
    await store.transaction(async () => {
      await expect(store.maintenance.backup(copyPath())).rejects.toBeInstanceOf(TransactionMisuseError)
    })
    await store.close()
    await expect(store.maintenance.backup(copyPath())).rejects.toBeInstanceOf(StateStoreClosedError)
  })

  test('when it is given up, before it begins and at any step', async () => {
    const store = await openForTest({ path: newPath() })
    await fill(store)
    const path = copyPath()
    const reason = new Error('enough')
    const signal = AbortSignal.abort(reason)
    await expect(store.maintenance.backup(path, { signal })).rejects.toBe(reason)
    const giveUp = new AbortController()
    const backup = store.maintenance.backup(path, {
      signal: giveUp.signal,
      onProgress: () => giveUp.abort(reason),
    })
    await expect(backup).rejects.toBe(reason)
    const failing = store.maintenance.backup(path, {
      onProgress: () => {
        throw reason
      },
    })
    await expect(failing).rejects.toBe(reason)
    expect(filesBeside(path)).toEqual([])
    expect(await store.maintenance.backup(path)).toMatchObject({ messages: 40 })
  })

  test('of a file that is damaged', async () => {
    const path = newPath()
    const writer = await openForTest({ path })
    await fill(writer)
    await writer.close()
    overwriteRoot(path, 'idx_sessions_parent')
    const store = await openForTest({ path })
    const target = copyPath()
    await expect(store.maintenance.backup(target)).rejects.toBeInstanceOf(DamagedFileError)
    expect(filesBeside(target)).toEqual([])
  })

  test('of another file that has taken the place of the one that is open', async () => {
    const path = newPath()
    const store = await openForTest({ path })
    await fill(store)
    const other = join(newFolder(), 'other.db')
    await store.maintenance.backup(other)
    renameSync(path, `${path}.away`)
    renameSync(other, path)
    const target = copyPath()
    await expect(store.maintenance.backup(target)).rejects.toBeInstanceOf(FileReplacedError)
    expect(existsSync(target)).toBe(false)
  })
})

test.each(ALL_DAMAGES)('an index with %s is no reason against a backup', async (kind) => {
  const store = await openForTest({ path: newPath() })
  await fill(store)
  damage(store.info.path, 'messages_fts', kind)
  expect(await store.maintenance.backup(copyPath())).toMatchObject({ messages: 40 })
})

test('a transaction that is open is not in a copy', async () => {
  const store = await openForTest({ path: newPath() })
  await fill(store, 3)
  const { opened, open } = gate()
  const transaction = store.transaction(async (tx) => {
    await tx.messages.append('s', { role: 'user', content: 'not yet' })
    open()
    await nextTick()
    throw new Error('undo')
  })
  await opened
  const backup = store.maintenance.backup(copyPath())
  await expect(transaction).rejects.toThrow('undo')
  expect(await backup).toMatchObject({ messages: 3 })
})
