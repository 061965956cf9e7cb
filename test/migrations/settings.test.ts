import { execFile } from 'node:child_process'
import { chmodSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { sql } from 'kysely'
import { describe, expect, test } from 'vitest'
import type { StateStore } from '../../src/index.ts'
import { writeHermesFile } from '../support/hermes-file.ts'
import { eventsOf, newFolder, newPath, openForTest } from '../support/stores.ts'

const child = join(import.meta.dirname, '../support/umask-process.mjs')

describe.skipIf(process.platform === 'win32')('who can read a file', () => {
  test('only its owner, whatever the umask is', async () => {
    const path = join(newFolder(), 'deep', 'er', 'state.db')
    const { stdout } = await promisify(execFile)(process.execPath, [child, path])
    expect(JSON.parse(stdout)).toEqual({
      folder: '700',
      files: { 'state.db': '600', 'state.db-shm': '600', 'state.db-wal': '600' },
    })
  })

  test('is reported where others can, and left as it is', async () => {
    const path = newPath()
    writeHermesFile(path, 6)
    chmodSync(path, 0o644)
    for (const readonly of [false, true]) {
      const store = await openForTest({ path, readonly })
      expect(eventsOf(store, 'file-readable-by-others')).toMatchObject([
        { level: 'warning', path, mode: 0o644 },
      ])
      await store.close()
    }
    chmodSync(path, 0o600)
    expect(eventsOf(await openForTest({ path }), 'file-readable-by-others')).toEqual([])
  })
})

describe('settings of a connection', () => {
  test.each([
    { options: {}, synchronous: 2 },
    { options: { synchronous: 'full' }, synchronous: 2 },
    { options: { synchronous: 'normal' }, synchronous: 1 },
  ] as const)('$options: synchronous is $synchronous', async ({ options, synchronous }) => {
    const store = await openForTest({ path: newPath(), ...options })
    expect(await pragma(store, 'synchronous')).toBe(synchronous)
  })

  test('write-ahead log, foreign keys, no functions called by the schema of a file', async () => {
    const store = await openForTest({ path: newPath() })
    expect(store.info.journalMode).toBe('wal')
    expect(await pragma(store, 'journal_mode')).toBe('wal')
    expect(await pragma(store, 'foreign_keys')).toBe(1)
    expect(await pragma(store, 'trusted_schema')).toBe(0)
    expect(await pragma(store, 'journal_size_limit')).toBe(64 * 1024 * 1024)
  })

  test(':memory: says so, and each is a store of its own', async () => {
    const one = await openForTest({ path: ':memory:' })
    const other = await openForTest({ path: ':memory:' })
    expect(one.info).toMatchObject({
      path: ':memory:',
      journalMode: 'memory',
      schemaVersion: 6,
      additions: true,
    })
    await one.sessions.create({ source: 'cli' })
    expect([await one.sessions.count(), await other.sessions.count()]).toEqual([1, 0])
    expect(eventsOf(one, 'journal-mode')).toEqual([])
  })
})

async function pragma(store: StateStore, name: string): Promise<unknown> {
  const { rows } = await sql<Record<string, unknown>>`pragma ${sql.raw(name)}`.execute(store.db)
  return rows[0]?.[name]
}
