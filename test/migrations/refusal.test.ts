import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import Database from 'better-sqlite3'
import { describe, expect, test } from 'vitest'
import {
  CannotOpenError,
  MigrationNeededError,
  NotAStateFileError,
  openStateStore,
  ReadonlyStoreError,
  UnsupportedSchemaError,
} from '../../src/index.ts'
import { hermesRows, VERSIONS, writeHermesFile } from '../support/hermes-file.ts'
import { newFolder, newPath, openForTest } from '../support/stores.ts'

describe.each(VERSIONS)('a file of schema %i, opened read-only', (version) => {
  test('is read with null for what it lacks, searched, and not written', async () => {
    const path = newPath()
    writeHermesFile(path, version)
    const before = readFileSync(path)
    const store = await openForTest({ path, readonly: true })

    expect(store.info).toMatchObject({
      readonly: true,
      schemaVersion: version,
      additions: false,
      migrations: [],
    })
    const { sessions, messages } = hermesRows(version)
    for (const session of sessions) {
      expect(await store.sessions.get(session.id)).toEqual(session)
      expect(await store.messages.list(session.id)).toEqual(
        messages.filter(({ session_id }) => session_id === session.id),
      )
    }
    expect((await store.search.messages('walrus')).map(({ id }) => id).sort()).toEqual([1, 3])
    await expect(store.sessions.create({ source: 'cli' })).rejects.toThrow(ReadonlyStoreError)
    await store.close()
    expect(readFileSync(path).equals(before)).toBe(true)
  })
})

describe('a file that is not ours is refused with its bytes unchanged:', () => {
  test.each<[string, new (...args: never[]) => Error, RegExp, (path: string) => void]>([
    [
      'somebody else’s database',
      NotAStateFileError,
      /table users/,
      (path) => exec(path, 'CREATE TABLE users (id INTEGER PRIMARY KEY); INSERT INTO users VALUES (1)'),
    ],
    [
      'a database with tables of the same names',
      NotAStateFileError,
      /table sessions, table messages, table schema_version/,
      (path) =>
        exec(
          path,
          `CREATE TABLE sessions (id TEXT); CREATE TABLE messages (id TEXT);
           CREATE TABLE schema_version (version INTEGER); INSERT INTO schema_version VALUES (1)`,
        ),
    ],
    [
      'a text file',
      NotAStateFileError,
      /not a SQLite database/,
      (path) => writeFileSync(path, 'Dear diary,\n'),
    ],
    [
      'additions of a later release that this one would have to fit in between',
      UnsupportedSchemaError,
      /later release/,
      (path) =>
        version6(
          path,
          `CREATE TABLE kysely_migration (name TEXT PRIMARY KEY, timestamp TEXT NOT NULL);
           INSERT INTO kysely_migration VALUES ('001_initial', '1'), ('002_finish_reason', '2'), ('003_title', '3'),
             ('004_title_unique', '4'), ('005_billing', '5'), ('006_reasoning', '6'), ('010_of_next_year', '7')`,
        ),
    ],
  ])('%s', async (_, errorClass, message, write) => {
    const path = newPath()
    write(path)
    const before = readFileSync(path)
    for (const options of [{}, { readonly: true }, { migrate: false }, { additions: false }]) {
      const error = await openStateStore({ path, ...options }).catch((error: unknown) => error)
      expect(error).toBeInstanceOf(errorClass)
      expect(error).toMatchObject({ message: expect.stringMatching(message) })
      expect(readFileSync(path).equals(before)).toBe(true)
    }
  })

  test('a foreign database in rollback mode gets no file beside it either', async () => {
    const path = newPath()
    exec(path, 'CREATE TABLE users (id INTEGER PRIMARY KEY)')
    await expect(openStateStore({ path })).rejects.toThrow(NotAStateFileError)
    expect(readdirSync(dirname(path))).toEqual(['state.db'])
  })
})

describe('migrate: false', () => {
  test.each(VERSIONS.slice(0, -1))('refuses a file of schema %i and leaves it', async (version) => {
    const path = newPath()
    writeHermesFile(path, version)
    const before = readFileSync(path)
    const opening = openStateStore({ path, migrate: false, additions: false })
    await expect(opening).rejects.toThrow(MigrationNeededError)
    await expect(opening).rejects.toThrow(/006_reasoning/)
    expect(readFileSync(path).equals(before)).toBe(true)
  })

  test('creates no file and no folder', async () => {
    const folder = join(newFolder(), 'new')
    await expect(openStateStore({ path: join(folder, 'state.db'), migrate: false })).rejects.toThrow(
      MigrationNeededError,
    )
    expect(existsSync(folder)).toBe(false)
  })

  test('refuses an empty file and leaves it empty', async () => {
    const path = newPath()
    writeFileSync(path, '')
    await expect(openStateStore({ path, migrate: false })).rejects.toThrow(MigrationNeededError)
    expect(readFileSync(path).length).toBe(0)
  })

  test('opens a file that is up to date, and one of Hermes where no additions are wanted', async () => {
    const path = newPath()
    writeHermesFile(path, 6)
    const plain = await openForTest({ path, migrate: false, additions: false })
    expect(await plain.sessions.count()).toBe(3)
    await plain.close()
    await expect(openStateStore({ path, migrate: false })).rejects.toThrow(/007_structured_content/)
    await (await openForTest({ path })).close()
    expect((await openForTest({ path, migrate: false })).info.additions).toBe(true)
  })
})

describe('a path that cannot be opened is refused with CannotOpenError:', () => {
  test('a folder', async () => {
    await expect(openStateStore({ path: newFolder() })).rejects.toThrow(CannotOpenError)
  })

  test('a path through a file', async () => {
    const path = newPath()
    writeFileSync(path, 'Dear diary,\n')
    await expect(openStateStore({ path: join(path, 'state.db') })).rejects.toThrow(CannotOpenError)
  })

  test('a missing or empty file, read-only', async () => {
    const path = newPath()
    await expect(openStateStore({ path, readonly: true })).rejects.toThrow(CannotOpenError)
    expect(existsSync(path)).toBe(false)
    writeFileSync(path, '')
    await expect(openStateStore({ path, readonly: true })).rejects.toThrow(CannotOpenError)
    expect(readFileSync(path).length).toBe(0)
  })
})

function version6(path: string, sql: string): void {
  writeHermesFile(path, 6)
  exec(path, sql)
}

function exec(path: string, sql: string): void {
  mkdirSync(dirname(path), { recursive: true })
  const db = new Database(path)
  db.exec(sql)
  db.close()
}
