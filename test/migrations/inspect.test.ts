import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  truncateSync,
  writeFileSync,
} from 'node:fs'
import { dirname, join } from 'node:path'
import Database from 'better-sqlite3'
import { sql } from 'kysely'
import { beforeEach, describe, expect, test } from 'vitest'
import { MIGRATIONS } from '../../src/database/reference.ts'
import {
  CannotOpenError,
  DamagedFileError,
  inspectStateFile,
  NotAStateFileError,
  openStateStore,
  ReadonlyStoreError,
  type StateFileReport,
  type WordIndex,
} from '../../src/index.ts'
import { hermesStep, VERSIONS, writeHermesFile } from '../support/hermes-file.ts'
import { type Child, expectSound, gate, pythonSqlite, start, startSql } from '../support/processes.ts'
import { eventsOf, newFolder, newPath, openForTest } from '../support/stores.ts'

const NAMES = Object.keys(MIGRATIONS)

type Input = [name: string, write: (path: string) => void, found: RegExp]

const foreign: Input[] = [
  [
    'other tables',
    (path) => exec(path, 'CREATE TABLE users (id INTEGER PRIMARY KEY); CREATE TABLE notes (text)'),
    /table users, table notes/,
  ],
  [
    'tables named like ours, of another kind',
    (path) => exec(path, 'CREATE TABLE sessions (sid, data); CREATE TABLE messages (id, body)'),
    /table sessions, table messages/,
  ],
  ['only a view', (path) => exec(path, 'CREATE VIEW answers AS SELECT 42 AS answer'), /view answers/],
  [
    'only a version number',
    (path) =>
      exec(
        path,
        'CREATE TABLE schema_version (version INTEGER NOT NULL); INSERT INTO schema_version VALUES (6)',
      ),
    /table schema_version/,
  ],
  [
    'many tables',
    (path) => exec(path, [...'abcdef'].map((name) => `CREATE TABLE ${name} (x)`).join(';')),
    /table a, table b, table c, table d and 2 more/,
  ],
]

const noDatabase: Input[] = [
  ['text', (path) => writeFileSync(path, 'Dear diary,\n'.repeat(100)), /not a SQLite database/],
  [
    'JSON',
    (path) => writeFileSync(path, JSON.stringify({ sessions: [{ id: 's' }] })),
    /not a SQLite database/,
  ],
  ['nothing but NUL bytes', (path) => writeFileSync(path, Buffer.alloc(8192)), /not a SQLite database/],
  [
    'the right first 16 bytes before nonsense',
    (path) =>
      writeFileSync(path, Buffer.concat([Buffer.from('SQLite format 3\0'), Buffer.alloc(8176, 'nonsense')])),
    /not a SQLite database/,
  ],
]

const damaged: Input[] = [
  [
    'cut to half',
    (path) => {
      writeHermesFile(path, 6)
      truncateSync(path, readFileSync(path).length / 2)
    },
    /damaged \(database disk image is malformed\)/,
  ],
  [
    'cut within its last page',
    (path) => {
      writeHermesFile(path, 6)
      addMessages(path, 200)
      truncateSync(path, readFileSync(path).length - 3000)
    },
    /damaged/,
  ],
  [
    'with garbage where its schema is',
    (path) => {
      writeHermesFile(path, 6)
      overwrite(path, 100, Buffer.alloc(1000, 0xa5))
    },
    /damaged \(database disk image is malformed\)/,
  ],
  [
    'with a statement in its schema that is none',
    (path) => {
      writeHermesFile(path, 6)
      overwrite(path, readFileSync(path).indexOf('TABLE sessions'), Buffer.from('TABXX'))
    },
    /damaged \(malformed database schema \(sessions\)/,
  ],
]

const nothing = {
  schemaVersion: null,
  migrations: [],
  missing: [],
  extra: [],
  journalMode: null,
  walBytes: 0,
  wordIndex: null,
}

const wordIndex: WordIndex = { layout: 'external', columns: ['content'], problem: null }

describe('inspectStateFile says what a file is, and leaves it as it is:', () => {
  test('missing', async () => {
    const path = join(newFolder(), 'new', 'state.db')
    expect(await inspectStateFile(path)).toEqual({
      ...nothing,
      path,
      kind: 'missing',
      found: 'There is no file.',
      bytes: 0,
    })
    expect(existsSync(dirname(path))).toBe(false)
  })

  test('0 bytes', async () => {
    const path = newPath()
    writeFileSync(path, '')
    expect(await inspectUntouched(path)).toEqual({
      ...nothing,
      path,
      kind: 'empty',
      found: 'The file has 0 bytes.',
      bytes: 0,
    })
    expect(readdirSync(dirname(path))).toEqual(['state.db'])
  })

  test.each(['wal', 'delete'])(
    'a SQLite database without tables, in journal mode %s',
    async (journalMode) => {
      const path = newPath()
      exec(path, `PRAGMA journal_mode = ${journalMode}; PRAGMA user_version = 1`)
      expect(await inspectUntouched(path)).toEqual({
        ...nothing,
        path,
        kind: 'empty',
        found: 'It is a SQLite database without tables.',
        journalMode,
        bytes: 4096,
      })
    },
  )

  test('ours', async () => {
    const path = newPath()
    await (await openForTest({ path })).close()
    expect(await inspectUntouched(path)).toEqual({
      path,
      kind: 'ours',
      found: 'It is a state file of Hermes schema 6, up to date.',
      schemaVersion: 6,
      migrations: NAMES,
      missing: [],
      extra: [],
      journalMode: 'wal',
      bytes: expect.any(Number),
      walBytes: 0,
      wordIndex: { ...wordIndex, columns: ['content', 'tool_name', 'tool_calls'] },
    })
  })

  describe.each(['wal', 'delete'])('in journal mode %s,', (journalMode) => {
    test.each(VERSIONS)('Hermes schema %i, complete', async (version) => {
      const path = newPath()
      writeHermesFile(path, version)
      exec(path, `PRAGMA journal_mode = ${journalMode}`)
      expect(await inspectUntouched(path)).toEqual({
        path,
        kind: 'hermes',
        found: `It is a state file of Hermes schema ${version}, complete.`,
        schemaVersion: version,
        migrations: NAMES.slice(0, version),
        missing: [],
        extra: [],
        journalMode,
        bytes: expect.any(Number),
        walBytes: 0,
        wordIndex,
      })
    })
  })

  test.each<
    [name: string, version: number, sql: string, missing: string[], report?: Partial<StateFileReport>]
  >([
    ['a column', 6, 'ALTER TABLE messages DROP COLUMN reasoning', ['column messages.reasoning']],
    ['an index', 1, 'DROP INDEX idx_sessions_source', ['index idx_sessions_source']],
    [
      'an index with other SQL',
      4,
      'DROP INDEX idx_sessions_title_unique; CREATE INDEX idx_sessions_title_unique ON sessions(title)',
      ['index idx_sessions_title_unique'],
    ],
    [
      'a trigger',
      5,
      'DROP TRIGGER messages_fts_update',
      ['word index'],
      { wordIndex: { ...wordIndex, problem: expect.stringContaining('trigger') } },
    ],
    [
      'the word index',
      6,
      'DROP TABLE messages_fts',
      ['word index'],
      { wordIndex: { layout: 'none', columns: [], problem: 'is missing' } },
    ],
    [
      'a message in the word index',
      6,
      "INSERT INTO messages_fts(messages_fts, rowid, content) VALUES ('delete', 1, 'Count the walrus herd')",
      ['word index'],
      { wordIndex: { ...wordIndex, problem: expect.stringContaining('message') } },
    ],
    [
      'a version: no rows',
      5,
      'DELETE FROM schema_version',
      ['schema_version ([])'],
      { schemaVersion: null, migrations: NAMES.slice(0, 5) },
    ],
    [
      'a version: text',
      6,
      "UPDATE schema_version SET version = 'six'",
      ['schema_version (["six"])'],
      { schemaVersion: null },
    ],
    [
      'a version: no table',
      6,
      'DROP TABLE schema_version',
      ['column schema_version.version', 'schema_version ([])'],
      { schemaVersion: null },
    ],
    [
      'one version: two rows',
      6,
      'INSERT INTO schema_version VALUES (4)',
      ['schema_version ([6,4])'],
      { schemaVersion: 6 },
    ],
    [
      'several things',
      6,
      `ALTER TABLE sessions DROP COLUMN cost_source; DROP INDEX idx_messages_session;
       DROP TRIGGER messages_fts_delete; INSERT INTO schema_version VALUES (6)`,
      ['column sessions.cost_source', 'index idx_messages_session', 'schema_version ([6,6])', 'word index'],
    ],
  ])('Hermes, lacking %s', async (_, version, sql, missing, expected = {}) => {
    const path = newPath()
    writeHermesFile(path, version)
    exec(path, sql)
    const report = await inspectUntouched(path)
    expect(report).toMatchObject({
      kind: 'hermes',
      found: expect.stringMatching(
        `^It is a state file of Hermes schema ${version}, complete, but for .+\\.$`,
      ),
      schemaVersion: version,
      migrations: NAMES.slice(0, version),
      extra: [],
      journalMode: 'wal',
      walBytes: 0,
      ...expected,
    })
    const parts = missing.map((part) =>
      part === 'word index' ? `word index (it ${report.wordIndex?.problem})` : part,
    )
    expect(report.missing.toSorted()).toEqual(parts.toSorted())
    for (const part of parts) expect(report.found).toContain(part)
  })

  test('ours, incomplete since', async () => {
    const path = newPath()
    await (await openForTest({ path })).close()
    exec(path, 'DROP INDEX hs_session_activity_order')
    expect(await inspectUntouched(path)).toMatchObject({
      kind: 'hermes',
      found: 'It is a state file of Hermes schema 6, complete, but for index hs_session_activity_order.',
      missing: ['index hs_session_activity_order'],
      migrations: NAMES,
    })
  })

  test('Hermes, with a table and a column that nobody knows', async () => {
    const path = newPath()
    writeHermesFile(path, 6)
    exec(path, 'CREATE TABLE notes (text); ALTER TABLE sessions ADD COLUMN mood TEXT')
    expect(await inspectUntouched(path)).toMatchObject({
      kind: 'hermes',
      found: 'It is a state file of Hermes schema 6, complete.',
      missing: [],
      extra: expect.toSatisfy((extra: string[]) => extra.toSorted().join() === 'sessions.mood,table notes'),
    })
  })

  test('Hermes, stopped half-way through a migration', async () => {
    const path = newPath()
    writeHermesFile(path, 4)
    exec(
      path,
      `ALTER TABLE sessions ADD COLUMN "cache_read_tokens" INTEGER DEFAULT 0;
       ALTER TABLE sessions ADD COLUMN "cache_write_tokens" INTEGER DEFAULT 0`,
    )
    const stopped =
      'a migration that stopped half-way (column sessions.cache_read_tokens, column sessions.cache_write_tokens)'
    expect(await inspectUntouched(path)).toMatchObject({
      kind: 'hermes',
      found: `It is a state file of Hermes schema 4, complete, but for ${stopped}.`,
      schemaVersion: 4,
      migrations: NAMES.slice(0, 4),
      missing: [stopped],
      extra: [],
    })
  })

  test.each(interrupted())('Hermes, stopped while it was made: %s', async (_, sql) => {
    const path = newPath()
    exec(path, sql)
    expect(await inspectUntouched(path)).toMatchObject({
      kind: 'hermes',
      found: expect.stringContaining('interrupted'),
      schemaVersion: null,
      migrations: [],
      extra: [],
      journalMode: 'delete',
    })
  })

  test('newer, by its number', async () => {
    const path = newPath()
    writeHermesFile(path, 6)
    exec(
      path,
      `CREATE TABLE state_meta (key TEXT PRIMARY KEY, value TEXT);
       ALTER TABLE messages ADD COLUMN reasoning_content TEXT;
       UPDATE schema_version SET version = 8`,
    )
    expect(await inspectUntouched(path)).toEqual({
      path,
      kind: 'newer',
      found: 'It has Hermes schema 8 (messages.reasoning_content, table state_meta): this release reads it.',
      schemaVersion: 8,
      migrations: [],
      missing: [],
      extra: ['messages.reasoning_content', 'table state_meta'],
      journalMode: 'wal',
      bytes: expect.any(Number),
      walBytes: 0,
      wordIndex,
    })
  })

  test('newer, without some columns of schema 6', async () => {
    const path = newPath()
    writeHermesFile(path, 6)
    exec(
      path,
      `CREATE TABLE state_meta (key TEXT PRIMARY KEY, value TEXT);
       ALTER TABLE messages DROP COLUMN reasoning;
       UPDATE schema_version SET version = 8`,
    )
    expect(await inspectUntouched(path)).toMatchObject({
      kind: 'newer',
      found:
        'It has Hermes schema 8 (table state_meta): this release reads it, but for column messages.reasoning.',
      missing: ['column messages.reasoning'],
    })
  })

  test.each([
    ['no rows', 'DELETE FROM schema_version'],
    ['text', "UPDATE schema_version SET version = 'eight'"],
    ['no table', 'DROP TABLE schema_version'],
  ])('newer, without a number that can be read: %s', async (_, sql) => {
    const path = newPath()
    writeHermesFile(path, 6)
    exec(path, `CREATE TABLE state_meta (key TEXT PRIMARY KEY, value TEXT); ${sql}`)
    expect(await inspectUntouched(path)).toMatchObject({
      kind: 'newer',
      found: expect.stringMatching(
        /^It has Hermes schema above 6 \(table state_meta\): this release reads it/,
      ),
      schemaVersion: null,
      migrations: [],
      extra: ['table state_meta'],
    })
  })

  test.each(foreign)('foreign: %s', async (_, write, found) => {
    const path = newPath()
    write(path)
    expect(await inspectUntouched(path)).toEqual({
      ...nothing,
      path,
      kind: 'foreign',
      found: expect.stringMatching(found),
      journalMode: 'delete',
      bytes: expect.any(Number),
    })
    expect(readdirSync(dirname(path))).toEqual(['state.db'])
  })

  test.each(noDatabase)('no database: %s', async (_, write, found) => {
    const path = newPath()
    write(path)
    expect(await inspectUntouched(path)).toEqual({
      ...nothing,
      path,
      kind: 'not-a-database',
      found: expect.stringMatching(found),
      bytes: expect.any(Number),
    })
    expect(readdirSync(dirname(path))).toEqual(['state.db'])
  })

  test.each(damaged)('damaged: %s', async (_, write, found) => {
    const path = newPath()
    write(path)
    expect(await inspectUntouched(path)).toEqual({
      ...nothing,
      path,
      kind: 'damaged',
      found: expect.stringMatching(found),
      bytes: expect.any(Number),
    })
  })
})

describe('inspectStateFile, with a write-ahead log,', () => {
  let path: string
  let writer: Child

  beforeEach(async () => {
    path = newPath()
    writeHermesFile(path, 5)
    writer = await startSql(path)
    for (const statement of [
      'ALTER TABLE messages ADD COLUMN reasoning TEXT',
      'ALTER TABLE messages ADD COLUMN reasoning_details TEXT',
      'ALTER TABLE messages ADD COLUMN codex_reasoning_items TEXT',
      'UPDATE schema_version SET version = 6',
    ])
      await writer.ask(statement)
  })

  const expectWithLog = async () => {
    const log = readFileSync(`${path}-wal`)
    expect(log.length).toBeGreaterThan(0)
    expect(await inspectUntouched(path)).toMatchObject({
      kind: 'hermes',
      found: 'It is a state file of Hermes schema 6, complete.',
      schemaVersion: 6,
      migrations: NAMES.slice(0, 6),
      missing: [],
      journalMode: 'wal',
      walBytes: log.length,
      wordIndex,
    })
    expect(readFileSync(`${path}-wal`).equals(log)).toBe(true)
  }

  test('sees what is only there, while its writer has the file open', async () => {
    await expectWithLog()
    await writer.ask('UPDATE schema_version SET version = 6')
  })

  test('does so while the writer is in a transaction, whose rows it does not see', async () => {
    await writer.ask('BEGIN IMMEDIATE')
    await writer.ask('UPDATE schema_version SET version = 5')
    await expectWithLog()
    await writer.ask('COMMIT')
    expect(await inspectStateFile(path)).toMatchObject({ schemaVersion: 5 })
  })

  test('does so after its writer died', async () => {
    await writer.kill()
    await expectWithLog()
  })

  test('does so where its shared memory is gone too', async () => {
    await writer.kill()
    rmSync(`${path}-shm`)
    await expectWithLog()
  })
})

test('inspectStateFile says what to do with a file that a dead process left half written', async () => {
  const path = newPath()
  const store = await openStateStore({ path })
  await store.sessions.create({ id: 's', source: 'cli' })
  await store.close()
  exec(path, 'PRAGMA journal_mode = delete')
  const writer = await start('hot-journal.mjs', path)
  await writer.ask('go', 'writing')
  await writer.kill()
  const before = readFileSync(path)
  expect(existsSync(`${path}-journal`)).toBe(true)
  await expect(inspectStateFile(path)).rejects.toThrow(ReadonlyStoreError)
  await expect(inspectStateFile(path)).rejects.toThrow(/open it once without readonly/)
  expect(readFileSync(path).equals(before)).toBe(true)
})

describe('inspectStateFile refuses', () => {
  test.each([
    ['an empty path', ''],
    ['a NUL', 'state\0.db'],
    ['a number', 42],
    ['nothing', undefined],
  ])('%s', async (_, path) => {
    await expect(inspectStateFile(path as string)).rejects.toThrow(TypeError)
  })

  test('a folder', async () => {
    const folder = newFolder()
    await expect(inspectStateFile(folder)).rejects.toThrow(CannotOpenError)
    await expect(inspectStateFile(folder)).rejects.toThrow(`'${folder}' is not a file`)
  })

  test('a path through a file', async () => {
    const path = newPath()
    writeFileSync(path, 'Dear diary,\n')
    const through = join(path, 'state.db')
    await expect(inspectStateFile(through)).rejects.toThrow(CannotOpenError)
    await expect(inspectStateFile(through)).rejects.toThrow(`'${through}' cannot be reached`)
  })
})

describe('what inspecting and reading do in a process that writes the same file', () => {
  const message = { role: 'user', content: 'in the transaction' }

  test.each([
    ['of schema 6, in WAL mode', 'ours'],
    ['of schema 8, in rollback mode', 'newer'],
  ] as const)('leaves its locks alone: a file %s', async (_, kind) => {
    const path = newPath()
    writeHermesFile(path, 6)
    if (kind === 'newer')
      exec(
        path,
        `PRAGMA journal_mode = delete; CREATE TABLE state_meta (key TEXT PRIMARY KEY, value TEXT);
         UPDATE schema_version SET version = 8`,
      )
    const store = await openForTest({ path, newerSchema: 'write' })
    // Has the file open for moments only: its own locks would keep others away.
    const visitor = await start('visitor.mjs')
    visitor.send('go')
    const visit = async () => JSON.parse(await visitor.ask(path, 'visited'))
    const python = pythonSqlite === undefined ? undefined : await start('visitor.py')
    python?.send('go')
    const expectLocked = async () => {
      expect(await visit()).toMatchObject({ outcome: 'SQLITE_BUSY', messages: { length: 5 } })
      // Before 3.51, SQLite takes the log away when it closes a file that no lock keeps.
      await python?.ask(path, 'visited')
      if (kind === 'ours') expect(existsSync(`${path}-wal`)).toBe(true)
    }

    const begun = gate()
    const end = gate()
    const transaction = store.transaction(async (tx) => {
      const id = await tx.messages.append('gamma', message)
      begun.open()
      await end.opened
      return id
    })
    await begun.opened
    await expectLocked()

    expect(await inspectStateFile(path)).toMatchObject({ kind })
    await expectLocked()

    const second = await openForTest({ path })
    await expectLocked()
    const closing = second.close()
    await expectLocked()

    end.open()
    await closing
    const id = await transaction
    expect(await store.messages.list('gamma')).toMatchObject([{ id, ...message }])
    const { outcome, messages } = await visit()
    expect(outcome).toBe('writes')
    expect(messages.at(-1)).toEqual({ id, content: message.content })
  })

  test('cannot do otherwise: no source reads a file of the store but through SQLite', () => {
    const folder = join(import.meta.dirname, '../../src')
    const sources = readdirSync(folder, { recursive: true, encoding: 'utf8' })
      .filter((name) => name.endsWith('.ts'))
      .map((name) => ({ name: name.replaceAll('\\', '/'), text: readFileSync(join(folder, name), 'utf8') }))
    expect(sources.length).toBeGreaterThan(20)

    // Transfers read transcripts, once SQLite has said that they are no state file.
    const users = sources.filter(
      ({ name, text }) => /['"](node:)?fs(\/promises)?['"]/.test(text) && !name.startsWith('transfer/'),
    )
    const imported = users.flatMap(({ text }) => {
      const [, names] = text.match(/^import \{([^}]*)\} from 'node:fs(?:\/promises)?'$/m)!
      return names!.split(',').map((name) => name.trim())
    })
    const harmless = ['accessSync', 'constants', 'existsSync', 'lstatSync', 'mkdirSync', 'readlinkSync']
    harmless.push('realpathSync', 'statfs', 'statSync', 'type Stats', '')
    const others = new Set(imported.filter((name) => !harmless.includes(name)))
    // A backup is made under a name of its own: none of these is called on the file of a store. But for linkSync and
    // unlinkSync, which move one aside: they open nothing.
    expect([...others].sort()).toEqual([
      'closeSync',
      'fsyncSync',
      'linkSync',
      'openSync',
      'renameSync',
      'rmSync',
      'unlinkSync',
    ])
    const opening = users.flatMap(({ name, text }) =>
      (text.match(/openSync\(.*?\)/g) ?? []).map((call) => `${name}: ${call}`),
    )
    expect(opening.sort()).toEqual([
      "database/file-access.ts: openSync(path, 'wx', 0o600)",
      "new-file.ts: openSync(path, 'wx', 0o600)",
      'new-file.ts: openSync(path, flags)',
    ])
    for (const { name, text } of sources)
      if (!name.startsWith('transfer/'))
        expect(text, name).not.toMatch(
          /\b(readFile|readFileSync|createReadStream|copyFile|copyFileSync|cpSync)\(/,
        )
  })
})

describe('a reader', () => {
  test('leaves the shared memory and an empty log beside a file that was closed', async () => {
    const path = newPath()
    writeHermesFile(path, 6)
    const before = readFileSync(path)
    expect(readdirSync(dirname(path))).toEqual(['state.db'])

    await (await openForTest({ path, readonly: true })).close()
    expect(readdirSync(dirname(path)).sort()).toEqual(['state.db', 'state.db-shm', 'state.db-wal'])
    expect(readFileSync(`${path}-wal`).length).toBe(0)
    expect(readFileSync(path).equals(before)).toBe(true)

    const writer = await openForTest({ path })
    await writer.close()
    expect(readdirSync(dirname(path))).toEqual(['state.db'])
  })

  test.each([
    ['has the file open', false],
    ['died', true],
  ])('moves nothing from the log to the file, whose writer %s', async (_, dead) => {
    const path = newPath()
    writeHermesFile(path, 6)
    const writer = await startSql(path)
    for (let n = 0; n < 20; n++)
      await writer.ask(
        `INSERT INTO messages (session_id, role, content, timestamp) VALUES ('gamma', 'user', 'logged ${n}', ${n})`,
      )
    if (dead) await writer.kill()
    const before = [path, `${path}-wal`].map((name) => readFileSync(name))
    expect(before[1]!.length).toBeGreaterThan(0)

    const reader = await openForTest({ path, readonly: true })
    expect(await reader.messages.count('gamma')).toBe(20)
    expect(await reader.search.messages('logged', { limit: 100 })).toHaveLength(20)
    await reader.close()
    expect([path, `${path}-wal`].map((name, index) => readFileSync(name).equals(before[index]!))).toEqual([
      true,
      true,
    ])
  })
})

describe('opening refuses, with the file as it was, what is', () => {
  const refusals = [
    {
      kind: 'foreign',
      errorClass: NotAStateFileError,
      advice: /give the path of a state.db/,
      inputs: foreign,
    },
    {
      kind: 'no database',
      errorClass: NotAStateFileError,
      advice: /give the path of a state.db/,
      inputs: noDatabase,
    },
    {
      kind: 'damaged',
      errorClass: DamagedFileError,
      advice: /restoreStateFile\(backup, path/,
      inputs: damaged,
    },
  ]

  test.each(
    refusals.flatMap(({ inputs, ...refusal }) =>
      inputs.map(([name, write, found]) => ({ name, write, found, ...refusal })),
    ),
  )('$kind: $name', async ({ kind, errorClass, advice, write, found }) => {
    const path = newPath()
    write(path)
    const before = readFileSync(path)
    for (const options of [{ readonly: true }, {}, { migrate: false }, { newerSchema: 'write' }] as const) {
      const error = await openStateStore({ path, ...options, onEvent: () => {} }).catch(
        (error: unknown) => error,
      )
      expect(error).toBeInstanceOf(errorClass)
      const { message } = error as Error
      expect(message).toContain(`'${path}'`)
      expect(message).toMatch(found)
      expect(message).toMatch(advice)
      expect(readFileSync(path).equals(before)).toBe(true)
    }
    if (kind !== 'damaged') expect(readdirSync(dirname(path))).toEqual(['state.db'])
  })

  test('foreign, in WAL mode', async () => {
    const path = newPath()
    exec(path, 'PRAGMA journal_mode = wal; CREATE TABLE users (id INTEGER PRIMARY KEY)')
    const before = readFileSync(path)
    for (const readonly of [true, false])
      await expect(openStateStore({ path, readonly })).rejects.toThrow(NotAStateFileError)
    expect(readFileSync(path).equals(before)).toBe(true)
  })
})

describe('opening', () => {
  test('a file of 0 bytes makes a new store in it, and says so', async () => {
    const path = newPath()
    writeFileSync(path, '', { mode: 0o600 })
    const store = await openForTest({ path })
    expect(store.info).toMatchObject({ migrations: NAMES, mended: [] })
    expect(eventsOf(store, 'empty-file')).toEqual([
      { level: 'warning', type: 'empty-file', message: expect.stringContaining(`'${path}'`), path },
    ])
    expect(eventsOf(store, 'created')).toEqual([
      { level: 'info', type: 'created', message: expect.stringContaining(`'${path}'`), path },
    ])
    await store.close()
    expect(await inspectUntouched(path)).toMatchObject({ kind: 'ours' })
    expect(eventsOf(await openForTest({ path }), 'empty-file')).toEqual([])
  })

  test('a file of 0 bytes to read is refused, and leaves it empty', async () => {
    const path = newPath()
    writeFileSync(path, '')
    await expect(openStateStore({ path, readonly: true })).rejects.toThrow(CannotOpenError)
    expect(readFileSync(path).length).toBe(0)
    expect(readdirSync(dirname(path))).toEqual(['state.db'])
  })

  test.each(interrupted())('a file whose making was interrupted finishes it: %s', async (_, sql) => {
    const path = newPath()
    exec(path, sql)
    await expect(openStateStore({ path, readonly: true })).rejects.toThrow(CannotOpenError)
    const store = await openForTest({ path })
    await store.sessions.create({ id: 's', source: 'cli' })
    await store.messages.append('s', { role: 'user', content: 'a walrus' })
    expect(await store.search.messages('walrus')).toHaveLength(1)
    await store.close()
    expect(await inspectUntouched(path)).toMatchObject({ kind: 'ours', missing: [] })
    expectSound(path)
  })

  test('a file whose word index SQLite cannot drop leaves no way to write its inside, or the schema', async () => {
    const path = newPath()
    writeHermesFile(path, 6)
    exec(path, 'DROP TABLE messages_fts_config', true)
    expect(() => exec(path, 'DROP TABLE messages_fts')).toThrow()

    const store = await openForTest({ path })
    expect(store.info.mended).toEqual([expect.stringMatching(/^word index \(it /)])
    expect((await store.search.messages('walrus')).map(({ id }) => id).sort()).toEqual([1, 3])

    await sql`pragma writable_schema = on`.execute(store.db)
    for (const statement of [
      'delete from messages_fts_data',
      "insert into messages_fts_data (id, block) values (1000, x'00')",
      'drop table messages_fts_data',
      'delete from sqlite_schema',
      "update sqlite_schema set sql = 'x' where name = 'sessions'",
    ])
      await expect(sql.raw(statement).execute(store.db), statement).rejects.toThrow(/may not be/)
    await store.close()
    expectSound(path)
  })
})

/** What a process leaves that died while it made a file: the first tables, and no rows. */
function interrupted(): [string, string][] {
  const db = new Database(':memory:')
  hermesStep(db, 1)
  const [version, sessions] = ['schema_version', 'sessions'].map((name) =>
    db.prepare('SELECT sql FROM sqlite_schema WHERE name = ?').pluck().get(name),
  )
  db.close()
  return [
    ['one table', `${version}`],
    ['two tables', `${version}; ${sessions}`],
  ]
}

/** Inspects a file that nothing in this process has open. */
async function inspectUntouched(path: string): Promise<StateFileReport> {
  const before = readFileSync(path)
  const report = await inspectStateFile(path)
  expect(readFileSync(path).equals(before)).toBe(true)
  expect(report.path).toBe(path)
  expect(report.bytes).toBe(before.length)
  expect(report.found).toMatch(/^[A-Z'].+\.$/)
  return report
}

/** Adds messages to a file until its last pages hold some of them. */
function addMessages(path: string, count: number): void {
  exec(
    path,
    `WITH RECURSIVE n(i) AS (VALUES (1) UNION ALL SELECT i + 1 FROM n WHERE i < ${count})
     INSERT INTO messages (session_id, role, content, timestamp)
     SELECT 'gamma', 'user', 'text ' || i || ' ' || hex(zeroblob(300)), i FROM n;
     UPDATE sessions SET message_count = ${count} WHERE id = 'gamma'`,
  )
}

function overwrite(path: string, offset: number, bytes: Buffer): void {
  const content = readFileSync(path)
  bytes.copy(content, offset)
  writeFileSync(path, content)
}

function exec(path: string, sql: string, unsafe = false): void {
  mkdirSync(dirname(path), { recursive: true })
  const db = new Database(path)
  try {
    db.unsafeMode(unsafe)
    db.exec(sql)
  } finally {
    db.close()
  }
}
