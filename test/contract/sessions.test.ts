import { beforeEach, describe, expect, test } from 'vitest'
import {
  LineageCycleError,
  type NewSession,
  ParentNotFoundError,
  type Session,
  type StateStore,
} from '../../src/index.ts'
import { eventsOf, kinds, rawRow, rawRows, rawRun } from '../support/stores.ts'

const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/

/** What a session has of its own before anything is said in it. */
const empty: Omit<Session, 'id' | 'source' | 'started_at'> = {
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

const full = {
  id: 's',
  source: 'telegram',
  user_id: 'ada',
  model: 'claude-sonnet-4-5',
  model_config: { temperature: 0.5, tools: ['shell', null], nested: { deep: true } },
  system_prompt: 'Be brief.',
  started_at: 2000.25,
} satisfies NewSession

const invalid: [string, unknown][] = [
  ['no session', undefined],
  ['an array', []],
  ['no source', { id: 's' }],
  ['source null', { id: 's', source: null }],
  ['an empty source', { id: 's', source: '' }],
  ['id null', { id: null, source: 'cli' }],
  ['an empty id', { id: '', source: 'cli' }],
  ['a number as id', { id: 5, source: 'cli' }],
  ['a lone surrogate in the id', { id: 'a\ud800', source: 'cli' }],
  ['a NUL in the id', { id: 'a\0', source: 'cli' }],
  ['an empty parent', { id: 's', source: 'cli', parent_session_id: '' }],
  ['a number as model', { id: 's', source: 'cli', model: 4 }],
  ['a boolean as user', { id: 's', source: 'cli', user_id: true }],
  ['text as configuration', { id: 's', source: 'cli', model_config: '{"a":1}' }],
  ['an array as configuration', { id: 's', source: 'cli', model_config: [1] }],
  ['NaN in the configuration', { id: 's', source: 'cli', model_config: { t: Number.NaN } }],
  ['a date as start', { id: 's', source: 'cli', started_at: new Date() }],
  ['NaN as start', { id: 's', source: 'cli', started_at: Number.NaN }],
  ['start null', { id: 's', source: 'cli', started_at: null }],
]

describe.each(kinds)('sessions in $name', (kind) => {
  let store: StateStore
  beforeEach(async () => {
    store = await kind.open()
  })

  const listed = async (options?: Parameters<StateStore['sessions']['list']>[0]) =>
    (await store.sessions.list({ limit: 100, ...options })).map(({ id }) => id)

  describe('create', () => {
    test('stores every field', async () => {
      await store.sessions.create({ id: 'p', source: 'cli' })
      expect(await store.sessions.create({ ...full, parent_session_id: 'p' })).toBe('s')
      expect(await store.sessions.get('s')).toStrictEqual({ ...empty, ...full, parent_session_id: 'p' })
    })

    test('stores JSON as text, and nothing as NULL', async () => {
      await store.sessions.create(full)
      await store.sessions.create({ id: 'bare', source: 'cli', started_at: 5 })
      expect(await rawRow(store, "select * from sessions where id = 's'")).toMatchObject({
        model_config: '{"temperature":0.5,"tools":["shell",null],"nested":{"deep":true}}',
        started_at: 2000.25,
        message_count: 0,
        tool_call_count: 0,
      })
      expect(await rawRow(store, "select * from sessions where id = 'bare'")).toMatchObject({
        user_id: null,
        model: null,
        model_config: null,
        system_prompt: null,
        parent_session_id: null,
        ended_at: null,
      })
    })

    test('gives an id and a start where none is given', async () => {
      const before = Date.now() / 1000
      const id = await store.sessions.create({ source: 'cli' })
      const after = Date.now() / 1000
      expect(id).toMatch(UUID)
      const started_at = (await store.sessions.get(id))?.started_at
      expect(started_at).toBeGreaterThanOrEqual(before)
      expect(started_at).toBeLessThanOrEqual(after)
    })

    test('is idempotent and overwrites nothing', async () => {
      await store.sessions.create(full)
      await store.sessions.end('s', 'user_exit')
      const before = await store.sessions.get('s')
      await store.sessions.create({
        id: 's',
        source: 'discord',
        user_id: 'bob',
        model: 'gpt',
        model_config: { temperature: 1 },
        system_prompt: 'Be long.',
        started_at: 9,
      })
      await store.sessions.create({ id: 's', source: 'cli' })
      expect(await store.sessions.get('s')).toStrictEqual(before)
      expect(await store.sessions.count()).toBe(kind.existing.sessions + 1)
    })

    test('fills what an early bare row lacks', async () => {
      await store.sessions.ensure({ id: 's' })
      const bare = await store.sessions.get('s')
      expect(bare).toStrictEqual({ ...empty, id: 's', source: 'unknown', started_at: bare?.started_at })
      await store.sessions.create({ id: 'p', source: 'cli' })
      await store.sessions.create({ ...full, parent_session_id: 'p' })
      const filled = { ...empty, ...full, parent_session_id: 'p', started_at: bare?.started_at }
      expect(await store.sessions.get('s')).toStrictEqual(filled)
      await store.sessions.ensure({ id: 's' })
      await store.sessions.ensure({ id: 's', source: 'cron', model: 'other' })
      expect(await store.sessions.get('s')).toStrictEqual(filled)
    })

    test('fills one field and leaves the others', async () => {
      await store.sessions.create({ id: 's', source: 'cli', model: 'first' })
      await store.sessions.create({ id: 's', source: 'unknown', model: 'second', user_id: 'ada' })
      expect(await store.sessions.get('s')).toMatchObject({ source: 'cli', model: 'first', user_id: 'ada' })
    })

    test('takes an empty string as a value', async () => {
      await store.sessions.create({
        id: 's',
        source: 'cli',
        user_id: '',
        system_prompt: '',
        model_config: {},
      })
      await store.sessions.create({
        id: 's',
        source: 'cli',
        user_id: 'ada',
        system_prompt: 'Be brief.',
        model_config: { a: 1 },
      })
      expect(await store.sessions.get('s')).toMatchObject({
        user_id: '',
        system_prompt: '',
        model_config: {},
      })
    })

    test('ensure keeps the source and the model it is given', async () => {
      expect(await store.sessions.ensure({ id: 's', source: 'cli', model: 'm' })).toBe('s')
      expect(await store.sessions.get('s')).toMatchObject({ source: 'cli', model: 'm' })
    })

    test('replaces lone surrogates in text', async () => {
      await store.sessions.create({ id: 's', source: 'cli', system_prompt: 'bad \ud800 text' })
      expect((await store.sessions.get('s'))?.system_prompt).toBe('bad \ufffd text')
      expect(
        await rawRow(store, "select hex(system_prompt) as bytes from sessions where id = 's'"),
      ).toStrictEqual({ bytes: Buffer.from('bad \ufffd text').toString('hex').toUpperCase() })
    })

    test('refuses what is not a session, and writes nothing', async () => {
      for (const [what, session] of invalid)
        await expect(store.sessions.create(session as NewSession), what).rejects.toThrow(TypeError)
      expect(await store.sessions.count()).toBe(kind.existing.sessions)
    })

    test('names the place of a value that JSON cannot carry', async () => {
      const model_config = { tools: [{ since: new Date() }] } as unknown as NewSession['model_config']
      await expect(store.sessions.create({ source: 'cli', model_config })).rejects.toThrow(
        /^session\.model_config\.tools\[0\]\.since is a Date/,
      )
    })
  })

  describe('parents', () => {
    test('a missing parent is refused', async () => {
      const created = store.sessions.create({ id: 's', source: 'cli', parent_session_id: 'ghost' })
      await expect(created).rejects.toThrow(ParentNotFoundError)
      await expect(created).rejects.toMatchObject({
        code: 'PARENT_NOT_FOUND',
        session_id: 's',
        parent_session_id: 'ghost',
      })
      expect(await store.sessions.exists('s')).toBe(false)
    })

    test('a late parent can be given by a second create', async () => {
      await store.sessions.create({ id: 's', source: 'cli' })
      await store.sessions.create({ id: 'p', source: 'cli' })
      await store.sessions.create({ id: 's', source: 'cli', parent_session_id: 'p' })
      expect((await store.sessions.get('s'))?.parent_session_id).toBe('p')
    })

    test('a late parent must exist too, and nothing else is filled without it', async () => {
      await store.sessions.create({ id: 's', source: 'cli' })
      await expect(
        store.sessions.create({ id: 's', source: 'cli', model: 'm', parent_session_id: 'ghost' }),
      ).rejects.toThrow(ParentNotFoundError)
      expect(await store.sessions.get('s')).toMatchObject({ model: null, parent_session_id: null })
    })

    test('the first parent stays', async () => {
      await store.sessions.create({ id: 'p', source: 'cli' })
      await store.sessions.create({ id: 'q', source: 'cli' })
      await store.sessions.create({ id: 's', source: 'cli', parent_session_id: 'p' })
      await store.sessions.create({ id: 's', source: 'cli', parent_session_id: 'q' })
      expect((await store.sessions.get('s'))?.parent_session_id).toBe('p')
    })

    test('a session is never its own parent', async () => {
      const refused = { id: 's', source: 'cli', parent_session_id: 's' }
      await expect(store.sessions.create(refused)).rejects.toThrow(LineageCycleError)
      expect(await store.sessions.exists('s')).toBe(false)
      await store.sessions.create({ id: 's', source: 'cli' })
      await expect(store.sessions.create(refused)).rejects.toMatchObject({ code: 'LINEAGE_CYCLE' })
    })

    test('a descendant is never the parent', async () => {
      await store.sessions.create({ id: 'a', source: 'cli' })
      await store.sessions.create({ id: 'b', source: 'cli', parent_session_id: 'a' })
      await store.sessions.create({ id: 'c', source: 'cli', parent_session_id: 'b' })
      await expect(
        store.sessions.create({ id: 'a', source: 'cli', parent_session_id: 'c' }),
      ).rejects.toMatchObject({ code: 'LINEAGE_CYCLE', session_id: 'a', parent_session_id: 'c' })
      expect((await store.sessions.get('a'))?.parent_session_id).toBeNull()
    })

    test('a circle in the file does not stop a create', async () => {
      await store.sessions.create({ id: 'a', source: 'cli' })
      await store.sessions.create({ id: 'b', source: 'cli', parent_session_id: 'a' })
      await rawRun(store, "update sessions set parent_session_id = 'b' where id = 'a'")
      await store.sessions.create({ id: 's', source: 'cli' })
      await store.sessions.create({ id: 's', source: 'cli', parent_session_id: 'b' })
      expect((await store.sessions.get('s'))?.parent_session_id).toBe('b')
    })
  })

  describe('end and reopen', () => {
    test('the first end wins until the session is reopened', async () => {
      await store.sessions.create({ id: 's', source: 'cli' })
      expect(await store.sessions.end('s', 'compression')).toBe(true)
      const ended = await store.sessions.get('s')
      expect(ended?.end_reason).toBe('compression')
      expect(ended?.ended_at).toBeGreaterThan(1_700_000_000)
      expect(await store.sessions.end('s', 'user_exit')).toBe(false)
      expect(await store.sessions.get('s')).toStrictEqual(ended)

      expect(await store.sessions.reopen('s')).toBe(true)
      expect(await store.sessions.get('s')).toMatchObject({ ended_at: null, end_reason: null })
      expect(await store.sessions.reopen('s')).toBe(false)
      expect(await store.sessions.end('s', 'user_exit')).toBe(true)
      expect((await store.sessions.get('s'))?.end_reason).toBe('user_exit')
    })

    test('a session that does not exist is neither ended nor reopened', async () => {
      expect(await store.sessions.end('ghost', 'user_exit')).toBe(false)
      expect(await store.sessions.reopen('ghost')).toBe(false)
    })

    test('a reason is required', async () => {
      await store.sessions.create({ id: 's', source: 'cli' })
      await expect(store.sessions.end('s', '')).rejects.toThrow(TypeError)
      await expect(store.sessions.end('s', undefined as never)).rejects.toThrow(TypeError)
      expect((await store.sessions.get('s'))?.ended_at).toBeNull()
    })
  })

  test('setSystemPrompt and setModel replace what is there', async () => {
    await store.sessions.create(full)
    expect(await store.sessions.setSystemPrompt('s', 'New.')).toBe(true)
    expect(await store.sessions.setModel('s', 'new-model')).toBe(true)
    expect(await store.sessions.get('s')).toMatchObject({ system_prompt: 'New.', model: 'new-model' })
    expect(await store.sessions.setSystemPrompt('s', null)).toBe(true)
    expect((await store.sessions.get('s'))?.system_prompt).toBeNull()
    expect(await store.sessions.setModel('ghost', 'm')).toBe(false)
    expect(await store.sessions.setSystemPrompt('ghost', 'p')).toBe(false)
    await expect(store.sessions.setModel('s', '')).rejects.toThrow(TypeError)
    await expect(store.sessions.setSystemPrompt('s', 5 as never)).rejects.toThrow(TypeError)
  })

  test('get and exists look for the whole id', async () => {
    await store.sessions.create({ id: 'Session', source: 'cli' })
    expect(await store.sessions.exists('Session')).toBe(true)
    for (const id of ['session', 'Sessio', 'Session ', '%']) {
      expect(await store.sessions.get(id)).toBeNull()
      expect(await store.sessions.exists(id)).toBe(false)
    }
    await expect(store.sessions.get('')).rejects.toThrow(TypeError)
    await expect(store.sessions.exists(null as never)).rejects.toThrow(TypeError)
  })

  describe('list', () => {
    test('begins with the latest started, and breaks ties by id', async () => {
      await store.sessions.create({ id: 'a', source: 'new', started_at: 5000 })
      await store.sessions.create({ id: 'c', source: 'new', started_at: 6000 })
      await store.sessions.create({ id: 'b', source: 'new', started_at: 6000 })
      expect(await listed({ source: 'new' })).toEqual(['c', 'b', 'a'])
    })

    test('pages add up to the whole list', async () => {
      for (let index = 0; index < 7; index++)
        await store.sessions.create({ id: `s${index}`, source: 'new', started_at: 5000 })
      const pages: string[] = []
      for (let offset = 0; offset < 9; offset += 3)
        pages.push(...(await listed({ source: 'new', limit: 3, offset })))
      expect(pages).toEqual(['s6', 's5', 's4', 's3', 's2', 's1', 's0'])
    })

    test('holds 20 sessions unless told otherwise', async () => {
      for (let index = 0; index < 25; index++) await store.sessions.create({ source: 'new' })
      expect(await store.sessions.list()).toHaveLength(20)
      expect(await store.sessions.list({ source: 'new', limit: 100 })).toHaveLength(25)
      expect(await store.sessions.list({ limit: 0 })).toEqual([])
    })

    test('filters literally by source', async () => {
      await store.sessions.create({ id: 'a', source: 'new' })
      await store.sessions.create({ id: 'b', source: 'New' })
      expect(await listed({ source: 'new' })).toEqual(['a'])
      expect(await listed({ source: '' })).toEqual([])
      expect(await listed({ source: 'ne%' })).toEqual([])
      expect(await store.sessions.count({ source: 'new' })).toBe(1)
      expect(await store.sessions.count({ source: '' })).toBe(0)
      expect(await store.sessions.count()).toBe(kind.existing.sessions + 2)
      expect(await store.sessions.count({ source: undefined })).toBe(kind.existing.sessions + 2)
    })

    test('says what a session is, without its system prompt', async () => {
      await store.sessions.create({ ...full, source: 'new' })
      const [summary] = await store.sessions.list({ source: 'new' })
      const { system_prompt: _, ...fields } = { ...empty, ...full, source: 'new' }
      expect(summary).toStrictEqual({ ...fields, preview: '', last_active: 2000.25 })
    })

    test('last_active is the latest message, by time', async () => {
      await store.sessions.create({ id: 's', source: 'new', started_at: 2000 })
      await store.messages.append('s', { role: 'user', content: 'a', timestamp: 3000.5 })
      await store.messages.append('s', { role: 'user', content: 'b', timestamp: 2500 })
      expect((await store.sessions.list({ source: 'new' }))[0]?.last_active).toBe(3000.5)
    })

    test('a message from the future does not count as later than now', async () => {
      await store.sessions.create({ id: 's', source: 'new', started_at: 2000 })
      await store.messages.append('s', { role: 'user', content: 'a', timestamp: 99_999_999_999 })
      const active = (await store.sessions.list({ source: 'new' }))[0]?.last_active
      expect(active).toBeLessThan(Date.now() / 1000 + 120)
    })

    test.each(['limit', 'offset'] as const)('refuses a %s that is not a count', async (name) => {
      for (const value of [-1, 1.5, Number.NaN, Number.POSITIVE_INFINITY, '5', 2 ** 63])
        await expect(store.sessions.list({ [name]: value as number })).rejects.toThrow(TypeError)
    })

    test('refuses a source that is not text', async () => {
      await expect(store.sessions.list({ source: null as never })).rejects.toThrow(TypeError)
      await expect(store.sessions.count({ source: 5 as never })).rejects.toThrow(TypeError)
    })
  })

  describe('preview', () => {
    const preview = async () => (await store.sessions.list({ source: 'new' }))[0]?.preview
    beforeEach(async () => {
      await store.sessions.create({ id: 's', source: 'new' })
    })

    test.each<[string, string[], string]>([
      ['the first user message', ['real question', 'second'], 'real question'],
      ['a message with visible text', ['', ' \t\r\n', '\u200b\u3000\ufeff', '\u2003\u2009', 'real'], 'real'],
      ['line breaks as spaces', ['one\ntwo\r\nthree'], 'one two three'],
      ['60 code points as they are', ['x'.repeat(60)], 'x'.repeat(60)],
      ['more than 60 cut', ['x'.repeat(61)], `${'x'.repeat(60)}...`],
      ['characters beyond 16 bits whole', ['🚀'.repeat(61)], `${'🚀'.repeat(60)}...`],
      ['blank space before the text left out', [`${'\n'.repeat(3000)}text`], 'text'],
      ['nothing where there is none', [' '], ''],
    ])('is %s', async (_, contents, expected) => {
      await store.messages.append('s', { role: 'assistant', content: 'not this' })
      await store.messages.appendMany(
        's',
        contents.map((content) => ({ role: 'user', content })),
      )
      expect(await preview()).toBe(expected)
    })

    test('is the visible text of structured content', async () => {
      await store.messages.append('s', {
        role: 'user',
        content: [
          { type: 'image_url', image_url: { url: 'data:image/png;base64,AAAA' } },
          { type: 'text', text: 'what is this?' },
        ],
      })
      expect(await preview()).toBe('what is this?')
    })
  })

  describe('cells that other programs wrote', () => {
    test('broken JSON reads as null with an event, and stays in the file', async () => {
      await store.sessions.create({ id: 's', source: 'new' })
      await store.sessions.create({ id: 't', source: 'new', model_config: { fine: 1 } })
      await rawRun(store, "update sessions set model_config = '{bad' where id = 's'")
      expect((await store.sessions.get('s'))?.model_config).toBeNull()
      expect(await store.sessions.list({ source: 'new' })).toHaveLength(2)
      expect((await store.sessions.get('t'))?.model_config).toEqual({ fine: 1 })
      expect(eventsOf(store, 'broken-json')).toMatchObject([
        { level: 'warning', table: 'sessions', column: 'model_config', id: 's' },
      ])
      expect(await rawRows(store, "select model_config from sessions where id = 's'")).toEqual([
        { model_config: '{bad' },
      ])
    })

    test('NaN in JSON is broken JSON', async () => {
      await store.sessions.create({ id: 's', source: 'new' })
      await rawRun(store, `update sessions set model_config = '{"t": NaN}' where id = 's'`)
      expect((await store.sessions.get('s'))?.model_config).toBeNull()
    })

    test('BLOBs read as text', async () => {
      await store.sessions.create({ id: 's', source: 'new' })
      await rawRun(
        store,
        `update sessions set user_id = cast('ada' as blob), system_prompt = cast('Kürze' as blob),
           model_config = cast('{"a":1}' as blob) where id = 's'`,
      )
      expect(await store.sessions.get('s')).toMatchObject({
        user_id: 'ada',
        system_prompt: 'Kürze',
        model_config: { a: 1 },
      })
    })

    test('bytes that are not UTF-8 read as U+FFFD, with an event for a title, and stay', async () => {
      await store.sessions.create({ id: 's', source: 'new' })
      await rawRun(store, "update sessions set title = cast(x'48690ae29c' as text) where id = 's'")
      expect((await store.sessions.get('s'))?.title).toBe('Hi\n\ufffd')
      expect(await store.sessions.list({ source: 'new' })).toHaveLength(1)
      expect(eventsOf(store, 'ill-formed-text')).toMatchObject([
        { level: 'warning', table: 'sessions', column: 'title', id: 's' },
      ])
      await store.sessions.setModel('s', 'm')
      expect(await rawRow(store, "select hex(title) as title from sessions where id = 's'")).toEqual({
        title: '48690AE29C',
      })
    })

    test('U+FFFD that somebody typed is not reported', async () => {
      await store.sessions.create({ id: 's', source: 'new' })
      await rawRun(store, "update sessions set title = 'what \ufffd is' where id = 's'")
      expect((await store.sessions.get('s'))?.title).toBe('what \ufffd is')
      expect(eventsOf(store, 'ill-formed-text')).toEqual([])
    })

    test('counters that are NULL read as 0', async () => {
      await store.sessions.create({ id: 's', source: 'new' })
      await rawRun(
        store,
        "update sessions set message_count = null, tool_call_count = null, input_tokens = null where id = 's'",
      )
      expect(await store.sessions.get('s')).toMatchObject({
        message_count: 0,
        tool_call_count: 0,
        input_tokens: 0,
      })
    })
  })

  test('what was in the file before is read', async () => {
    expect(await store.sessions.count()).toBe(kind.existing.sessions)
    if (kind.existing.sessions === 0) return
    expect(await store.sessions.get('old-root')).toStrictEqual({
      ...empty,
      id: 'old-root',
      source: 'old',
      user_id: 'ada',
      model: 'claude-3-opus',
      model_config: { temperature: 0.5 },
      system_prompt: 'Be brief.',
      started_at: 1000,
      ended_at: 1010.5,
      end_reason: 'compression',
      message_count: 3,
      tool_call_count: 1,
    })
    expect(
      (await store.sessions.list()).map(({ id, preview, last_active, parent_session_id }) => ({
        id,
        preview,
        last_active,
        parent_session_id,
      })),
    ).toEqual([
      { id: 'old-empty', preview: '', last_active: 1020, parent_session_id: null },
      { id: 'old-tip', preview: '海象在这里', last_active: 1013, parent_session_id: 'old-root' },
      { id: 'old-root', preview: 'walrus spotted', last_active: 1003, parent_session_id: null },
    ])
    await store.sessions.create({ id: 'old-tip', source: 'cli', model: 'm' })
    expect(await store.sessions.get('old-tip')).toMatchObject({ source: 'old', model: 'm', started_at: 1011 })
  })
})
