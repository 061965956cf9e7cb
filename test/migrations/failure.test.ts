import { existsSync, readdirSync } from 'node:fs'
import { dirname } from 'node:path'
import Database from 'better-sqlite3'
import type { Migration } from 'kysely'
import { describe, expect, onTestFinished, test } from 'vitest'
import { MIGRATIONS } from '../../src/database/reference.ts'
import { MigrationFailedError, openStateStore } from '../../src/index.ts'
import { dump, hermesRows, writeHermesFile } from '../support/hermes-file.ts'
import { newPath, openForTest } from '../support/stores.ts'

const NAMES = Object.keys(MIGRATIONS)

/** What somebody can have put into a file of schema 1 that lets every migration run but one. */
const obstacles: Record<string, string> = {
  ...Object.fromEntries([2, 3, 4, 5, 6].map((version) => [NAMES[version - 1], refuseVersion(version)])),
  '007_structured_content': 'CREATE TABLE hs_structured_content (note TEXT)',
  '008_message_order': 'CREATE TABLE idx_messages_session_id (note TEXT)',
  '009_session_activity': 'CREATE INDEX hs_sessions_started_order ON sessions(model)',
}

describe.each(Object.entries(obstacles))('a file in which %s fails', (name, obstacle) => {
  test('is left as it was, and opens once the reason is gone', async () => {
    const path = newPath()
    writeHermesFile(path, 1)
    run(path, obstacle)
    const before = dump(path)

    const error = await openStateStore({ path }).catch((error: unknown) => error)
    expect(error).toBeInstanceOf(MigrationFailedError)
    expect(error).toMatchObject({ code: 'MIGRATION_FAILED', message: expect.stringContaining(name) })
    expect(error).toHaveProperty('cause')
    expect(dump(path)).toEqual(before)

    run(path, obstacle.replace(/^CREATE (\w+) (\w+)[\s\S]*/, 'DROP $1 $2'))
    const store = await openForTest({ path })
    expect(store.info).toMatchObject({ schemaVersion: 6, migrations: NAMES.slice(1) })
    expect(await store.sessions.get('alpha')).toEqual(hermesRows(1).sessions[0])
  })
})

describe.each(NAMES)('%s failing after all its work', (name) => {
  test('leaves a new file empty', async () => {
    const path = newPath()
    breakAfter(name)
    await expect(openStateStore({ path })).rejects.toThrow(
      `Migrating '${path}' failed in ${name}: after all its work.`,
    )
    expect(readdirSync(dirname(path))).toEqual(['state.db'])
    expect(dump(path)).toEqual({ schema: [], rows: {} })
  })
})

test('the file can be written by others after a failure: no lock and no transaction stays', async () => {
  const path = newPath()
  writeHermesFile(path, 1)
  run(path, obstacles['009_session_activity']!)
  await expect(openStateStore({ path })).rejects.toThrow(MigrationFailedError)
  run(path, "INSERT INTO sessions (id, source, started_at) VALUES ('later', 'cli', 1.0)")
  expect(existsSync(`${path}-wal`)).toBe(false)
})

function refuseVersion(version: number): string {
  return `CREATE TRIGGER refusal BEFORE UPDATE ON schema_version WHEN new.version = ${version} BEGIN
    SELECT RAISE(ABORT, 'refused by a trigger');
  END`
}

function breakAfter(name: string): void {
  const migrations = MIGRATIONS as Record<string, Migration>
  const original = migrations[name]!
  onTestFinished(() => {
    migrations[name] = original
  })
  migrations[name] = {
    up: async (db) => {
      await original.up(db)
      throw new Error('after all its work')
    },
  }
}

function run(path: string, sql: string): void {
  const db = new Database(path)
  db.exec(sql)
  db.close()
}
