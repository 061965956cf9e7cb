import { beforeEach, describe, expect, onTestFinished, test, vi } from 'vitest'
import {
  DatabaseError,
  type Message,
  type NewMessage,
  SessionEndedError,
  SessionNotFoundError,
  type StateStore,
  type ToolCall,
} from '../../src/index.ts'
import { eventsOf, kinds, poison, rawRow, rawRows, rawRun } from '../support/stores.ts'

const call = (id: string, name = 'shell'): ToolCall => ({
  id,
  type: 'function',
  function: { name, arguments: '{"command":"ls"}' },
})

/** Every field a message can have. */
const full = {
  role: 'assistant',
  content: 'Let me look.',
  tool_call_id: 'c0',
  tool_name: 'shell',
  tool_calls: [call('c1'), call('c2')],
  timestamp: 3000.5,
  token_count: 7,
  finish_reason: 'tool_calls',
  reasoning: 'I should look.',
  reasoning_details: [{ type: 'thinking', signature: 'abc', index: 0 }],
  codex_reasoning_items: { id: 'rs_1', encrypted_content: 'zzz' },
} satisfies NewMessage

const invalid: [string, unknown][] = [
  ['no message', undefined],
  ['null', null],
  ['text', 'hello'],
  ['an array', [{ role: 'user', content: 'x' }]],
  ['no role', { content: 'x' }],
  ['an empty role', { role: '', content: 'x' }],
  ['role null', { role: null, content: 'x' }],
  ['a number as role', { role: 1, content: 'x' }],
  ['a number as content', { role: 'user', content: 5 }],
  ['a boolean as content', { role: 'user', content: true }],
  ['a function as content', { role: 'user', content: () => 'x' }],
  ['a BigInt as content', { role: 'user', content: 5n }],
  ['tool calls as text', { role: 'assistant', tool_calls: '[{"id":"c1"}]' }],
  ['tool calls as an object', { role: 'assistant', tool_calls: { id: 'c1' } }],
  ['a text among the tool calls', { role: 'assistant', tool_calls: ['c1'] }],
  ['null among the tool calls', { role: 'assistant', tool_calls: [null] }],
  ['a number as tool call id', { role: 'tool', tool_call_id: 1 }],
  ['a number as tool name', { role: 'tool', tool_name: 1 }],
  ['a date as time', { role: 'user', timestamp: new Date() }],
  ['text as time', { role: 'user', timestamp: '3000' }],
  ['NaN as time', { role: 'user', timestamp: Number.NaN }],
  ['an endless time', { role: 'user', timestamp: Number.POSITIVE_INFINITY }],
  ['time null', { role: 'user', timestamp: null }],
  ['negative tokens', { role: 'user', token_count: -1 }],
  ['half a token', { role: 'user', token_count: 0.5 }],
  ['unsafe tokens', { role: 'user', token_count: 2 ** 53 }],
  ['an object as reasoning', { role: 'assistant', reasoning: {} }],
  ['a number as finish reason', { role: 'assistant', finish_reason: 1 }],
]

const circle: { self?: unknown } = {}
circle.self = circle

const notJson: [unknown, RegExp][] = [
  [[{ n: 5n }], /\[0\]\.n is a bigint/],
  [{ at: new Date(0) }, /\.at is a Date/],
  [{ map: new Map([[1, 2]]) }, /\.map is a Map/],
  [{ set: new Set([1]) }, /\.set is a Set/],
  [{ bytes: new Uint8Array(2) }, /\.bytes is a Uint8Array/],
  [circle, /\.self contains itself/],
  [{ deep: [1, () => 2] }, /\.deep\[1\] is a function/],
  [{ mark: Symbol('x') }, /\.mark is a symbol/],
  [[1, undefined], /\[1\] is a undefined/],
  [{ t: Number.NaN }, /\.t is NaN/],
  [{ t: Number.NEGATIVE_INFINITY }, /\.t is -Infinity/],
  [{ big: 2 ** 53 }, /\.big is 9007199254740992/],
]

describe.each(kinds)('messages in $name', (kind) => {
  let store: StateStore
  beforeEach(async () => {
    store = await kind.open()
    await store.sessions.create({ id: 's', source: 'new', started_at: 2000 })
  })

  const say = (content: string, timestamp?: number) =>
    store.messages.append('s', { role: 'user', content, timestamp })
  const contents = async (session = 's') => (await store.messages.list(session)).map(({ content }) => content)
  const counters = async (session = 's') => {
    const { message_count, tool_call_count } = (await store.sessions.get(session))!
    return { message_count, tool_call_count }
  }
  const rawMessages = (session = 's') =>
    rawRows<Record<string, unknown>>(
      store,
      'select * from messages where session_id = ? order by id',
      session,
    )

  describe('append', () => {
    test('stores every field', async () => {
      const id = await store.messages.append('s', full)
      expect(id).toBe(kind.existing.messages + 1)
      const expected: Message = { id, session_id: 's', ...full }
      expect(await store.messages.list('s')).toStrictEqual([expected])
      expect(await store.messages.get(id)).toStrictEqual(expected)
      expect(await rawRow(store, 'select * from messages where id = ?', id)).toEqual({
        id,
        session_id: 's',
        role: 'assistant',
        content: 'Let me look.',
        tool_call_id: 'c0',
        tool_calls:
          '[{"id":"c1","type":"function","function":{"name":"shell","arguments":"{\\"command\\":\\"ls\\"}"}},' +
          '{"id":"c2","type":"function","function":{"name":"shell","arguments":"{\\"command\\":\\"ls\\"}"}}]',
        tool_name: 'shell',
        timestamp: 3000.5,
        token_count: 7,
        finish_reason: 'tool_calls',
        reasoning: 'I should look.',
        reasoning_details: '[{"type":"thinking","signature":"abc","index":0}]',
        codex_reasoning_items: '{"id":"rs_1","encrypted_content":"zzz"}',
      })
    })

    test('stores what is missing as NULL, and the time as now', async () => {
      const before = Date.now() / 1000
      const id = await store.messages.append('s', { role: 'user' })
      const after = Date.now() / 1000
      const row = await rawRow<Record<string, unknown>>(store, 'select * from messages where id = ?', id)
      const { timestamp, ...others } = row
      expect(timestamp).toBeGreaterThanOrEqual(before)
      expect(timestamp).toBeLessThanOrEqual(after)
      expect(others).toEqual({
        id,
        session_id: 's',
        role: 'user',
        content: null,
        tool_call_id: null,
        tool_calls: null,
        tool_name: null,
        token_count: null,
        finish_reason: null,
        reasoning: null,
        reasoning_details: null,
        codex_reasoning_items: null,
      })
    })

    test('stores an empty list of tool calls as none', async () => {
      const id = await store.messages.append('s', { role: 'assistant', content: 'x', tool_calls: [] })
      expect((await store.messages.get(id))?.tool_calls).toBeNull()
      expect(await rawRow(store, 'select tool_calls from messages where id = ?', id)).toEqual({
        tool_calls: null,
      })
    })

    test('keeps further fields of a tool call', async () => {
      const tool_calls = [{ ...call('c1'), extra_content: { google: { signature: 'x' } } }]
      await store.messages.append('s', { role: 'assistant', tool_calls })
      expect((await store.messages.list('s'))[0]?.tool_calls).toStrictEqual(tool_calls)
    })

    test('tells an empty text from none', async () => {
      await say('')
      await store.messages.append('s', { role: 'user', content: null })
      expect(await contents()).toEqual(['', null])
    })

    test('counts messages, and the calls that assistant messages make', async () => {
      await say('do two things')
      await store.messages.append('s', { role: 'assistant', tool_calls: [call('c1'), call('c2')] })
      await store.messages.append('s', { role: 'tool', tool_call_id: 'c1', content: 'one' })
      await store.messages.append('s', { role: 'tool', tool_call_id: 'c2', content: 'two' })
      await store.messages.append('s', { role: 'assistant', tool_calls: [call('c3')] })
      expect(await counters()).toEqual({ message_count: 5, tool_call_count: 3 })
    })

    test('counts from 0 where a counter is NULL', async () => {
      await rawRun(store, "update sessions set message_count = null, tool_call_count = null where id = 's'")
      await store.messages.append('s', { role: 'assistant', tool_calls: [call('c1')] })
      expect(await counters()).toEqual({ message_count: 1, tool_call_count: 1 })
    })

    test('refuses a session that does not exist', async () => {
      const append = store.messages.append('ghost', { role: 'user', content: 'x' })
      await expect(append).rejects.toThrow(SessionNotFoundError)
      await expect(append).rejects.toMatchObject({ code: 'SESSION_NOT_FOUND', session_id: 'ghost' })
      expect(await store.messages.count()).toBe(kind.existing.messages)
    })

    test('refuses what is not a message, and writes nothing', async () => {
      for (const [what, message] of invalid)
        await expect(store.messages.append('s', message as NewMessage), what).rejects.toThrow(TypeError)
      for (const id of ['', 'a\ud800', 'a\0', null, 5])
        await expect(store.messages.append(id as string, { role: 'user' })).rejects.toThrow(TypeError)
      expect(await store.messages.count('s')).toBe(0)
      expect(await counters()).toEqual({ message_count: 0, tool_call_count: 0 })
    })

    test('says what to do with tool calls given as text', async () => {
      await expect(
        store.messages.append('s', { role: 'assistant', tool_calls: '[]' as never }),
      ).rejects.toThrow(/^message\.tool_calls must be an array of calls .* parse it first/)
    })

    test('refuses values that JSON cannot carry, names their place, and writes nothing', async () => {
      for (const [value, where] of notJson) {
        const json = value as never
        for (const message of [
          { role: 'user', content: json },
          { role: 'assistant', reasoning_details: json },
          { role: 'assistant', codex_reasoning_items: json },
          { role: 'assistant', tool_calls: [{ ...call('c1'), extra: json }] },
        ]) {
          await expect(store.messages.append('s', message)).rejects.toThrow(where)
          await expect(store.messages.append('s', message)).rejects.toThrow(TypeError)
        }
      }
      expect(await store.messages.count('s')).toBe(0)
      expect(await say('still fine')).toBe(kind.existing.messages + 1)
    })

    test('leaves undefined properties out, and takes one object in two places', async () => {
      const shared = { a: 1 }
      await store.messages.append('s', {
        role: 'user',
        content: { first: shared, second: shared, nothing: undefined },
      })
      expect(await contents()).toStrictEqual([{ first: { a: 1 }, second: { a: 1 } }])
    })

    test('replaces lone surrogates in every text', async () => {
      const bad = 'bad \ud800 text'
      const good = 'bad \ufffd text'
      const id = await store.messages.append('s', {
        role: `tool\udc00`,
        content: bad,
        tool_call_id: bad,
        tool_name: bad,
        finish_reason: bad,
        reasoning: bad,
      })
      expect(await store.messages.get(id)).toMatchObject({
        role: 'tool\ufffd',
        content: good,
        tool_call_id: good,
        tool_name: good,
        finish_reason: good,
        reasoning: good,
      })
      expect(await rawRow(store, 'select hex(content) as bytes from messages where id = ?', id)).toEqual({
        bytes: Buffer.from(good).toString('hex').toUpperCase(),
      })
      expect(eventsOf(store, 'ill-formed-text')).toEqual([])
    })

    test('gives ids in the order of the calls, also when they arrive together', async () => {
      const ids = await Promise.all(Array.from({ length: 40 }, (_, index) => say(`m${index}`)))
      expect(ids).toEqual(Array.from({ length: 40 }, (_, index) => kind.existing.messages + 1 + index))
      expect(await contents()).toEqual(Array.from({ length: 40 }, (_, index) => `m${index}`))
      expect(await counters()).toEqual({ message_count: 40, tool_call_count: 0 })
    })

    test('one that fails takes none of its neighbours with it', async () => {
      await poison(store)
      const results = await Promise.allSettled(['a', 'b', 'poison', 'c', 'poison', 'd'].map((c) => say(c)))
      expect(results.map(({ status }) => status)).toEqual([
        'fulfilled',
        'fulfilled',
        'rejected',
        'fulfilled',
        'rejected',
        'fulfilled',
      ])
      expect(await contents()).toEqual(['a', 'b', 'c', 'd'])
      expect(await counters()).toEqual({ message_count: 4, tool_call_count: 0 })
    })

    test('one whose failure ends the whole transaction takes none of its neighbours with it', async () => {
      await poison(store, 'rollback')
      const results = await Promise.allSettled(['a', 'poison', 'b'].map((c) => say(c)))
      expect(results.map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'fulfilled'])
      expect(await contents()).toEqual(['a', 'b'])
    })

    test("rejects with SQLite's error as the cause", async () => {
      await poison(store)
      const append = say('poison')
      await expect(append).rejects.toThrow(DatabaseError)
      await expect(append).rejects.toMatchObject({
        code: 'DATABASE',
        sqlite_code: 'SQLITE_CONSTRAINT_TRIGGER',
        cause: { message: 'poisoned' },
      })
    })
  })

  describe('what else a message may carry', () => {
    test('fields without a column are left out, with one event each', async () => {
      for (let index = 0; index < 2; index++)
        await store.messages.append('s', {
          role: 'assistant',
          content: 'kept',
          refusal: null,
          annotations: [],
          audio: undefined,
          name: '',
          api_content: 'lost',
        } as NewMessage)
      expect(await contents()).toEqual(['kept', 'kept'])
      expect(eventsOf(store, 'field-not-stored')).toMatchObject([{ level: 'warning', field: 'api_content' }])
    })

    test('id and session_id of a message that was read are no such fields', async () => {
      await store.messages.append('s', { ...full, id: 99, session_id: 'other' } as NewMessage)
      expect(await store.messages.list('s')).toMatchObject([
        { id: kind.existing.messages + 1, session_id: 's' },
      ])
      expect(eventsOf(store, 'field-not-stored')).toEqual([])
    })

    test('an unusual role is stored, with one event', async () => {
      await store.messages.append('s', { role: 'wizard', content: 'a' })
      await store.messages.append('s', { role: 'wizard', content: 'b' })
      for (const role of ['system', 'user', 'assistant', 'tool']) await store.messages.append('s', { role })
      expect((await store.messages.list('s')).slice(0, 2)).toMatchObject([
        { role: 'wizard' },
        { role: 'wizard' },
      ])
      expect(eventsOf(store, 'unusual-role')).toMatchObject([{ level: 'info', role: 'wizard' }])
    })
  })

  describe('an ended session', () => {
    test('keeps a late message, stays ended, and the event names where the conversation goes on', async () => {
      await store.sessions.end('s', 'compression')
      await store.sessions.create({ id: 't', source: 'new', parent_session_id: 's', started_at: 2001 })
      await store.sessions.end('t', 'compression')
      await store.sessions.create({ id: 'u', source: 'new', parent_session_id: 't', started_at: 2002 })
      const ended = await store.sessions.get('s')
      const message_id = await say('late', 4000)
      expect(await contents()).toEqual(['late'])
      expect(await store.sessions.get('s')).toStrictEqual({ ...ended, message_count: 1 })
      expect(eventsOf(store, 'append-to-ended-session')).toMatchObject([
        { level: 'warning', session_id: 's', message_id, end_reason: 'compression', tip: 'u' },
      ])
      const { last_active } = (await store.sessions.list({ source: 'new' })).find(({ id }) => id === 's')!
      expect(last_active).toBe(4000)
    })

    test('names no tip where it did not end by compression', async () => {
      await store.sessions.end('s', 'user_exit')
      await store.sessions.create({ id: 't', source: 'new', parent_session_id: 's' })
      const [, message_id] = await store.messages.appendMany('s', [{ role: 'user' }, { role: 'user' }])
      expect(eventsOf(store, 'append-to-ended-session')).toMatchObject([
        { session_id: 's', message_id, end_reason: 'user_exit', tip: null },
      ])
    })

    test('a circle of compressed sessions does not stop the append', async () => {
      await store.sessions.create({ id: 't', source: 'new', parent_session_id: 's' })
      await rawRun(
        store,
        "update sessions set parent_session_id = 't', ended_at = 1, end_reason = 'compression' where id = 's'",
      )
      await rawRun(store, "update sessions set ended_at = 1, end_reason = 'compression' where id = 't'")
      await say('late')
      expect(await contents()).toEqual(['late'])
    })

    test('refuses with requireOpen, and counts nothing', async () => {
      await say('early')
      await store.sessions.end('s', 'user_exit')
      const append = store.messages.append('s', { role: 'user', content: 'x' }, { requireOpen: true })
      await expect(append).rejects.toThrow(SessionEndedError)
      await expect(append).rejects.toMatchObject({
        code: 'SESSION_ENDED',
        session_id: 's',
        end_reason: 'user_exit',
      })
      await expect(
        store.messages.appendMany('s', [{ role: 'user', content: 'x' }], { requireOpen: true }),
      ).rejects.toThrow(SessionEndedError)
      expect(await contents()).toEqual(['early'])
      expect(await counters()).toEqual({ message_count: 1, tool_call_count: 0 })
      expect(eventsOf(store, 'append-to-ended-session')).toEqual([])

      await store.sessions.reopen('s')
      await store.messages.append('s', { role: 'user', content: 'x' }, { requireOpen: true })
      expect(await contents()).toEqual(['early', 'x'])
    })
  })

  describe('structured content', () => {
    const stored = async (id: number) =>
      (await rawRow<{ content: string | null }>(store, 'select content from messages where id = ?', id))
        .content
    const beside = async (id: number) =>
      kind.additions
        ? rawRows(store, 'select content from hs_structured_content where message_id = ?', id)
        : []

    test.each<[string, NewMessage['content'], string]>([
      ['a text part', [{ type: 'text', text: 'hi' }], 'hi'],
      [
        'text parts around an image',
        [
          { type: 'text', text: 'look' },
          { type: 'image_url', image_url: { url: 'data:image/png;base64,AAAA' } },
          { type: 'text', value: 'there' },
        ],
        'look\nthere',
      ],
      ['no parts', [], ''],
      ['an object', { a: 1, b: [true, null] }, '{"a":1,"b":[true,null]}'],
      ['a lone surrogate in a part', [{ type: 'text', text: 'a\ud800' }], 'a\ufffd'],
    ])('%s comes back exactly', async (_, content, visible) => {
      const id = await store.messages.append('s', { role: 'user', content })
      expect((await store.messages.get(id))?.content).toStrictEqual(content)
      expect(await contents()).toStrictEqual([content])
      expect(await store.messages.conversation('s')).toStrictEqual([{ role: 'user', content }])
      const json = JSON.stringify(content)
      expect(await stored(id)).toBe(kind.additions ? visible : `\0json:${json}`)
      expect(await beside(id)).toEqual(kind.additions ? [{ content: json }] : [])
    })

    test('an object stands in the text column with a part of its JSON only', async () => {
      const content = { words: 'word '.repeat(50_000) }
      const id = await store.messages.append('s', { role: 'user', content })
      expect((await store.messages.get(id))?.content).toStrictEqual(content)
      if (kind.additions) expect((await stored(id))?.length).toBeLessThan(10_000)
    })

    test('text that begins with the marker is not taken for JSON', async () => {
      for (const content of ['{"a":1}', '[]', '"text"', '', '{bad', '\ufffd'].map(
        (text) => `\0json:${text}`,
      )) {
        const id = await say(content)
        expect((await store.messages.get(id))?.content).toBe(content)
        expect(await stored(id)).toBe(`\0json:${JSON.stringify(content)}`)
        expect(await beside(id)).toEqual([])
      }
      expect(eventsOf(store, 'broken-json')).toEqual([])
    })

    test('text that only resembles the marker is stored as it is', async () => {
      for (const content of ['\0', '\0jso', 'json:{"a":1}', ' \0json:{}', 'a\0b']) {
        const id = await say(content)
        expect((await store.messages.get(id))?.content).toBe(content)
        expect(await stored(id)).toBe(content)
      }
    })

    test('a text part that begins with the marker is not taken for JSON by other readers', async () => {
      const content = [{ type: 'text', text: '\0json:{"a":1}' }]
      const id = await store.messages.append('s', { role: 'user', content })
      expect(await contents()).toStrictEqual([content])
      const text = (await stored(id))!
      const seen: unknown = text.startsWith('\0json:') ? JSON.parse(text.slice(6)) : text
      expect(seen).toEqual(kind.additions ? '\0json:{"a":1}' : content)
    })

    test("Hermes's way to store it is understood everywhere", async () => {
      await rawRun(
        store,
        `insert into messages (session_id, role, content, timestamp) values
           ('s', 'user', char(0) || 'json:[{"type": "text", "text": "hi"}]', 1),
           ('s', 'user', char(0) || 'json:"just text"', 2)`,
      )
      expect(await contents()).toStrictEqual([[{ type: 'text', text: 'hi' }], 'just text'])
      expect(await store.messages.conversation('s')).toStrictEqual([
        { role: 'user', content: [{ type: 'text', text: 'hi' }] },
        { role: 'user', content: 'just text' },
      ])
    })

    test('broken JSON reads as its text, with an event', async () => {
      await rawRun(
        store,
        `insert into messages (session_id, role, content, timestamp) values
           ('s', 'user', char(0) || 'json:{bad', 1), ('s', 'user', char(0) || 'json:5', 2), ('s', 'user', 'ok', 3)`,
      )
      expect(await contents()).toEqual(['\0json:{bad', '\0json:5', 'ok'])
      const first = kind.existing.messages + 1
      expect(eventsOf(store, 'broken-json')).toMatchObject([
        { table: 'messages', column: 'content', id: first },
        { table: 'messages', column: 'content', id: first + 1 },
      ])
    })

    test('whoever rewrites the text replaces the JSON', async () => {
      const id = await store.messages.append('s', { role: 'user', content: [{ type: 'text', text: 'a' }] })
      await rawRun(store, 'update messages set content = ? where id = ?', 'rewritten', id)
      expect(await contents()).toEqual(['rewritten'])
      expect(await beside(id)).toEqual([])
    })

    test('goes with its message, whoever deletes it', async () => {
      const content = [{ type: 'text', text: 'a' }]
      const ids = await store.messages.appendMany('s', [
        { role: 'user', content },
        { role: 'user', content },
      ])
      await rawRun(store, 'delete from messages where id = ?', ids[0])
      expect(await beside(ids[0]!)).toEqual([])
      await store.messages.clear('s')
      expect(await beside(ids[1]!)).toEqual([])
    })
  })

  test('reasoning comes back exactly, whatever JSON it is', async () => {
    for (const value of [[], {}, 'text', '', 0, false, [null, { a: [1.5, 'x'] }]]) {
      await store.messages.replaceAll('s', [
        { role: 'assistant', reasoning_details: value, codex_reasoning_items: value },
      ])
      const fields = { reasoning_details: value, codex_reasoning_items: value }
      expect(await store.messages.list('s')).toMatchObject([fields])
      expect(await store.messages.conversation('s')).toStrictEqual([
        { role: 'assistant', content: null, ...fields },
      ])
    }
  })

  describe('cells that other programs wrote', () => {
    test('broken JSON degrades its field, with an event, and stops no read', async () => {
      const id = await store.messages.append('s', full)
      await store.messages.append('s', { ...full, content: 'fine' })
      await rawRun(
        store,
        `update messages set tool_calls = '[{"id":', reasoning_details = 'free text', codex_reasoning_items = ''
         where id = ?`,
        id,
      )
      const [broken, fine] = await store.messages.list('s')
      expect(broken).toStrictEqual({
        ...fine,
        id,
        content: full.content,
        tool_calls: [],
        reasoning_details: null,
        codex_reasoning_items: null,
      })
      expect(fine).toMatchObject({ ...full, content: 'fine' })
      expect(await store.messages.get(id)).toStrictEqual(broken)
      expect((await store.messages.conversation('s'))[0]).toStrictEqual({
        role: 'assistant',
        content: full.content,
        tool_call_id: 'c0',
        tool_name: 'shell',
        finish_reason: 'tool_calls',
        reasoning: 'I should look.',
      })
      expect(eventsOf(store, 'broken-json').map(({ column, id, level }) => ({ column, id, level }))).toEqual([
        { column: 'tool_calls', id, level: 'warning' },
        { column: 'reasoning_details', id, level: 'warning' },
        { column: 'codex_reasoning_items', id, level: 'warning' },
      ])
      expect(await rawRow(store, 'select tool_calls from messages where id = ?', id)).toEqual({
        tool_calls: '[{"id":',
      })
    })

    test('tool calls that are JSON of another kind read as none, with an event', async () => {
      const ids = await store.messages.appendMany('s', [full, full, full])
      for (const [index, text] of ['{"id":"c1"}', '"[]"', '5'].entries())
        await rawRun(store, 'update messages set tool_calls = ? where id = ?', text, ids[index])
      expect((await store.messages.list('s')).map(({ tool_calls }) => tool_calls)).toEqual([[], [], []])
      expect(eventsOf(store, 'broken-json').map(({ id }) => id)).toEqual(ids)
    })

    test('JSON null reads as null', async () => {
      await store.messages.append('s', full)
      await rawRun(
        store,
        "update messages set tool_calls = 'null', reasoning_details = 'null' where session_id = 's'",
      )
      expect(await store.messages.list('s')).toMatchObject([{ tool_calls: null, reasoning_details: null }])
      expect(eventsOf(store, 'broken-json')).toEqual([])
    })

    test('BLOBs read as text', async () => {
      await store.messages.append('s', full)
      await rawRun(
        store,
        `update messages set content = cast('Grüße' as blob), tool_name = cast('shell2' as blob),
           tool_calls = cast('[{"id":"b"}]' as blob), reasoning = x'48e2', finish_reason = x''`,
      )
      expect((await store.messages.list('s'))[0]).toMatchObject({
        content: 'Grüße',
        tool_name: 'shell2',
        tool_calls: [{ id: 'b' }],
        reasoning: 'H\ufffd',
        finish_reason: '',
      })
    })

    test('bytes that are not UTF-8 read as U+FFFD, with one event, and stay in the file', async () => {
      const id = await say('x')
      await rawRun(store, "update messages set content = cast(x'48690ae29c' as text) where id = ?", id)
      expect(await contents()).toEqual(['Hi\n\ufffd'])
      await say('another')
      await store.messages.list('s')
      expect(await store.sessions.list({ source: 'new' })).toHaveLength(1)
      expect(eventsOf(store, 'ill-formed-text')).toMatchObject([
        { level: 'warning', table: 'messages', column: 'content', id },
      ])
      expect(await rawRow(store, 'select hex(content) as bytes from messages where id = ?', id)).toEqual({
        bytes: '48690AE29C',
      })
    })

    test('U+FFFD that somebody typed is not reported', async () => {
      await say('what \ufffd is')
      expect(await contents()).toEqual(['what \ufffd is'])
      expect(eventsOf(store, 'ill-formed-text')).toEqual([])
    })
  })

  describe('order and pages', () => {
    test('messages are ordered by id, whatever their time', async () => {
      await store.messages.append('s', { role: 'user', timestamp: 1001 })
      await store.messages.append('s', { role: 'assistant', timestamp: 1002 })
      await store.messages.append('s', { role: 'tool', timestamp: 995 })
      await store.messages.append('s', { role: 'assistant', timestamp: 1003 })
      const messages = await store.messages.list('s')
      expect(messages.map(({ role, timestamp }) => [role, timestamp])).toEqual([
        ['user', 1001],
        ['assistant', 1002],
        ['tool', 995],
        ['assistant', 1003],
      ])
      expect((await store.messages.conversation('s')).map(({ role }) => role)).toEqual([
        'user',
        'assistant',
        'tool',
        'assistant',
      ])
    })

    test('pages hold what they are asked for', async () => {
      await store.sessions.create({ id: 'between', source: 'new' })
      const ids: number[] = []
      for (let index = 0; index < 6; index++) {
        ids.push(await say(`m${index}`, 1000 - index))
        await store.messages.append('between', { role: 'user', content: 'other' })
      }
      const all = await store.messages.list('s')
      const page = async (options: Parameters<StateStore['messages']['list']>[1]) =>
        (await store.messages.list('s', options)).map(({ content }) => content)
      expect(await page({ limit: 2 })).toEqual(['m0', 'm1'])
      expect(await page({ limit: 0 })).toEqual([])
      expect(await page({ limit: 100 })).toHaveLength(6)
      expect(await page({ after: all[1], limit: 2 })).toEqual(['m2', 'm3'])
      expect(await page({ after: ids[3] })).toEqual(['m4', 'm5'])
      expect(await page({ after: all[5] })).toEqual([])
      expect(await page({ after: 0 })).toHaveLength(6)
      expect(await page({ before: all[4] })).toEqual(['m0', 'm1', 'm2', 'm3'])
      expect(await page({ before: all[4], limit: 2 })).toEqual(['m2', 'm3'])
      expect(await page({ before: ids[0], limit: 2 })).toEqual([])
      expect(await page({ latest: 2 })).toEqual(['m4', 'm5'])
      expect(await page({ latest: 2, before: all[5] })).toEqual(['m3', 'm4'])
      expect(await page({ latest: 9, after: all[3] })).toEqual(['m4', 'm5'])
      expect(await page({ latest: 0 })).toEqual([])
      expect(await page({ after: all[1], before: all[5] })).toEqual(['m2', 'm3', 'm4'])
      expect(await page({ after: all[1], before: all[5], limit: 2 })).toEqual(['m2', 'm3'])
    })

    test('refuses pages that make no sense', async () => {
      for (const options of [
        { limit: -1 },
        { limit: 1.5 },
        { limit: Number.NaN },
        { limit: 2 ** 53 },
        { limit: '5' },
        { latest: -1 },
        { latest: '5' },
        { latest: 5, limit: 5 },
        { after: -1 },
        { after: 1.5 },
        { after: '3' },
        { after: null },
        { after: {} },
        { before: { id: '3' } },
        { before: [] },
      ])
        await expect(store.messages.list('s', options as never), JSON.stringify(options)).rejects.toThrow(
          TypeError,
        )
      await expect(store.messages.list('')).rejects.toThrow(TypeError)
    })

    test('a session that does not exist has no messages', async () => {
      expect(await store.messages.list('ghost')).toEqual([])
      expect(await store.messages.conversation('ghost')).toEqual([])
      expect(await store.messages.count('ghost')).toBe(0)
      for await (const message of store.messages.iterate('ghost')) expect(message).toBeUndefined()
    })

    test('iterate gives every message once, also those that are written meanwhile', async () => {
      await store.messages.appendMany(
        's',
        Array.from({ length: 600 }, (_, index) => ({ role: 'user', content: `m${index}` })),
      )
      const seen: unknown[] = []
      for await (const { content } of store.messages.iterate('s')) {
        if (seen.length === 0) await say('meanwhile')
        seen.push(content)
      }
      expect(seen).toEqual([...Array.from({ length: 600 }, (_, index) => `m${index}`), 'meanwhile'])
    })

    test('get finds by id', async () => {
      const id = await say('x')
      expect(await store.messages.get(id)).toMatchObject({ id, content: 'x' })
      expect(await store.messages.get(id + 1)).toBeNull()
      for (const wrong of [-1, 0.5, '1', null])
        await expect(store.messages.get(wrong as number)).rejects.toThrow(TypeError)
    })

    test('count counts rows, of a session and of the file', async () => {
      await say('a')
      await rawRun(store, "update sessions set message_count = 50 where id = 's'")
      expect(await store.messages.count('s')).toBe(1)
      expect(await store.messages.count()).toBe(kind.existing.messages + 1)
      await expect(store.messages.count('')).rejects.toThrow(TypeError)
    })
  })

  test('conversation gives what a provider wants back, and nothing else', async () => {
    await store.messages.appendMany('s', [
      { role: 'system', content: 'Be brief.', token_count: 3, timestamp: 1 },
      { ...full, role: 'user', content: 'hi', tool_calls: null, tool_call_id: null, tool_name: null },
      full,
      { role: 'tool', content: 'a.txt', tool_call_id: 'c1', tool_name: 'shell', finish_reason: 'x' },
      { role: 'assistant', content: 'Done.', finish_reason: 'stop' },
      { role: 'assistant', content: null },
      { role: 'user', content: '' },
    ])
    expect(await store.messages.conversation('s')).toStrictEqual([
      { role: 'system', content: 'Be brief.' },
      { role: 'user', content: 'hi' },
      {
        role: 'assistant',
        content: 'Let me look.',
        tool_call_id: 'c0',
        tool_name: 'shell',
        tool_calls: [call('c1'), call('c2')],
        finish_reason: 'tool_calls',
        reasoning: 'I should look.',
        reasoning_details: [{ type: 'thinking', signature: 'abc', index: 0 }],
        codex_reasoning_items: { id: 'rs_1', encrypted_content: 'zzz' },
      },
      { role: 'tool', content: 'a.txt', tool_call_id: 'c1', tool_name: 'shell' },
      { role: 'assistant', content: 'Done.', finish_reason: 'stop' },
      { role: 'assistant', content: null },
      { role: 'user', content: '' },
    ])
  })

  describe('copies', () => {
    const conversation: NewMessage[] = [
      { role: 'user', content: [{ type: 'text', text: 'look' }, { type: 'image' }], timestamp: 1001 },
      { ...full, timestamp: 995.125 },
      {
        role: 'tool',
        content: '\0json:{"forged":1}',
        tool_call_id: 'c1',
        tool_name: 'shell',
        timestamp: 990,
      },
      { role: 'assistant', content: '', reasoning_details: 'x', timestamp: 1002 },
      { role: 'user', timestamp: 1003, token_count: 0 },
    ]
    const comparable = async (session: string) => ({
      messages: (await rawMessages(session)).map(({ id: _, session_id: __, ...columns }) => columns),
      structured: kind.additions
        ? await rawRows(
            store,
            `select structured.content from hs_structured_content as structured
             join messages on messages.id = structured.message_id where session_id = ? order by messages.id`,
            session,
          )
        : [],
    })

    test('reading and appending makes an equal copy, times included', async () => {
      await store.messages.appendMany('s', conversation)
      await store.sessions.create({ id: 'copy', source: 'new' })
      await store.messages.appendMany('copy', await store.messages.list('s'))
      await store.sessions.create({ id: 'one-by-one', source: 'new' })
      for await (const message of store.messages.iterate('s'))
        await store.messages.append('one-by-one', message)
      const original = await comparable('s')
      expect(original.messages).toHaveLength(5)
      expect(await comparable('copy')).toEqual(original)
      expect(await comparable('one-by-one')).toEqual(original)
      expect(await counters('copy')).toEqual(await counters('s'))
      expect(eventsOf(store, 'field-not-stored')).toEqual([])
    })

    test('appendMany takes a conversation', async () => {
      await store.messages.appendMany('s', conversation)
      await store.sessions.create({ id: 'copy', source: 'new' })
      const replay = await store.messages.conversation('s')
      await store.messages.appendMany('copy', replay)
      expect(await store.messages.conversation('copy')).toStrictEqual(replay)
    })
  })

  describe('appendMany', () => {
    test('stores in order and returns the ids', async () => {
      const first = kind.existing.messages + 1
      expect(await store.messages.appendMany('s', [full, { role: 'tool', content: 'b' }])).toEqual([
        first,
        first + 1,
      ])
      expect(await contents()).toEqual(['Let me look.', 'b'])
      expect(await counters()).toEqual({ message_count: 2, tool_call_count: 2 })
      expect(await store.messages.appendMany('s', [])).toEqual([])
    })

    test('stores all or none', async () => {
      await poison(store)
      const many = Array.from({ length: 400 }, (_, index) => ({
        role: 'user',
        content: index === 300 ? 'poison' : 'x',
      }))
      await expect(store.messages.appendMany('s', many)).rejects.toThrow(DatabaseError)
      await expect(
        store.messages.appendMany('s', [full, { role: 'user', content: 5 as never }]),
      ).rejects.toThrow(/^messages\[1\]\.content must be/)
      expect(await contents()).toEqual([])
      expect(await counters()).toEqual({ message_count: 0, tool_call_count: 0 })
    })

    test('is never seen half done', async () => {
      const writing = store.messages.appendMany(
        's',
        Array.from({ length: 900 }, () => ({ role: 'user', content: 'x' })),
      )
      const seen = new Set<number>()
      const done = writing.then(() => true)
      while (
        !(await Promise.race([done, store.messages.count('s').then((count) => seen.add(count) && false)]))
      )
        await new Promise(setImmediate)
      seen.add(await store.messages.count('s'))
      expect([...seen].sort()).toEqual([0, 900])
    })

    test('refuses what is not a list, and a session that does not exist', async () => {
      for (const messages of [undefined, null, {}, 'ab', full])
        await expect(store.messages.appendMany('s', messages as never)).rejects.toThrow(TypeError)
      await expect(store.messages.appendMany('ghost', [full])).rejects.toThrow(SessionNotFoundError)
    })
  })

  describe('replaceAll', () => {
    test('replaces the conversation and counts anew', async () => {
      await store.messages.appendMany('s', [full, full])
      await store.sessions.create({ id: 'other', source: 'new' })
      await store.messages.append('other', full)
      const first = kind.existing.messages + 4
      expect(
        await store.messages.replaceAll('s', [
          { role: 'user', content: 'a' },
          { role: 'assistant', content: 'b', tool_calls: [call('c9')] },
        ]),
      ).toEqual([first, first + 1])
      expect(await contents()).toEqual(['a', 'b'])
      expect(await counters()).toEqual({ message_count: 2, tool_call_count: 1 })
      expect(await counters('other')).toEqual({ message_count: 1, tool_call_count: 2 })
      expect(await store.messages.replaceAll('s', [])).toEqual([])
      expect(await contents()).toEqual([])
      expect(await counters()).toEqual({ message_count: 0, tool_call_count: 0 })
    })

    test('leaves everything as it was when a message in the middle fails', async () => {
      await store.messages.appendMany('s', [
        full,
        { role: 'user', content: [{ type: 'text', text: 'part' }] },
        ...Array.from({ length: 300 }, (_, index) => ({ role: 'user', content: `old ${index}` })),
      ])
      const rows = await rawMessages()
      const before = await store.messages.list('s')
      const count = await counters()
      await poison(store)
      await expect(
        store.messages.replaceAll(
          's',
          Array.from({ length: 600 }, (_, index) => ({
            role: 'user',
            content: index === 400 ? 'poison' : 'new',
          })),
        ),
      ).rejects.toMatchObject({ code: 'DATABASE' })
      expect(await rawMessages()).toEqual(rows)
      expect(await store.messages.list('s')).toStrictEqual(before)
      expect(await counters()).toEqual(count)
      expect(await store.search.messages('new')).toEqual([])
      expect(await store.search.messages('part')).toHaveLength(1)
    })

    test('refuses a bad message before anything is deleted', async () => {
      await store.messages.append('s', full)
      await expect(
        store.messages.replaceAll('s', [full, { role: 'user', content: 5n as never }]),
      ).rejects.toThrow(TypeError)
      await expect(store.messages.replaceAll('s', 'x' as never)).rejects.toThrow(TypeError)
      await expect(store.messages.replaceAll('ghost', [full])).rejects.toThrow(SessionNotFoundError)
      expect(await contents()).toEqual(['Let me look.'])
    })
  })

  test('clear deletes the messages and keeps the rest of the session', async () => {
    await store.messages.appendMany(
      's',
      Array.from({ length: 300 }, () => full),
    )
    await rawRun(store, "update sessions set title = 'T', input_tokens = 5 where id = 's'")
    await store.sessions.end('s', 'user_exit')
    const before = await store.sessions.get('s')
    expect(await store.messages.clear('s')).toBe(300)
    expect(await contents()).toEqual([])
    expect(await store.sessions.get('s')).toStrictEqual({ ...before, message_count: 0, tool_call_count: 0 })
    expect(await store.messages.clear('s')).toBe(0)
    await expect(store.messages.clear('ghost')).rejects.toThrow(SessionNotFoundError)
    await store.sessions.reopen('s')
    expect(await say('again')).toBe(kind.existing.messages + 301)
  })

  test('what was in the file before is read', async () => {
    if (kind.existing.messages === 0) return
    expect(await store.messages.list('old-root')).toMatchObject([
      { id: 1, role: 'user', content: 'walrus\nspotted', timestamp: 1001.25, token_count: 4 },
      {
        id: 2,
        role: 'assistant',
        content: null,
        tool_calls: [{ id: 'c1', type: 'function', function: { name: 'zoo', arguments: '{"a": 1}' } }],
        finish_reason: null,
        reasoning: null,
      },
      { id: 3, role: 'tool', content: 'walrus count', tool_call_id: 'c1', tool_name: 'zoo' },
    ])
    await store.messages.append('old-tip', { role: 'user', content: 'new words' })
    expect(await contents('old-tip')).toEqual(['海象在这里', 'walrus gone', 'new words'])
    expect(await counters('old-tip')).toEqual({ message_count: 3, tool_call_count: 0 })
  })
})

test('an event handler that fails does not undo what raised the event', async () => {
  const warn = vi.spyOn(process, 'emitWarning').mockImplementation(() => {})
  onTestFinished(() => warn.mockRestore())
  const store = await kinds[0]!.open({
    onEvent: () => {
      throw new Error('from the handler')
    },
  })
  await store.sessions.create({ id: 's', source: 'cli' })
  await store.messages.append('s', { role: 'wizard', content: 'x' })
  expect(await store.messages.count('s')).toBe(1)
  expect(warn).toHaveBeenCalledWith(expect.objectContaining({ message: 'from the handler' }))
})
