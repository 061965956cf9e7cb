import { readFileSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import { ReadonlyStoreError } from '../../src/index.ts'
import { dump } from '../support/hermes-file.ts'
import { checkIndexes, has, NEWER, newerFile } from '../support/newer-file.ts'
import { openForTest, rawRows } from '../support/stores.ts'
import { collect, contents, session, sizes, withoutIds } from '../support/transfer.ts'

const PARTS = [{ type: 'text', text: 'A narwhal in the ice' }, { type: 'image' }]
const CALL = { id: 'call-2', type: 'function', function: { name: 'look', arguments: '{"at": "ice"}' } }

const RECORDS = [
  session('child', { parent_session_id: 'new', messages: [] }),
  session('new', {
    title: 'Herd',
    parent_session_id: 'root',
    model: 'model-n',
    model_config: { top_p: 1 },
    system_prompt: 'Be new.',
    ended_at: 1100,
    end_reason: 'user_exit',
    input_tokens: 7,
    estimated_cost_usd: 0.5,
    messages: [
      { role: 'user', content: PARTS, client_id: 'a', timestamp: 1001 },
      { role: 'assistant', content: null, tool_calls: [CALL], reasoning: 'Look.', timestamp: 1002 },
      { role: 'tool', content: 'narwhal 海象', tool_call_id: 'call-2', tool_name: 'look', timestamp: 1003 },
      { role: 'user', raw: { content: '{"n": 1.0}' }, timestamp: 1004 },
      { role: 'user', content: '\0json:[no structure]', timestamp: 1005 },
    ],
  }),
]

describe.each(NEWER)('a file of schema %i', (schema) => {
  test('opened to write takes sessions whole, in its own form, and keeps its own', async () => {
    const path = newerFile(schema)
    const before = dump(path)
    const store = await openForTest({ path, newerSchema: 'write' })
    const own = Object.keys(await sizes(store))
    expect(await store.transfer.importSessions(RECORDS)).toEqual({
      imported: 2,
      messages: 5,
      sessions: [
        { id: 'new', status: 'imported', title: 'Herd #2' },
        { id: 'child', status: 'imported' },
      ],
      // It has no place for the tables of this package.
      not_carried: { 'messages.client_id': 1 },
    })
    expect(Object.keys(await sizes(store)).sort()).toEqual([...own, 'child', 'new'].sort())
    expect(withoutIds(await store.transfer.exportSession('new'))).toMatchObject({
      source: 'cli',
      title: 'Herd #2',
      parent_session_id: 'root',
      model: 'model-n',
      model_config: { top_p: 1 },
      system_prompt: 'Be new.',
      started_at: 1000,
      ended_at: 1100,
      end_reason: 'user_exit',
      message_count: 5,
      tool_call_count: 1,
      input_tokens: 7,
      estimated_cost_usd: 0.5,
      messages: [
        { role: 'user', content: PARTS, timestamp: 1001 },
        { role: 'assistant', tool_calls: [CALL], reasoning: 'Look.', timestamp: 1002 },
        { role: 'tool', content: 'narwhal 海象', tool_call_id: 'call-2', tool_name: 'look', timestamp: 1003 },
        { role: 'user', content: { n: 1 }, raw: { content: '{"n": 1.0}' }, timestamp: 1004 },
        { role: 'user', content: '\0json:[no structure]', timestamp: 1005 },
      ],
    })
    expect(await rawRows(store, "select content from messages where session_id = 'new' order by id")).toEqual(
      [
        { content: `\0json:${JSON.stringify(PARTS)}` },
        { content: null },
        { content: 'narwhal 海象' },
        { content: '\0json:{"n": 1.0}' },
        { content: `\0json:${JSON.stringify('\0json:[no structure]')}` },
      ],
    )
    expect((await store.search.messages('narwhal')).map(({ session_id }) => session_id)).toEqual([
      'new',
      'new',
    ])
    expect(await store.usage.byModel()).toContainEqual(
      expect.objectContaining({ model: 'model-n', input_tokens: 7, estimated_cost_usd: 0.5 }),
    )
    expect(await store.lineage.root('child')).toBe('root')
    checkIndexes(path)
    expect(await store.maintenance.check({ full: true })).toMatchObject({ ok: true, integrity: [] })
    await store.close()
    const after = dump(path)
    expect(after.schema).toEqual(before.schema)
    for (const table of ['sessions', 'messages'])
      expect(after.rows[table]).toEqual(expect.arrayContaining(before.rows[table]!))
    expect(after.rows.schema_version).toEqual([{ version: schema }])
  })

  test('opened to write skips what it has, and does the rest of an import that was given up', async () => {
    const path = newerFile(schema)
    const store = await openForTest({ path, newerSchema: 'write' })
    await store.transfer.importSessions(RECORDS)
    const before = dump(path)
    const report = await store.transfer.importSessions(RECORDS)
    expect(report.sessions.map(({ status }) => status)).toEqual(['present', 'present'])
    expect(dump(path)).toEqual(before)
  })

  test('that is only read refuses an import, unchanged, and goes out whole', async () => {
    const path = newerFile(schema)
    const bytes = readFileSync(path)
    const store = await openForTest({ path })
    await expect(store.transfer.importSessions(RECORDS)).rejects.toBeInstanceOf(ReadonlyStoreError)
    await expect(store.transfer.importSessions(RECORDS)).rejects.toThrow(/newerSchema/)
    const away = has(schema, 'archived') ? 1 : 0
    const hidden = has(schema, 'hidden') ? 1 : 0
    const records = await collect(store.transfer.exportAll())
    expect(records[0]).toMatchObject({
      schema_version: schema,
      sessions: 3 + away + hidden,
      messages: 9 + away + hidden,
    })
    const sessions = records.flatMap((record) => (record.type === 'session' ? [record] : []))
    expect(sessions.map(({ id }) => id)).toEqual([
      ...(away ? ['away'] : []),
      'chat',
      'root',
      ...(hidden ? ['secret'] : []),
      'tip',
    ])
    // Found by its hash from schema 25 on.
    expect(sessions.find(({ id }) => id === 'root')?.system_prompt).toBe('Be brief.')
    expect(
      sessions.find(({ id }) => id === 'chat')?.messages.map(({ id, inactive }) => [id, inactive]),
    ).toEqual([
      [6, has(schema, 'flags') ? 'compacted' : undefined],
      [7, undefined],
      [8, has(schema, 'flags') ? 'undone' : undefined],
      [9, undefined],
    ])
    await store.close()
    expect(readFileSync(path).equals(bytes)).toBe(true)

    const writable = await openForTest({ path, newerSchema: 'write' })
    expect(await contents(writable)).toEqual(
      sessions.map((record) => ({ ...record, messages: record.messages.map(({ id: _, ...rest }) => rest) })),
    )
  })
})
