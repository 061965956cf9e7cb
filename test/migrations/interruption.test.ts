import { copyFileSync } from 'node:fs'
import { join } from 'node:path'
import Database from 'better-sqlite3'
import { describe, expect, onTestFinished, test, vi } from 'vitest'
import { Connection } from '../../src/database/connection.ts'
import { DiskFullError, openStateStore, StateStoreError } from '../../src/index.ts'
import { writeVeryFlawed } from '../support/flawed-files.ts'
import { hermesRows, writeHermesFile } from '../support/hermes-file.ts'
import { expectComplete, found, storage, storedRows } from '../support/mended-files.ts'
import { sql, start } from '../support/processes.ts'
import { newFolder, newPath, openForTest } from '../support/stores.ts'

const FILES: [name: string, rows: number, write: (path: string) => void][] = [
  ['a file of schema 1', 1, (path) => writeHermesFile(path, 1)],
  ['a file with every flaw at once', 3, writeVeryFlawed],
]

/** Makes one of the statements fail that opening writes with: the given one, counted from 1. */
function failAt(step: number, code: string): { reached(): boolean; stop(): void } {
  const { exec, execute } = Connection.prototype
  let steps = 0
  const count = ({ path, inTransaction }: Connection) => {
    if (path !== ':memory:' && inTransaction && ++steps === step)
      throw new Database.SqliteError('this is where it fails', code)
  }
  const spies = [
    vi.spyOn(Connection.prototype, 'exec').mockImplementation(function (this: Connection, text) {
      count(this)
      return exec.call(this, text)
    }),
    vi.spyOn(Connection.prototype, 'execute').mockImplementation(function (this: Connection, query) {
      if (!this.onlyReads(query.sql)) count(this)
      return execute.call(this, query) as never
    }),
  ]
  const stop = () => {
    for (const spy of spies) spy.mockRestore()
  }
  onTestFinished(stop)
  return { reached: () => steps >= step, stop }
}

/** Opens a copy of the file, as the next process would open the file itself. */
async function expectCopyOpens(path: string, rows: number): Promise<void> {
  const copy = `${path}-copy`
  copyFileSync(path, copy)
  const store = await openForTest({ path: copy })
  expect(await storedRows(store)).toEqual(hermesRows(rows))
  expect(await found(store, 'walrus')).toEqual([1, 3])
  await store.close()
  await expectComplete(copy)
}

describe.each(FILES)('%s', (_, rows, write) => {
  test.each([
    ['SQLITE_FULL', DiskFullError],
    ['SQLITE_IOERR_WRITE', StateStoreError],
  ])('is as it was wherever opening it fails with %s', async (code, errorClass) => {
    const path = newPath()
    write(path)
    const before = storage(path)

    let step = 1
    for (; ; step++) {
      const failure = failAt(step, code)
      const opening = await openForTest({ path }).catch((error: unknown) => error)
      failure.stop()
      if (!failure.reached()) break
      expect(opening, `step ${step}`).toBeInstanceOf(errorClass)
      // The transaction is over when the index of scripts without spaces is filled.
      if (sql(path, "select 1 from sqlite_schema where name = 'hs_bigrams'").length === 0)
        expect(storage(path), `step ${step}`).toEqual(before)
      await expectCopyOpens(path, rows)
    }
    expect(step).toBeGreaterThan(20)
    const store = await openForTest({ path })
    expect(store.info).toMatchObject({ migrations: [], mended: [] })
    expect(await storedRows(store)).toEqual(hermesRows(rows))
  })

  test('is as it was where the commit fails', async () => {
    const path = newPath()
    write(path)
    const before = storage(path)
    const spy = vi.spyOn(Connection.prototype, 'commit').mockImplementation(() => {
      throw new Database.SqliteError('database or disk is full', 'SQLITE_FULL')
    })
    onTestFinished(() => spy.mockRestore())
    await expect(openStateStore({ path })).rejects.toThrow(DiskFullError)
    spy.mockRestore()
    expect(storage(path)).toEqual(before)
    await expectCopyOpens(path, rows)
  })

  test('is as it was wherever a process dies that opens it', async () => {
    const folder = newFolder()
    const original = join(folder, 'original.db')
    write(original)
    const before = storage(original)
    const integrity = sql(original, 'pragma integrity_check')

    const counted = join(folder, 'counted.db')
    copyFileSync(original, counted)
    const counter = await start('stops-at.mjs', counted)
    const steps = Number(await counter.ask('go', 'steps'))
    expect(steps).toBeGreaterThan(20)

    for (const step of [1, 0.3 * steps, 0.6 * steps, steps - 1, steps].map(Math.floor)) {
      const path = join(folder, `step-${step}.db`)
      copyFileSync(original, path)
      const child = await start('stops-at.mjs', path, String(step))
      child.send('go')
      expect(await child.ended).toMatchObject({ signal: 'SIGKILL' })
      expect(sql(path, 'pragma integrity_check'), `step ${step}`).toEqual(integrity)
      // The transaction is over when the index of scripts without spaces is filled.
      if (sql(path, "select 1 from sqlite_schema where name = 'hs_bigrams'").length === 0)
        expect(storage(path), `step ${step}`).toEqual(before)
      await expectCopyOpens(path, rows)
    }
  })
})
