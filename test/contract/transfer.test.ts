import { createHash } from 'node:crypto'
import { existsSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { gunzipSync } from 'node:zlib'
import { describe, expect, test } from 'vitest'
import {
  CannotOpenError,
  type ExportOptions,
  SessionNotFoundError,
  type StateStore,
  StateStoreClosedError,
  TargetExistsError,
  TransactionMisuseError,
} from '../../src/index.ts'
import { kinds, newFolder, newPath, openForTest } from '../support/stores.ts'
import { collect, contents, messages, session, withoutIds } from '../support/transfer.ts'

const CALL = { id: 'c1', type: 'function', function: { name: 'zoo', arguments: '{"a": 1}' } }

/** The source of the sessions that these tests write: files of one kind have others in them. */
const SOURCE = 'telegram'

/** Two sessions, one the parent of the other, with something in every column that can be given. */
async function fill(store: StateStore): Promise<number[]> {
  await store.sessions.create({
    id: 'root',
    source: SOURCE,
    user_id: 'ada',
    model: 'm-1',
    model_config: { temperature: 0.5 },
    system_prompt: 'Be brief.',
    started_at: 1000.5,
  })
  await store.sessions.create({ id: 'child', source: SOURCE, parent_session_id: 'root', started_at: 2000 })
  await store.titles.set('root', '海象 #2')
  await store.usage.add('root', { input_tokens: 7, estimated_cost_usd: 0.25, billing_provider: 'p' })
  const ids = await store.messages.appendMany('root', [
    { role: 'user', content: 'walrus\nspotted', timestamp: 1001, token_count: 4 },
    {
      role: 'assistant',
      content: [{ type: 'text', text: '你好 🚀' }],
      tool_calls: [CALL],
      timestamp: 1002.25,
      finish_reason: 'tool_calls',
      reasoning: 'look',
      reasoning_details: [{ text: 'look', signature: 'x' }],
      codex_reasoning_items: { id: 1 },
    },
    { role: 'tool', content: '', tool_name: 'zoo', tool_call_id: 'c1', timestamp: 1003 },
  ])
  return [...ids, await store.messages.append('child', { role: 'user', content: null, timestamp: 2001 })]
}

const EMPTY = {
  user_id: null,
  model: null,
  model_config: null,
  system_prompt: null,
  parent_session_id: null,
  ended_at: null,
  end_reason: null,
  title: null,
  message_count: 0,
  tool_call_count: 0,
  input_tokens: 0,
  output_tokens: 0,
  cache_read_tokens: 0,
  cache_write_tokens: 0,
  reasoning_tokens: 0,
  billing_provider: null,
  billing_base_url: null,
  billing_mode: null,
  estimated_cost_usd: null,
  actual_cost_usd: null,
  cost_status: null,
  cost_source: null,
  pricing_version: null,
}

const target = (name: string) => join(newFolder(), name)
const filesBeside = (path: string) => readdirSync(dirname(path))

describe.each(kinds)('an export of $name', ({ open, existing, file }) => {
  test('is a header, the sessions by id with what is in them, and an end', async () => {
    const store = await open()
    const [first, second, third, fourth] = await fill(store)
    const before = Date.now() / 1000
    const records = await collect(store.transfer.exportAll({ source: SOURCE }))
    expect(records).toEqual([
      {
        type: 'header',
        format: 'hermes-state',
        version: 1,
        exported_at: expect.any(Number),
        schema_version: 6,
        sessions: 2,
        messages: 4,
      },
      {
        type: 'session',
        ...EMPTY,
        id: 'child',
        source: SOURCE,
        parent_session_id: 'root',
        started_at: 2000,
        message_count: 1,
        messages: [{ id: fourth, role: 'user', timestamp: 2001 }],
      },
      {
        type: 'session',
        ...EMPTY,
        id: 'root',
        source: SOURCE,
        user_id: 'ada',
        model: 'm-1',
        model_config: { temperature: 0.5 },
        system_prompt: 'Be brief.',
        started_at: 1000.5,
        title: '海象 #2',
        message_count: 3,
        tool_call_count: 1,
        input_tokens: 7,
        billing_provider: 'p',
        estimated_cost_usd: 0.25,
        messages: [
          { id: first, role: 'user', content: 'walrus\nspotted', timestamp: 1001, token_count: 4 },
          {
            id: second,
            role: 'assistant',
            content: [{ type: 'text', text: '你好 🚀' }],
            tool_calls: [CALL],
            timestamp: 1002.25,
            finish_reason: 'tool_calls',
            reasoning: 'look',
            reasoning_details: [{ text: 'look', signature: 'x' }],
            codex_reasoning_items: { id: 1 },
          },
          { id: third, role: 'tool', content: '', tool_name: 'zoo', tool_call_id: 'c1', timestamp: 1003 },
        ],
      },
      { type: 'end', sessions: 2, messages: 4, sha256: expect.stringMatching(/^[0-9a-f]{64}$/) },
    ])
    const [header] = records
    expect(header?.type === 'header' && header.exported_at).toBeGreaterThanOrEqual(before)
    expect(await store.transfer.exportSession('root')).toEqual(records[2])
  })

  test('holds what was there before, too', async () => {
    const store = await open()
    await fill(store)
    const records = await collect(store.transfer.exportAll())
    expect(records[0]).toMatchObject({ sessions: existing.sessions + 2, messages: existing.messages + 4 })
    expect(records.at(-1)).toMatchObject({ sessions: existing.sessions + 2, messages: existing.messages + 4 })
    const ids = records.flatMap((record) => (record.type === 'session' ? [record.id] : []))
    expect(ids).toEqual([
      'child',
      ...['old-empty', 'old-root', 'old-tip'].slice(0, existing.sessions),
      'root',
    ])
  })

  test('is a file for its owner alone, whose last line has the hash of the others', async () => {
    const store = await open()
    await fill(store)
    const path = target('sessions.jsonl')
    const result = await store.transfer.exportFile(path, { source: SOURCE })
    expect(result).toEqual({
      path,
      bytes: statSync(path).size,
      sessions: 2,
      messages: 4,
      not_carried: {},
      masked: {},
    })
    expect(filesBeside(path)).toEqual(['sessions.jsonl'])
    if (process.platform !== 'win32') expect(statSync(path).mode & 0o777).toBe(0o600)
    const text = readFileSync(path, 'utf8')
    const lines = text.split('\n')
    expect(lines).toHaveLength(5)
    expect(lines[4]).toBe('')
    const { sha256 } = JSON.parse(lines[3]!)
    const hashed = lines.slice(0, 3).map((line) => `${line}\n`)
    expect(sha256).toBe(createHash('sha256').update(hashed.join('')).digest('hex'))

    const packed = target('sessions.jsonl.gz')
    const { bytes } = await store.transfer.exportFile(packed, { source: SOURCE })
    expect(bytes).toBe(statSync(packed).size)
    const unpacked = gunzipSync(readFileSync(packed)).toString().split('\n')
    expect(unpacked.slice(1, 3)).toEqual(lines.slice(1, 3))
  })

  test('comes back in another store, where messages have new ids and all else is the same', async () => {
    const store = await open()
    await fill(store)
    const other = await open()
    await other.sessions.create({ id: 'first', source: 'cli' })
    await other.messages.append('first', { role: 'user', content: 'takes the first id' })
    const report = await other.transfer.importSessions(store.transfer.exportAll({ source: SOURCE }))
    expect(report).toEqual({
      imported: 2,
      messages: 4,
      // Parents come first.
      sessions: [
        { id: 'root', status: 'imported' },
        { id: 'child', status: 'imported' },
      ],
      not_carried: {},
    })
    expect(await contents(other, SOURCE)).toEqual(await contents(store, SOURCE))
    const hits = await other.search.messages('spotted', { sessionId: 'root' })
    expect(hits.map(({ session_id }) => session_id)).toEqual(['root'])
    expect((await other.maintenance.check()).ok).toBe(true)

    const path = target('all.jsonl.gz')
    await store.transfer.exportFile(path)
    const again = await other.transfer.importFile(path)
    expect(again).toMatchObject({ imported: 0, messages: 0 })
    expect(again.sessions.map(({ status }) => status)).toEqual(
      Array.from({ length: existing.sessions + 2 }, () => 'present'),
    )
  })

  test('of a session with many messages goes on in records of at most 1,000', async () => {
    const store = await open()
    await store.transfer.importSessions([
      session('long', { source: SOURCE, messages: messages(2500) }),
      session('short', { source: SOURCE, messages: messages(1) }),
    ])
    const records = await collect(store.transfer.exportAll({ source: SOURCE }))
    const shapes = records.map((record) =>
      'messages' in record && typeof record.messages === 'object'
        ? [record.type, record.messages.length, 'more' in record]
        : [record.type],
    )
    expect(shapes).toEqual([
      ['header'],
      ['session', 1000, true],
      ['messages', 1000, true],
      ['messages', 500, false],
      ['session', 1, false],
      ['end'],
    ])
    expect(records[2]).toMatchObject({ session_id: 'long' })
    const whole = await store.transfer.exportSession('long')
    expect(whole.messages.map(({ content }) => content)).toEqual(messages(2500).map((_, n) => `message ${n}`))
    expect(whole).not.toHaveProperty('more')
    const other = await open()
    await other.transfer.importSessions(records)
    expect(withoutIds(await other.transfer.exportSession('long'))).toEqual(withoutIds(whole))
  })

  test('sees nothing that is written meanwhile', async () => {
    const store = await open()
    await store.transfer.importSessions(
      Array.from({ length: 5 }, (_, n) => session(`s${n}`, { source: SOURCE, messages: messages(120) })),
    )
    const before = await contents(store, SOURCE)
    const seen: object[] = []
    for await (const record of store.transfer.exportAll({ source: SOURCE })) {
      if (record.type !== 'session') continue
      seen.push({ ...record, messages: record.messages.map(({ id: _, ...message }) => message) })
      await store.messages.append('s4', { role: 'user', content: 'later' })
      await store.titles.set('s3', `title ${seen.length}`)
      await store.sessions.delete('s2')
      await store.sessions.ensure({ id: `new ${seen.length}`, source: SOURCE })
    }
    expect(seen).toEqual(before)
    expect(await store.messages.count('s4')).toBe(125)
  })

  test('ends where the store is closed, and lets it close', async () => {
    const store = await open()
    await fill(store)
    const records = store.transfer.exportAll()
    await records.next()
    await store.close()
    await expect(records.next()).rejects.toBeInstanceOf(StateStoreClosedError)
    expect(await records.next()).toEqual({ done: true, value: undefined })
    await expect(collect(store.transfer.exportAll())).rejects.toBeInstanceOf(StateStoreClosedError)
    await expect(store.transfer.exportSession('root')).rejects.toBeInstanceOf(StateStoreClosedError)
    const path = target('sessions.jsonl')
    await expect(store.transfer.exportFile(path)).rejects.toBeInstanceOf(StateStoreClosedError)
    await expect(store.transfer.importSessions([session('s')])).rejects.toBeInstanceOf(StateStoreClosedError)
    expect(filesBeside(path)).toEqual([])
    expect(existsSync(store.info.path)).toBe(file)
  })

  test('and an import are refused inside a transaction', async () => {
    const store = await open()
    await fill(store)
    const path = target('sessions.jsonl')
    await store.transfer.exportFile(path)
    const refused = [
      async () => store.transfer.exportAll(),
      () => store.transfer.exportSession('root'),
      () => store.transfer.exportFile(target('sessions.jsonl')),
      () => store.transfer.importSessions([session('s')]),
      () => store.transfer.importFile(path),
    ]
    await store.transaction(async () => {
      for (const call of refused) await expect(call()).rejects.toBeInstanceOf(TransactionMisuseError)
    })
    expect(await store.sessions.exists('s')).toBe(false)
  })
})

test('sessions are chosen by source or by id', async () => {
  const store = await openForTest({ path: ':memory:' })
  for (const id of ['b', 'a', 'c'])
    await store.sessions.create({ id, source: id === 'c' ? 'cron' : 'cli', started_at: 1 })
  const idsOf = async (options: ExportOptions): Promise<(string | number)[]> =>
    (await collect(store.transfer.exportAll(options))).flatMap((record): (string | number)[] => {
      if (record.type === 'header') return [record.sessions]
      return record.type === 'session' ? [record.id] : []
    })
  expect(await idsOf({ source: 'cli' })).toEqual([2, 'a', 'b'])
  expect(await idsOf({ source: 'nowhere' })).toEqual([0])
  expect(await idsOf({ sessionIds: ['c', 'a', 'c'] })).toEqual([2, 'a', 'c'])
  expect(await idsOf({ sessionIds: [] })).toEqual([0])
  await expect(idsOf({ sessionIds: ['a', 'x'] })).rejects.toBeInstanceOf(SessionNotFoundError)
  await expect(store.transfer.exportSession('x')).rejects.toBeInstanceOf(SessionNotFoundError)
  const path = target('sessions.jsonl')
  await expect(store.transfer.exportFile(path, { sessionIds: ['x'] })).rejects.toBeInstanceOf(
    SessionNotFoundError,
  )
  expect(filesBeside(path)).toEqual([])
})

test('progress counts up to what the header says', async () => {
  const store = await openForTest({ path: ':memory:' })
  await store.transfer.importSessions([
    session('a', { messages: messages(1200) }),
    session('b', { messages: messages(3) }),
  ])
  const steps: object[] = []
  await collect(store.transfer.exportAll({ onProgress: (progress) => steps.push(progress) }))
  const totals = { total_sessions: 2, total_messages: 1203 }
  expect(steps).toEqual([
    { sessions: 1, messages: 1000, ...totals },
    { sessions: 1, messages: 1200, ...totals },
    { sessions: 2, messages: 1203, ...totals },
  ])
})

describe('nothing is written', () => {
  test('over a target that is there, or that appears meanwhile', async () => {
    const store = await openForTest({ path: newPath() })
    await fill(store)
    const path = target('sessions.jsonl')
    const export_ = store.transfer.exportFile(path, { onProgress: () => writeFileSync(path, 'precious') })
    await expect(export_).rejects.toBeInstanceOf(TargetExistsError)
    await expect(store.transfer.exportFile(path)).rejects.toMatchObject({ code: 'TARGET_EXISTS', path })
    expect(filesBeside(path)).toEqual(['sessions.jsonl'])
    expect(readFileSync(path, 'utf8')).toBe('precious')
  })

  test('for bad arguments, or in a folder that is not there', async () => {
    const store = await openForTest({ path: newPath() })
    for (const path of ['', ':memory:', 'a\0b', undefined, 7])
      await expect(store.transfer.exportFile(path as string)).rejects.toBeInstanceOf(TypeError)
    for (const options of [{ source: 7 }, { sessionIds: 'a' }, { source: 'a', sessionIds: ['b'] }]) {
      const path = target('sessions.jsonl')
      await expect(store.transfer.exportFile(path, options as object)).rejects.toBeInstanceOf(TypeError)
      expect(filesBeside(path)).toEqual([])
    }
    const nowhere = join(newFolder(), 'missing', 'sessions.jsonl')
    await expect(store.transfer.exportFile(nowhere)).rejects.toBeInstanceOf(CannotOpenError)
  })

  test.each(['sessions.jsonl', 'sessions.jsonl.gz'])('into %s when it is given up', async (name) => {
    const store = await openForTest({ path: newPath() })
    await fill(store)
    const path = target(name)
    const reason = new Error('enough')
    const signal = AbortSignal.abort(reason)
    await expect(store.transfer.exportFile(path, { signal })).rejects.toBe(reason)
    const giveUp = new AbortController()
    const aborted = store.transfer.exportFile(path, {
      signal: giveUp.signal,
      onProgress: () => giveUp.abort(reason),
    })
    await expect(aborted).rejects.toBe(reason)
    const failing = store.transfer.exportFile(path, {
      onProgress: () => {
        throw reason
      },
    })
    await expect(failing).rejects.toBe(reason)
    expect(filesBeside(path)).toEqual([])
    expect(await store.transfer.exportFile(path)).toMatchObject({ messages: 4 })
  })
})
