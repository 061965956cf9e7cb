import { copyFileSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import Database from 'better-sqlite3'
import { afterAll, expect, onTestFinished } from 'vitest'
import { openStateStore } from '../../src/index.ts'
import { change, unheard } from './flawed-files.ts'
import { hermesRows, writeHermesFile } from './hermes-file.ts'
import { expectComplete, found, storedRows } from './mended-files.ts'
import { newPath, openForTest } from './stores.ts'

/** More messages than one transaction indexes. */
export const MANY = 21_000

/** The id of the last message: `narwhal 21000`. Ids 1 to 5 are those of every Hermes file. */
export const LAST_ID = MANY + 5

const ADD_MANY = `
  INSERT INTO sessions (id, source, started_at, message_count) VALUES ('many', 'cli', 4000.0, ${MANY});
  WITH RECURSIVE n(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n WHERE n < ${MANY})
  INSERT INTO messages (session_id, role, content, timestamp)
  SELECT 'many', 'user', 'narwhal ' || n, 4000 + n FROM n;`

const kinds = {
  'with its word index': ADD_MANY,
  'without its word index': `${ADD_MANY} DROP TABLE messages_fts`,
  'with a word index of its first messages': unheard(ADD_MANY),
}

export type LargeKind = keyof typeof kinds

const made = new Map<LargeKind, string>()
let folder: string | undefined

afterAll(() => {
  if (folder) rmSync(folder, { recursive: true, force: true })
})

/** A large file of schema 6 that nothing but Hermes has opened, for the running test. */
export function largeFile(kind: LargeKind): string {
  folder ??= mkdtempSync(join(tmpdir(), 'hermes-state-test-'))
  let original = made.get(kind)
  if (original === undefined) {
    original = join(folder, `${made.size}.db`)
    writeHermesFile(original, 6)
    change(original, kinds[kind])
    made.set(kind, original)
  }
  const path = newPath()
  copyFileSync(original, path)
  return path
}

/** A connection of somebody else that never waits, and up to which id the new index has come, as it sees it. */
export function somebody(path: string): { db: Database.Database; place: () => number | undefined } {
  const db = new Database(path, { timeout: 0 })
  onTestFinished(() => {
    db.close()
  })
  const place = () => {
    try {
      return db.prepare('SELECT done FROM hs_words_progress').pluck().get() as number
    } catch (error) {
      if (/no such table/.test(String(error))) return undefined
      throw error
    }
  }
  return { db, place }
}

/** Calls `body` again and again until `work` is settled. */
export async function meanwhile<T>(work: Promise<T>, body: () => void): Promise<T> {
  const failures: unknown[] = []
  const timer = setInterval(() => {
    try {
      body()
    } catch (error) {
      failures.push(error)
    }
  }, 2)
  const [outcome] = await Promise.allSettled([work])
  clearInterval(timer)
  expect(failures).toEqual([])
  if (outcome.status === 'rejected') throw outcome.reason
  return outcome.value
}

/** Runs `write` in a transaction, unless somebody else has the lock. Returns whether it did. */
export function whileFree(db: Database.Database, write: () => void): boolean {
  try {
    db.transaction(write).immediate()
    return true
  } catch (error) {
    if (!(error instanceof Database.SqliteError && error.code.startsWith('SQLITE_BUSY'))) throw error
    return false
  }
}

/** Opens a large file and gives up in the middle of its word index. */
export async function abandon(path: string): Promise<void> {
  const { place } = somebody(path)
  const controller = new AbortController()
  const opening = openStateStore({ path, signal: controller.signal, onEvent() {} }).catch((error) => error)
  const outcome = await meanwhile(opening, () => {
    if ((place() ?? 0) > 5_000) controller.abort()
  })
  expect(outcome).toMatchObject({ name: 'AbortError' })
  expect(place()).toBeGreaterThan(5_000)
  expect(place()).toBeLessThan(20_000)
}

/** Expects that nothing is left to do in a large file, and nothing left over from its doing. */
export async function expectFinished(path: string): Promise<void> {
  const store = await openForTest({ path })
  expect(store.info).toMatchObject({ wordIndexProblem: null, migrations: [], mended: [] })
  expect(await storedRows(store)).toEqual(hermesRows(6))
  expect(await found(store, 'walrus')).toEqual([1, 3])
  expect(await found(store, `narwhal ${MANY}`)).toEqual([LAST_ID])
  await store.close()
  await expectComplete(path)
}
