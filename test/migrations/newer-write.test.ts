import { readdirSync, readFileSync } from 'node:fs'
import { dirname } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import Database from 'better-sqlite3'
import { describe, expect, onTestFinished, test } from 'vitest'
import {
  MigrationNeededError,
  openStateStore,
  ReadonlyStoreError,
  type StateStore,
  StateStoreBusyError,
  UnsupportedSchemaError,
} from '../../src/index.ts'
import { dump, writeHermesFile } from '../support/hermes-file.ts'
import {
  changeFile,
  checkIndexes,
  has,
  NEWER,
  newerFile,
  UNKNOWN_TOKENIZER,
  useUnknownTokenizer,
  writeNewerFile,
} from '../support/newer-file.ts'
import { eventsOf, newPath, openForTest, rawRow, rawRows, rawRun } from '../support/stores.ts'

const ids = <Id>(rows: { id: Id }[]) => rows.map(({ id }) => id)

const openToWrite = (path: string) => openForTest({ path, newerSchema: 'write' })

const message = { role: 'user', content: 'A narwhal' }
const call = { id: 'call-2', type: 'function', function: { name: 'look', arguments: '{"at": "iceberg"}' } }
const parts = [{ type: 'text', text: 'A narwhal in the ice' }, { type: 'image' }]

/** Calls every method that writes such a file, and adds four messages to the session `new`. */
async function writeAll(store: StateStore): Promise<void> {
  const { sessions, messages, titles, usage } = store
  await sessions.create({ id: 'new', source: 'cli', parent_session_id: 'tip', system_prompt: 'New.' })
  await sessions.create({ id: 'new', source: 'cli', model: 'model-n', user_id: 'ada' })
  await messages.append('new', message)
  await messages.appendMany('new', [
    { role: 'assistant', content: parts, tool_calls: [call] },
    { role: 'tool', content: 'Nothing there', tool_name: 'look', tool_call_id: 'call-2' },
  ])
  expect(await sessions.end('new', 'user_exit')).toBe(true)
  expect(await sessions.end('new', 'compression')).toBe(false)
  expect(await sessions.reopen('new')).toBe(true)
  expect(await sessions.end('chat', 'session_reset')).toBe(true)
  expect(await titles.setIfEmpty('new', 'Herd')).toBe('Herd #2')
  expect(await titles.setIfEmpty('new', 'Other')).toBeNull()
  expect(await titles.set('tip', 'Seal')).toBe(true)
  expect(await sessions.setSystemPrompt('new', 'Newer.')).toBe(true)
  expect(await usage.add('new', { input_tokens: 7, output_tokens: 3, estimated_cost_usd: 0.5 })).toBe(true)
  expect(await sessions.setModel('new', 'model-o')).toBe(true)
  expect(await usage.set('new', { input_tokens: 9, billing_provider: 'p' })).toBe(true)
  await store.transaction(async (tx) => {
    await tx.messages.append('new', { role: 'user', content: 'Look again' })
  })
}

describe.each(NEWER)('a file of schema %i, written', (schema) => {
  test('takes sessions, messages, titles, prompts, models and usage', async () => {
    const store = await openToWrite(newerFile(schema))
    expect(store.info).toMatchObject({
      readonly: false,
      readonlyBecause: null,
      schemaVersion: schema,
      journalMode: 'wal',
      additions: false,
      migrations: [],
      mended: [],
      wordIndexProblem: null,
    })
    expect(eventsOf(store, 'opened-readonly')).toEqual([])
    expect(eventsOf(store, 'mended')).toEqual([])
    const last = await store.messages.count(undefined, { includeInactive: true })
    await writeAll(store)

    expect(await store.sessions.get('new')).toMatchObject({
      source: 'cli',
      user_id: 'ada',
      model: 'model-o',
      system_prompt: 'Newer.',
      parent_session_id: 'tip',
      ended_at: null,
      end_reason: null,
      title: 'Herd #2',
      message_count: 4,
      tool_call_count: 1,
      input_tokens: 9,
      output_tokens: 3,
      estimated_cost_usd: 0.5,
      billing_provider: 'p',
    })
    const written = await store.messages.list('new')
    expect(ids(written)).toEqual([1, 2, 3, 4].map((index) => last + index))
    expect(written).toMatchObject([
      message,
      { role: 'assistant', content: parts, tool_calls: [call] },
      { role: 'tool', content: 'Nothing there', tool_name: 'look', tool_call_id: 'call-2' },
      { role: 'user', content: 'Look again' },
    ])
    expect(await rawRows(store, 'select content from messages where id = ?', last + 2)).toEqual([
      { content: `\0json:${JSON.stringify(parts)}` },
    ])
    expect((await store.sessions.get('chat'))?.end_reason).toBe('session_reset')
    expect(await store.titles.resolve('Seal')).toBe('tip')
    expect(await store.lineage.root('new')).toBe('root')
    expect(
      (await store.search.messages('narwhal')).map(({ id, route }) => [id - last, route]).sort(),
    ).toEqual([
      [1, 'words'],
      [2, 'words'],
    ])
    const [found] = await store.sessions.list({ orderBy: 'lastActive', limit: 1 })
    expect(found).toMatchObject({ id: 'new', preview: 'A narwhal' })
    if (has(schema, 'flags'))
      expect(
        await rawRows(store, "select distinct active, compacted from messages where session_id = 'new'"),
      ).toEqual([{ active: 1, compacted: 0 }])
  })

  test('keeps its number, its tables, indexes and triggers, and what it holds', async () => {
    const path = newerFile(schema)
    const before = dump(path)
    const store = await openToWrite(path)
    expect(dump(path)).toEqual(before)
    await writeAll(store)
    await store.close()
    const after = dump(path)
    expect(after.schema).toEqual(before.schema)
    expect(after.rows.schema_version).toEqual([{ version: schema }])
    expect(after.rows.state_meta).toEqual([])
    expect(after.rows.messages?.slice(0, before.rows.messages?.length)).toEqual(before.rows.messages)

    const again = await openForTest({ path })
    expect(again.info).toMatchObject({ readonly: true, schemaVersion: schema, wordIndexProblem: null })
    expect(await again.messages.count('new')).toBe(4)
  })

  test('has its indexes kept right through append, update and delete of every message', async () => {
    const path = newerFile(schema)
    const store = await openToWrite(path)
    await writeAll(store)
    checkIndexes(path)

    const all = await store.messages.count(undefined, { includeInactive: true })
    await store.db.updateTable('messages').set({ content: 'an albatross', tool_name: 'wing' }).execute()
    checkIndexes(path)
    const undone = has(schema, 'flags') ? 1 : 0
    expect(await store.search.messages('albatross', { limit: 100 })).toHaveLength(all - undone)
    expect(await store.search.messages('walrus')).toEqual([])

    await rawRun(store, 'delete from messages where id % 2 = 0')
    checkIndexes(path)
    await store.db.deleteFrom('messages').execute()
    checkIndexes(path)
    expect(await store.search.messages('albatross')).toEqual([])
    await store.messages.append('chat', message)
    checkIndexes(path)
    expect(await store.search.messages('narwhal')).toHaveLength(1)
  })

  test('refuses what would take away what Hermes keeps, and stays as it is', async () => {
    const path = newerFile(schema)
    const store = await openToWrite(path)
    await store.sessions.end('chat', 'user_exit')
    const before = dump(path)
    const refused: (() => Promise<unknown>)[] = [
      () => store.messages.replaceAll('chat', [message]),
      () => store.messages.clear('chat'),
      () => store.sessions.prune({ olderThanDays: 1 }),
      () => store.sessions.prune({ dryRun: true }),
      () => store.sessions.recount('chat'),
      () => store.transaction((tx) => tx.messages.clear('chat')),
    ]
    for (const call of refused) await expect(call()).rejects.toThrow(UnsupportedSchemaError)
    expect(dump(path)).toEqual(before)
  })

  test('loses a session that is deleted, with all that belongs to it', async () => {
    const path = newerFile(schema)
    const store = await openToWrite(path)
    expect(await store.sessions.delete('root')).toBe(true)
    expect(await store.sessions.delete('root')).toBe(false)
    expect(await store.sessions.get('root')).toBeNull()
    expect((await store.sessions.get('tip'))?.parent_session_id).toBeNull()
    expect(ids(await rawRows<{ id: number }>(store, 'select id from messages order by id limit 1'))).toEqual([
      4,
    ])
    if (has(schema, 'usage')) expect(await rawRows(store, 'select * from session_model_usage')).toEqual([])
    expect(await store.search.messages('walrus')).toEqual([])

    // With what was summarised away and taken back.
    expect(await store.sessions.delete('chat')).toBe(true)
    expect(await rawRows(store, "select id from messages where session_id = 'chat'")).toEqual([])
    checkIndexes(path)
  })
})

test('a file in rollback mode stays in it', async () => {
  const path = newPath()
  writeNewerFile(path, 26, 'delete')
  const store = await openToWrite(path)
  expect(store.info.journalMode).toBe('delete')
  await writeAll(store)
  expect(readdirSync(dirname(path))).toEqual(['state.db'])
  await store.close()
  const db = new Database(path)
  expect(db.pragma('journal_mode', { simple: true })).toBe('delete')
  db.close()
  checkIndexes(path)
})

describe('a file in rollback mode that others read', () => {
  function readFile() {
    const path = newPath()
    writeNewerFile(path, 26, 'delete')
    const reader = new Database(path)
    onTestFinished(() => {
      reader.close()
    })
    reader.exec('begin; select count(*) from messages')
    return { path, reader }
  }

  test('is opened to be written when they are done', async () => {
    const { path, reader } = readFile()
    const opening = openToWrite(path)
    await delay(100)
    reader.exec('commit')
    expect((await opening).info).toMatchObject({ readonly: false, readonlyBecause: null })
  })

  test('is not opened at all when that takes too long', async () => {
    const { path } = readFile()
    const opening = openStateStore({ path, newerSchema: 'write', busyTimeout: 50, onEvent: () => {} })
    onTestFinished(() => opening.then((store) => store.close()).catch(() => {}))
    await expect(opening).rejects.toThrow(StateStoreBusyError)
  })
})

describe('a system prompt that is found by its hash', () => {
  const prompt = (store: StateStore, id: string) =>
    rawRow<{ system_prompt: string | null; system_prompt_hash: string | null }>(
      store,
      'select system_prompt, system_prompt_hash from sessions where id = ?',
      id,
    )

  test.each([25, 26] as const)('is replaced by setSystemPrompt (schema %i)', async (schema) => {
    const store = await openToWrite(newerFile(schema))
    expect(await store.sessions.setSystemPrompt('root', 'Be thorough.')).toBe(true)
    expect((await store.sessions.get('root'))?.system_prompt).toBe('Be thorough.')
    expect(await prompt(store, 'root')).toEqual({ system_prompt: 'Be thorough.', system_prompt_hash: null })
    expect(await rawRows(store, 'select prompt from system_prompts')).toEqual([{ prompt: 'Be brief.' }])
  })

  test('is taken away by setSystemPrompt with null', async () => {
    const store = await openToWrite(newerFile(26))
    expect(await store.sessions.setSystemPrompt('root', null)).toBe(true)
    expect((await store.sessions.get('root'))?.system_prompt).toBeNull()
  })

  test.each<[string, (store: StateStore) => Promise<unknown>]>([
    [
      'create with another prompt',
      (store) => store.sessions.create({ id: 'root', source: 'cli', system_prompt: 'Be thorough.' }),
    ],
    ['create without a prompt', (store) => store.sessions.create({ id: 'root', source: 'cli' })],
    ['ensure', (store) => store.sessions.ensure({ id: 'root' })],
    ['append', (store) => store.messages.append('root', message)],
    ['setModel', (store) => store.sessions.setModel('root', 'model-n')],
    ['usage.add', (store) => store.usage.add('root', { input_tokens: 1 })],
  ])('stays through %s', async (_, write) => {
    const store = await openToWrite(newerFile(26))
    const before = await prompt(store, 'root')
    await write(store)
    expect((await store.sessions.get('root'))?.system_prompt).toBe('Be brief.')
    expect(await prompt(store, 'root')).toEqual(before)
  })

  test('is not there yet: create gives one to a session that has none', async () => {
    const store = await openToWrite(newerFile(26))
    await store.sessions.create({ id: 'chat', source: 'telegram', system_prompt: 'Be quick.' })
    expect((await store.sessions.get('chat'))?.system_prompt).toBe('Be quick.')
  })
})

describe('columns of schema 6 that a file of a later one lacks', () => {
  const LACKING = [
    'column messages.codex_reasoning_items',
    'column messages.reasoning',
    'column messages.reasoning_details',
  ]

  function lacking(columns: number): string {
    const path = newPath()
    writeHermesFile(path, columns)
    changeFile(path, 'UPDATE schema_version SET version = 25')
    return path
  }

  test('are added and named', async () => {
    const path = lacking(5)
    const store = await openToWrite(path)
    expect([...store.info.mended].sort()).toEqual(LACKING)
    expect(store.info).toMatchObject({ readonly: false, schemaVersion: 25, additions: false, migrations: [] })
    expect(eventsOf(store, 'mended')).toMatchObject([{ path, mended: store.info.mended }])
    const id = await store.messages.append('gamma', { ...message, reasoning: 'Because.' })
    expect(await store.messages.get(id)).toMatchObject({ content: 'A narwhal', reasoning: 'Because.' })
    await store.close()
    checkIndexes(path)

    const again = await openToWrite(path)
    expect(again.info).toMatchObject({ mended: [], schemaVersion: 25 })
    expect(await rawRows(again, 'select version from schema_version')).toEqual([{ version: 25 }])
    expect(
      await rawRows(again, "select name from sqlite_schema where name glob 'hs_*' or name glob 'kysely*'"),
    ).toEqual([])
  })

  test('are added to tables as they first were', async () => {
    const store = await openToWrite(lacking(1))
    expect(store.info.mended).toContain('column sessions.title')
    expect(await store.titles.setIfEmpty('alpha', 'Herd')).toBe('Herd')
    expect(await store.titles.setIfEmpty('gamma', 'Herd')).toBe('Herd #2')
    await store.usage.add('gamma', { input_tokens: 5, reasoning_tokens: 2, actual_cost_usd: 0.5 })
    expect(await store.sessions.get('gamma')).toMatchObject({ input_tokens: 5, reasoning_tokens: 2 })
  })

  test('are not added with migrate: false', async () => {
    const path = lacking(5)
    const before = readFileSync(path)
    const opening = openStateStore({ path, newerSchema: 'write', migrate: false })
    await expect(opening).rejects.toThrow(MigrationNeededError)
    for (const part of LACKING) await expect(opening).rejects.toThrow(part)
    expect(readFileSync(path).equals(before)).toBe(true)
    expect((await openForTest({ path, migrate: false })).info.readonly).toBe(true)
  })

  test.each(NEWER)(
    'are all there in a file of schema %i, which opens with migrate: false',
    async (schema) => {
      const store = await openForTest({ path: newerFile(schema), newerSchema: 'write', migrate: false })
      expect(store.info).toMatchObject({ readonly: false, mended: [] })
    },
  )
})

test('a trigram index that an older SQLite cut at a NUL is filled again', async () => {
  const path = newerFile(26)
  // Message 4 begins with a NUL: nothing of it was indexed.
  changeFile(
    path,
    `INSERT INTO messages_fts_trigram (messages_fts_trigram, rowid, content, tool_name, tool_calls)
     SELECT 'delete', id, content, tool_name, tool_calls FROM messages WHERE id = 4;
     INSERT INTO messages_fts_trigram (rowid, content) VALUES (4, '')`,
  )
  expect(() => checkIndexes(path)).toThrow(/malformed/)
  const { schema } = dump(path)
  const store = await openToWrite(path)
  expect(store.info.mended).toEqual([expect.stringContaining('messages_fts_trigram')])
  checkIndexes(path)
  await store.sessions.delete('tip')
  checkIndexes(path)
  expect(dump(path).schema).toEqual(schema)
})

test('structured content that this package had stored beside its file is read when Hermes has raised it', async () => {
  const path = newPath()
  writeHermesFile(path, 6)
  const old = await openForTest({ path })
  const before = await old.messages.append('gamma', { role: 'user', content: parts })
  await old.close()
  changeFile(
    path,
    'ALTER TABLE messages ADD COLUMN reasoning_content TEXT; UPDATE schema_version SET version = 8',
  )
  const { schema } = dump(path)
  const store = await openToWrite(path)
  const id = await store.messages.append('gamma', { role: 'user', content: parts })
  expect((await store.messages.list('gamma')).map(({ content }) => content)).toEqual([parts, parts])
  expect(await rawRows(store, 'select message_id from hs_structured_content')).toEqual([
    { message_id: before },
  ])
  expect(await rawRows(store, 'select content from messages where id = ?', id)).toEqual([
    { content: `\0json:${JSON.stringify(parts)}` },
  ])
  const [gamma] = await store.sessions.list({ orderBy: 'lastActive', limit: 1 })
  expect(gamma?.id).toBe('gamma')
  expect(dump(path).schema).toEqual(schema)
  checkIndexes(path)
})

test('a file whose triggers need an unknown tokenizer is read, and not written', async () => {
  const path = newerFile(
    26,
    `CREATE VIRTUAL TABLE messages_fts_cjk USING fts5(content, content='messages', content_rowid='id');
     INSERT INTO messages_fts_cjk(messages_fts_cjk) VALUES ('rebuild');
     CREATE TRIGGER messages_fts_cjk_insert AFTER INSERT ON messages BEGIN
       INSERT INTO messages_fts_cjk(rowid, content) VALUES (new.id, new.content);
     END`,
  )
  useUnknownTokenizer(path, 'messages_fts_cjk')
  const before = readFileSync(path)
  const store = await openToWrite(path)

  expect(store.info).toMatchObject({ readonly: true, schemaVersion: 26, mended: [], wordIndexProblem: null })
  expect(store.info.readonlyBecause).toContain(UNKNOWN_TOKENIZER)
  expect(eventsOf(store, 'opened-readonly')).toEqual([
    {
      level: 'warning',
      type: 'opened-readonly',
      message: expect.stringContaining(UNKNOWN_TOKENIZER),
      path,
      reason: store.info.readonlyBecause,
    },
  ])
  expect(ids(await store.sessions.list())).toEqual(['chat', 'tip', 'root'])
  expect((await store.sessions.get('root'))?.system_prompt).toBe('Be brief.')
  expect(ids(await store.messages.list('chat'))).toEqual([7, 9])
  expect((await store.search.messages('herd')).map(({ id, route }) => [id, route])).toEqual([[1, 'words']])
  const writing = store.messages.append('chat', message)
  await expect(writing).rejects.toThrow(ReadonlyStoreError)
  await expect(writing).rejects.toThrow(UNKNOWN_TOKENIZER)
  await store.close()
  expect(readFileSync(path).equals(before)).toBe(true)
})
