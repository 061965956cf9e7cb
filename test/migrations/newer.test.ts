import { readdirSync, readFileSync } from 'node:fs'
import { dirname } from 'node:path'
import { describe, expect, test } from 'vitest'
import {
  type OpenOptions,
  openStateStore,
  ReadonlyStoreError,
  type StateStore,
  UnsupportedSchemaError,
} from '../../src/index.ts'
import { hermesRows, writeHermesFile } from '../support/hermes-file.ts'
import { changeFile, NEWER, type NewerSchema, newerFile, writeNewerFile } from '../support/newer-file.ts'
import { eventsOf, newPath, openForTest } from '../support/stores.ts'

const ids = <Id>(rows: { id: Id }[]) => rows.map(({ id }) => id)

const openNewer = (schema: NewerSchema, sql?: string) => openForTest({ path: newerFile(schema, sql) })

const message = { role: 'user', content: 'x' }

const writes: [string, (store: StateStore) => Promise<unknown>][] = [
  ['sessions.create', (store) => store.sessions.create({ source: 'cli' })],
  ['sessions.ensure', (store) => store.sessions.ensure({ id: 'new' })],
  ['sessions.end', (store) => store.sessions.end('chat', 'user_exit')],
  ['sessions.reopen', (store) => store.sessions.reopen('root')],
  ['sessions.setSystemPrompt', (store) => store.sessions.setSystemPrompt('root', 'p')],
  ['sessions.setModel', (store) => store.sessions.setModel('root', 'm')],
  ['sessions.delete', (store) => store.sessions.delete('chat')],
  ['sessions.deleteIfEmpty', (store) => store.sessions.deleteIfEmpty('chat')],
  ['titles.set', (store) => store.titles.set('chat', 'Otters')],
  ['titles.setIfEmpty', (store) => store.titles.setIfEmpty('chat', 'Otters')],
  ['messages.append', (store) => store.messages.append('chat', message)],
  ['messages.appendMany', (store) => store.messages.appendMany('chat', [message, message])],
  ['usage.add', (store) => store.usage.add('chat', { input_tokens: 1 })],
  ['usage.set', (store) => store.usage.set('chat', { input_tokens: 1 })],
  ['db', (store) => store.db.updateTable('sessions').set({ model: 'm' }).execute()],
  ['transaction', (store) => store.transaction((tx) => tx.sessions.get('chat'))],
]

/** Calls that no file of a later schema takes, however it was opened. */
const notOffered: [string, (store: StateStore) => Promise<unknown>][] = [
  ['messages.replaceAll', (store) => store.messages.replaceAll('chat', [message])],
  ['messages.clear', (store) => store.messages.clear('chat')],
  ['sessions.prune', (store) => store.sessions.prune()],
  ['sessions.recount', (store) => store.sessions.recount('chat')],
]

describe.each(NEWER)('a file of schema %i', (schema) => {
  test('is opened read-only, with an event that says why, and no write is taken', async () => {
    const path = newerFile(schema)
    const before = readFileSync(path)
    const store = await openForTest({ path })

    expect(store.info).toMatchObject({
      readonly: true,
      readonlyBecause: expect.stringContaining(`Hermes schema ${schema}`),
      schemaVersion: schema,
      additions: false,
      migrations: [],
      mended: [],
    })
    expect(eventsOf(store, 'opened-readonly')).toEqual([
      {
        level: 'warning',
        type: 'opened-readonly',
        message: expect.stringContaining(`Hermes schema ${schema}`),
        path,
        reason: store.info.readonlyBecause,
      },
    ])
    for (const [name, write] of writes) {
      const error = await write(store).catch((error: unknown) => error)
      expect(error, name).toBeInstanceOf(ReadonlyStoreError)
      expect((error as Error).message, name).toContain(store.info.readonlyBecause)
    }
    for (const [name, call] of notOffered)
      await expect(call(store), name).rejects.toThrow(UnsupportedSchemaError)
    await store.close()
    expect(readFileSync(path).equals(before)).toBe(true)
  })

  test('is only read with readonly: true, whatever else is asked for, and without an event', async () => {
    const path = newerFile(schema)
    const before = readFileSync(path)
    for (const newerSchema of ['readonly', 'write'] as const) {
      const store = await openForTest({ path, readonly: true, newerSchema })
      expect(store.info.readonly).toBe(true)
      expect(store.info.readonlyBecause).toContain('readonly: true')
      expect(eventsOf(store, 'opened-readonly')).toEqual([])
      await expect(store.messages.append('chat', message)).rejects.toThrow(ReadonlyStoreError)
      await store.close()
    }
    expect(readFileSync(path).equals(before)).toBe(true)
  })

  test("is refused with newerSchema: 'refuse'", async () => {
    const path = newerFile(schema)
    const before = readFileSync(path)
    for (const options of [{}, { readonly: true }, { migrate: false }] satisfies OpenOptions[]) {
      const opening = openStateStore({ path, newerSchema: 'refuse', ...options })
      await expect(opening).rejects.toThrow(UnsupportedSchemaError)
      await expect(opening).rejects.toThrow(`Hermes schema ${schema}`)
    }
    expect(readFileSync(path).equals(before)).toBe(true)
  })

  test('is read: sessions with their prompts, messages, lineage, titles and ids', async () => {
    const store = await openNewer(schema)
    const root = await store.sessions.get('root')

    expect(root).toEqual({
      id: 'root',
      source: 'cli',
      user_id: 'ada',
      model: 'model-a',
      model_config: { temperature: 0.5 },
      system_prompt: 'Be brief.',
      parent_session_id: null,
      started_at: 1000.5,
      ended_at: 1900,
      end_reason: 'compression',
      title: 'Herd',
      message_count: 3,
      tool_call_count: 1,
      input_tokens: 100,
      output_tokens: 50,
      cache_read_tokens: 0,
      cache_write_tokens: 0,
      reasoning_tokens: 0,
      billing_provider: null,
      billing_base_url: null,
      billing_mode: null,
      estimated_cost_usd: 0.5,
      actual_cost_usd: null,
      cost_status: null,
      cost_source: null,
      pricing_version: null,
    })
    expect(await store.titles.getSession('Herd')).toEqual(root)
    expect((await store.sessions.get('tip'))?.system_prompt).toBe('Be kind.')
    expect((await store.sessions.get('chat'))?.system_prompt).toBeNull()

    const nothing = {
      content: null,
      tool_call_id: null,
      tool_calls: null,
      tool_name: null,
      token_count: null,
      finish_reason: null,
      reasoning: null,
      reasoning_details: null,
      codex_reasoning_items: null,
    }
    const [question, call, answer] = await store.messages.list('root')
    expect(question).toEqual({
      ...nothing,
      id: 1,
      session_id: 'root',
      role: 'user',
      content: 'Count the walrus herd',
      timestamp: 1001,
      token_count: 5,
    })
    expect(call).toEqual({
      ...nothing,
      id: 2,
      session_id: 'root',
      role: 'assistant',
      tool_calls: [{ id: 'call-1', function: { name: 'census', arguments: '{"place": "lagoon"}' } }],
      timestamp: 1002,
      finish_reason: 'tool_calls',
      reasoning: 'Ask the tool.',
      reasoning_details: [{ text: 'Ask' }],
      codex_reasoning_items: [{ id: 'rs-1' }],
    })
    expect(answer).toEqual({
      ...nothing,
      id: 3,
      session_id: 'root',
      role: 'tool',
      content: 'forty walrus',
      tool_call_id: 'call-1',
      tool_name: 'census',
      timestamp: 2500,
    })

    expect(await store.lineage.tip('root')).toBe('tip')
    expect(await store.lineage.root('tip')).toBe('root')
    expect(ids(await store.lineage.ancestors('tip'))).toEqual(['root'])
    expect(ids(await store.lineage.descendants('root'))).toEqual(['tip'])
    expect(await store.titles.resolve('Herd')).toBe('root')
    expect(await store.titles.next('Herd')).toBe('Herd #2')
    expect(await store.sessions.resolveId('chat')).toBe('chat')
    expect(await store.sessions.matchPrefix('root')).toEqual(['root'])
  })

  test('gives structured content as it was', async () => {
    const store = await openNewer(schema)
    const content = [{ type: 'text', text: 'A seal, photographed' }, { type: 'image' }]
    expect((await store.messages.list('tip')).map((message) => message.content)).toEqual([
      content,
      'It is a seal.',
    ])
    expect((await store.messages.conversation('tip'))[0]).toEqual({ role: 'user', content })
    expect((await store.sessions.list({ source: 'cli' }))[0]?.preview).toBe('A seal, photographed')
    const [hit] = await store.search.messages('photographed')
    expect(hit).toMatchObject({ id: 4, snippet: expect.stringContaining('>>>photographed<<<') })
    expect(hit?.context[0]?.content).toBe('A seal, photographed')
  })
})

describe('opening', () => {
  test.each(['yes', '', null, true])(
    'newerSchema: %j is a TypeError, and makes no file',
    async (newerSchema) => {
      const path = newPath()
      await expect(openStateStore({ path, newerSchema: newerSchema as never })).rejects.toThrow(TypeError)
      expect(readdirSync(dirname(path))).toEqual([])
    },
  )

  test.each(['readonly', 'write', 'refuse'] as const)(
    'newerSchema: %j is of no matter to a file of schema 6',
    async (newerSchema) => {
      const path = newPath()
      writeHermesFile(path, 6)
      const store = await openForTest({ path, newerSchema })
      expect(store.info).toMatchObject({ readonly: false, readonlyBecause: null, additions: true })
    },
  )

  test.each(['DELETE FROM schema_version', 'DROP TABLE schema_version'])(
    'a file that has lost its number is known by what it holds: %s',
    async (sql) => {
      const path = newerFile(8, sql)
      const before = readFileSync(path)
      const store = await openForTest({ path })
      expect(store.info).toMatchObject({ readonly: true, schemaVersion: null })
      expect(store.info.readonlyBecause).toContain('above 6')
      expect(ids(await store.sessions.list())).toEqual(['chat', 'tip', 'root'])
      await store.close()
      await expect(openStateStore({ path, newerSchema: 'refuse' })).rejects.toThrow(/above 6/)
      expect(readFileSync(path).equals(before)).toBe(true)
    },
  )

  test('a file in rollback mode gets no file beside it', async () => {
    const path = newPath()
    writeNewerFile(path, 26, 'delete')
    const before = readFileSync(path)
    const store = await openForTest({ path })
    expect(store.info.journalMode).toBe('delete')
    expect(await store.messages.count('root')).toBe(3)
    expect(readdirSync(dirname(path))).toEqual(['state.db'])
    await store.close()
    expect(readFileSync(path).equals(before)).toBe(true)
  })
})

describe.each([1, 4, 5])('a file of schema %i with the number 25', (columns) => {
  test('is read with null for what it lacks', async () => {
    const path = newPath()
    writeHermesFile(path, columns)
    changeFile(path, 'UPDATE schema_version SET version = 25')
    const before = readFileSync(path)
    const store = await openForTest({ path })

    expect(store.info).toMatchObject({ readonly: true, schemaVersion: 25, mended: [] })
    const { sessions, messages } = hermesRows(columns)
    for (const session of sessions) {
      expect(await store.sessions.get(session.id)).toEqual(session)
      expect(await store.messages.list(session.id)).toEqual(
        messages.filter(({ session_id }) => session_id === session.id),
      )
    }
    expect(ids(await store.sessions.list())).toEqual(['gamma', 'beta', 'alpha'])
    expect(ids(await store.sessions.list({ orderBy: 'lastActive' }))).toEqual(['gamma', 'beta', 'alpha'])
    expect(ids(await store.search.messages('walrus')).sort()).toEqual([1, 3])
    expect(await store.titles.get('alpha')).toBe(columns >= 3 ? 'Herd' : null)
    expect(await store.usage.totals()).toMatchObject({ sessions: 3, input_tokens: 100, output_tokens: 50 })
    expect(await store.db.selectFrom('sessions').select(['id', 'pricing_version']).execute()).toHaveLength(3)
    await store.close()
    expect(readFileSync(path).equals(before)).toBe(true)
  })
})

test('content that begins like structured content and is broken reads as text, with an event', async () => {
  const stored = ["char(0) || 'json:[{'", "char(0) || 'json:17'"]
  const store = await openNewer(
    26,
    stored
      .map(
        (sql) =>
          `INSERT INTO messages (session_id, role, content, timestamp) VALUES ('tip', 'user', ${sql}, 1)`,
      )
      .join(';'),
  )
  const [, , broken, number] = await store.messages.list('tip')
  expect(broken?.content).toBe('\0json:[{')
  expect(number?.content).toBe('\0json:17')
  expect(eventsOf(store, 'broken-json')).toMatchObject([
    { table: 'messages', column: 'content', id: broken?.id },
    { table: 'messages', column: 'content', id: number?.id },
  ])
})

test('what this package had added to a file stays readable when Hermes has raised it', async () => {
  const path = newPath()
  writeHermesFile(path, 6)
  const parts = [{ type: 'text', text: 'A narwhal' }]
  const old = await openForTest({ path })
  const id = await old.messages.append('gamma', { role: 'user', content: parts, timestamp: 4000 })
  await old.close()
  changeFile(
    path,
    `ALTER TABLE messages ADD COLUMN reasoning_content TEXT;
     ALTER TABLE messages ADD COLUMN active INTEGER NOT NULL DEFAULT 1;
     ALTER TABLE sessions ADD COLUMN archived INTEGER NOT NULL DEFAULT 0;
     UPDATE sessions SET archived = 1 WHERE id = 'beta';
     UPDATE schema_version SET version = 16`,
  )
  const store = await openForTest({ path })
  expect(store.info).toMatchObject({ readonly: true, schemaVersion: 16, additions: true })
  expect((await store.messages.get(id))?.content).toEqual(parts)
  expect(ids(await store.search.messages('narwhal'))).toEqual([id])
  const list = await store.sessions.list({ orderBy: 'lastActive' })
  expect(list.map(({ id, last_active }) => [id, last_active])).toEqual([
    ['gamma', 4000],
    ['alpha', 1003],
  ])
})
