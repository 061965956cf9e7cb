import { existsSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import Database from 'better-sqlite3'
import { describe, expect, it } from 'vitest'
import { NotAStateFileError, openStateStore, StateStoreBusyError } from '../../src/index.ts'
import { expectSound, sql, start, startSql, until } from '../support/processes.ts'
import { newFolder, newPath, openForTest } from '../support/stores.ts'

/** Makes a database without any table of ours. */
function writeEmpty(path: string, journalMode: 'wal' | 'delete'): void {
  const db = new Database(path)
  db.pragma(`journal_mode = ${journalMode}`)
  // Makes a first page, and nothing that is to be seen.
  db.pragma('user_version = 1')
  db.close()
}

async function writeStore(path: string, journalMode: 'wal' | 'delete'): Promise<void> {
  const store = await openStateStore({ path })
  await store.sessions.create({ id: 's', source: 'cli' })
  await store.close()
  const db = new Database(path)
  db.pragma(`journal_mode = ${journalMode}`)
  db.close()
}

describe('opening while another process holds the write lock', () => {
  it('succeeds at once on a file that lacks nothing', async () => {
    const path = newPath()
    await writeStore(path, 'wal')
    const other = await startSql(path)
    await other.ask('begin immediate')
    const store = await openForTest({ path })
    expect(store.info).toMatchObject({ journalMode: 'wal', migrations: [] })
    expect(await store.sessions.exists('s')).toBe(true)
    // A second opening changes nothing either, with a reader in the way.
    const reader = await startSql(path)
    await reader.ask('begin')
    await reader.ask('select * from sessions')
    const second = await openForTest({ path })
    expect(second.info).toMatchObject({ journalMode: 'wal', migrations: [] })
  })

  const waiting: [string, (path: string) => void | Promise<void>][] = [
    ['a WAL file without our tables', (path) => writeEmpty(path, 'wal')],
    ['a rollback-journal file without our tables', (path) => writeEmpty(path, 'delete')],
    ['a rollback-journal file with our tables', (path) => writeStore(path, 'delete')],
  ]

  it.each(waiting)('waits and succeeds on %s', async (_, write) => {
    const path = newPath()
    await write(path)
    const other = await startSql(path)
    await other.ask('begin immediate')
    let turns = 0
    const timer = setInterval(() => turns++, 5)
    let opened = false
    const opening = openForTest({ path }).then((store) => {
      opened = true
      return store
    })
    await until(() => turns >= 30)
    clearInterval(timer)
    expect(opened).toBe(false)
    await other.ask('commit')
    const store = await opening
    expect(store.info).toMatchObject({ journalMode: 'wal', schemaVersion: 6, additions: true })
    await store.sessions.create({ id: 'new', source: 'cli' })
    expectSound(path)
  })

  it.each(waiting)('gives up on %s when busyTimeout is spent', async (_, write) => {
    const path = newPath()
    await write(path)
    const before = readFileSync(path)
    const other = await startSql(path)
    await other.ask('begin immediate')
    const error = await openStateStore({ path, busyTimeout: 300 }).catch((reason) => reason)
    expect(error).toBeInstanceOf(StateStoreBusyError)
    expect(error.waited_ms).toBeGreaterThanOrEqual(300)
    await other.ask('rollback')
    await other.kill()
    expect(readFileSync(path).equals(before)).toBe(true)
    expect((await openForTest({ path })).info.schemaVersion).toBe(6)
  })

  it('waits for a writer in the middle of its commit, and for a reader where the journal mode changes', async () => {
    const path = newPath()
    await writeStore(path, 'delete')
    const other = await startSql(path)
    for (const held of ['begin exclusive', 'begin']) {
      await other.ask(held)
      await other.ask('select * from sessions')
      const error = await openStateStore({ path, busyTimeout: 100 }).catch((reason) => reason)
      expect(error).toBeInstanceOf(StateStoreBusyError)
      await other.ask('rollback')
    }
    expect((await openForTest({ path })).info.journalMode).toBe('wal')
  })

  it('can be called off', async () => {
    const path = newPath()
    writeEmpty(path, 'wal')
    const other = await startSql(path)
    await other.ask('begin immediate')
    const controller = new AbortController()
    const opening = openStateStore({ path, signal: controller.signal })
    controller.abort(new Error('called off'))
    await expect(opening).rejects.toThrow()
  })
})

it('one process creates the file in 5 stores at once', async () => {
  const path = newPath()
  const stores = await Promise.all(Array.from({ length: 5 }, () => openForTest({ path })))
  expect(stores.filter(({ info }) => info.migrations.length > 0)).toHaveLength(1)
  expect(sql(path, 'select version from schema_version')).toEqual([{ version: 6 }])
  expectSound(path)
})

it('a new file and what SQLite puts beside it are private, whatever the umask', async () => {
  const path = join(newFolder(), 'new', 'state.db')
  const child = await start('modes.mjs', path)
  await child.ask('go', 'opened')
  const modes = [dirname(path), path, `${path}-wal`, `${path}-shm`].map((name) => statSync(name).mode & 0o777)
  expect(modes).toEqual([0o700, 0o600, 0o600, 0o600])
})

describe.skipIf(!existsSync('/proc/self/fd'))(
  'openings that fail (needs /proc: skipped where it is missing)',
  () => {
    const descriptors = () => readdirSync('/proc/self/fd').length

    it.each<[string, (path: string) => void]>([
      ['a text file', (path) => writeFileSync(path, 'Not a database.\n'.repeat(100))],
      [
        "somebody else's database",
        (path) => {
          const db = new Database(path)
          db.exec('create table notes (text)')
          db.close()
        },
      ],
    ])('leave no descriptor open: %s', async (_, write) => {
      const path = newPath()
      write(path)
      const before = readFileSync(path)
      await expect(openStateStore({ path })).rejects.toThrow(NotAStateFileError)
      const first = descriptors()
      for (let n = 0; n < 200; n++) await openStateStore({ path }).catch(() => {})
      // A few belong to the test runner and come and go.
      expect(Math.abs(descriptors() - first)).toBeLessThan(10)
      expect(readFileSync(path).equals(before)).toBe(true)
      expect(readdirSync(dirname(path))).toEqual(['state.db'])
    })

    it('leave no descriptor open: locked for too long', async () => {
      const path = newPath()
      writeEmpty(path, 'wal')
      const other = await startSql(path)
      await other.ask('begin immediate')
      await openStateStore({ path, busyTimeout: 0 }).catch(() => {})
      const first = descriptors()
      for (let n = 0; n < 50; n++)
        await expect(openStateStore({ path, busyTimeout: 0 })).rejects.toThrow(StateStoreBusyError)
      expect(Math.abs(descriptors() - first)).toBeLessThan(10)
    })
  },
)
