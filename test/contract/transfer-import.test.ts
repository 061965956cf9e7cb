import { describe, expect, test } from 'vitest'
import { bothModes, kinds, openForTest } from '../support/stores.ts'
import { messages, outcome, session, sizes } from '../support/transfer.ts'

const memory = () => openForTest({ path: ':memory:' })
const user = (fields: object) => [{ role: 'user', content: 'walrus', timestamp: 1, ...fields }]
const nested = (levels: number) => JSON.parse(`${'['.repeat(levels)}${']'.repeat(levels)}`)

describe('a session is refused, and nothing of it is stored,', () => {
  const expected = (path: string, what: string, got: string) =>
    `${path}: Invalid input: expected ${what}, received ${got}.`

  test.each<[what: string, record: unknown, reason: string]>([
    ['that is none', 7, expected('The record', 'object', 'number')],
    ['that is null', null, expected('The record', 'object', 'null')],
    ['that is a list', [], expected('The record', 'object', 'array')],
    ['of an unknown type', session('s', { type: 'chat' }), 'type: Invalid input: expected "session".'],
    [
      'without messages',
      { ...session('s'), messages: undefined },
      expected('messages', 'array', 'undefined'),
    ],
    ['without an id', session('s', { id: undefined }), expected('id', 'string', 'undefined')],
    ['with an empty id', session('s', { id: '' }), 'id: Too small: expected string to have >=1 characters.'],
    [
      'with NUL in its id',
      session('a\0b'),
      'id holds a lone surrogate or a NUL: an id must be text that every reader can decode.',
    ],
    [
      'with half a character in its id',
      session('\ud800'),
      'id holds a lone surrogate or a NUL: an id must be text that every reader can decode.',
    ],
    ['without a source', session('s', { source: null }), expected('source', 'string', 'null')],
    [
      'with an empty source',
      session('s', { source: '' }),
      'source: Too small: expected string to have >=1 characters.',
    ],
    [
      'without a start',
      session('s', { started_at: undefined }),
      expected('started_at', 'number', 'undefined'),
    ],
    [
      'that starts at a date',
      session('s', { started_at: '2026' }),
      expected('started_at', 'number', 'string'),
    ],
    ['that starts at NaN', session('s', { started_at: Number.NaN }), expected('started_at', 'number', 'NaN')],
    [
      'that never ends',
      session('s', { ended_at: Number.POSITIVE_INFINITY }),
      expected('ended_at', 'number', 'Infinity'),
    ],
    [
      'whose model_config is a list',
      session('s', { model_config: [] }),
      expected('model_config', 'record', 'array'),
    ],
    [
      'whose model_config is text',
      session('s', { model_config: '{}' }),
      expected('model_config', 'record', 'string'),
    ],
    [
      'whose model_config JSON cannot carry',
      session('s', { model_config: { a: 2 ** 53 } }),
      'model_config.a is 9007199254740992, an integer beyond 2^53 that would not come back exactly: use a string.',
    ],
    [
      'with a count that is none',
      session('s', { message_count: 1.5 }),
      expected('message_count', 'int', 'number'),
    ],
    [
      'with tokens as text',
      session('s', { input_tokens: '7' }),
      expected('input_tokens', 'number', 'string'),
    ],
    [
      'with costs as text',
      session('s', { actual_cost_usd: '7' }),
      expected('actual_cost_usd', 'number', 'string'),
    ],
    [
      'with an unknown text beside its values',
      session('s', { raw: { title: 'x' } }),
      'raw: Unrecognized key: "title".',
    ],
    ...(
      [
        'user_id',
        'model',
        'system_prompt',
        'parent_session_id',
        'end_reason',
        'title',
        'cost_status',
      ] as const
    ).map((column): [string, unknown, string] => [
      `whose ${column} is a number`,
      session('s', { [column]: 7 }),
      expected(column, 'string', 'number'),
    ]),
    [
      'with a message that is none',
      session('s', { messages: ['hi'] }),
      expected('messages[0]', 'object', 'string'),
    ],
    [
      'with a message without a role',
      session('s', { messages: user({ role: undefined }) }),
      expected('messages[0].role', 'string', 'undefined'),
    ],
    [
      'with a second message at no time',
      session('s', { messages: [...user({}), ...user({ timestamp: null })] }),
      expected('messages[1].timestamp', 'number', 'null'),
    ],
    [
      'with content that is a number',
      session('s', { messages: user({ content: 7 }) }),
      'messages[0].content: Invalid input.',
    ],
    [
      'with content 1,000 levels deep',
      session('s', { messages: user({ content: nested(1000) }) }),
      expect.stringMatching(/^messages\[0\]\.content\[0\].* is nested deeper than 900 levels: flatten it\.$/),
    ],
    [
      'with reasoning_details 1,000 levels deep',
      session('s', { messages: user({ reasoning_details: nested(1000) }) }),
      expect.stringContaining('is nested deeper than 900 levels: flatten it.'),
    ],
    [
      'with content as text that is not JSON',
      session('s', { messages: user({ raw: { content: '{' } }) }),
      'messages[0].raw.content must be the JSON text of a string, an array of parts or an object.',
    ],
    [
      'with content as text that is too deep',
      session('s', { messages: user({ raw: { content: '{"a":'.repeat(9000) + 1 + '}'.repeat(9000) } }) }),
      'messages[0].raw.content is nested too deep: flatten it.',
    ],
    [
      'with calls as text',
      session('s', { messages: user({ tool_calls: '[]' }) }),
      expected('messages[0].tool_calls', 'array', 'string'),
    ],
    [
      'with a call that is none',
      session('s', { messages: user({ tool_calls: [7] }) }),
      'messages[0].tool_calls[0] must be an object, not 7.',
    ],
    [
      'with an integer beyond 2^53',
      session('s', { messages: user({ token_count: 2 ** 53 }) }),
      expect.stringMatching(
        /^messages\[0\]\.token_count: Too big: expected int to be <=?9007199254740991\.$/,
      ),
    ],
    [
      'with another kind of inactive',
      session('s', { messages: user({ inactive: 'hidden' }) }),
      'messages[0].inactive: Invalid option: expected one of "undone"|"compacted".',
    ],
    [
      'with a client id that comes twice',
      session('s', { messages: [...user({ client_id: 'c' }), ...user({ client_id: 'c' })] }),
      'messages[1].client_id is that of an earlier message: give each message its own.',
    ],
    ['the rest of which is missing', session('s', { more: true }), 'The rest of its messages is missing.'],
    [
      'of which there are only messages',
      { type: 'messages', session_id: 's', messages: user({}) },
      'It has a record of messages that does not follow the session itself.',
    ],
  ])('%s', async (_, record, reason) => {
    const store = await memory()
    const report = await store.transfer.importSessions([session('before'), record, session('after')])
    expect(report.imported).toBe(2)
    expect(report.sessions.filter(({ status }) => status === 'refused')).toEqual([
      { id: expect.toBeOneOf([null, expect.any(String)]), status: 'refused', reason },
    ])
    expect(await sizes(store)).toEqual({ before: 0, after: 0 })
    expect(await store.messages.count()).toBe(0)
    expect((await store.maintenance.check()).ok).toBe(true)
  })

  test('when a later record of its messages is wrong, or comes too late', async () => {
    const store = await memory()
    const more = (session_id: string, list: unknown[], rest = {}) => ({
      type: 'messages',
      session_id,
      messages: list,
      ...rest,
    })
    const records = [
      session('wrong', { messages: messages(2), more: true }),
      more('wrong', user({ timestamp: 'now' }), { more: true }),
      more('wrong', messages(2)),
      session('twice', { messages: user({ client_id: 'c' }), more: true }),
      more('twice', user({ client_id: 'c' })),
      session('torn', { messages: messages(1), more: true }),
      session('whole', { messages: messages(1), more: true }),
      more('whole', messages(30), { more: true }),
      more('whole', messages(2)),
      more('whole', messages(1)),
      more('torn', messages(1)),
    ]
    expect(await outcome(store, records)).toEqual([
      { id: 'wrong', status: 'refused', reason: expect.stringContaining('messages[0].timestamp') },
      { id: 'twice', status: 'refused', reason: expect.stringContaining('messages[0].client_id') },
      { id: 'torn', status: 'refused', reason: 'The rest of its messages is missing.' },
      { id: 'whole', status: 'refused', reason: expect.stringContaining('does not follow the session') },
      { id: 'torn', status: 'refused', reason: expect.stringContaining('does not follow the session') },
      { id: 'whole', status: 'imported' },
    ])
    expect(await sizes(store)).toEqual({ whole: 33 })
    expect(await store.messages.count()).toBe(33)
  })

  test('when its id comes a second time', async () => {
    const store = await memory()
    const records = [session('s', { messages: messages(1) }), session('s', { messages: messages(2) })]
    expect(await outcome(store, records)).toEqual([
      { id: 's', status: 'refused', reason: 'The session comes a second time.' },
      { id: 's', status: 'imported' },
    ])
    expect(await sizes(store)).toEqual({ s: 1 })
  })
})

describe('an id that the store has', () => {
  test('is skipped: the session stays as it is, and children are attached to it', async () => {
    const store = await memory()
    await store.sessions.create({ id: 'a', source: 'cli', model: 'mine' })
    const records = [
      session('a', { model: 'theirs', title: 'Taken', messages: messages(3) }),
      session('b', { parent_session_id: 'a', title: 'Taken', messages: messages(2) }),
    ]
    expect(await store.transfer.importSessions(records)).toEqual({
      imported: 1,
      messages: 2,
      sessions: [
        { id: 'a', status: 'present' },
        { id: 'b', status: 'imported' },
      ],
      not_carried: {},
    })
    expect(await store.sessions.get('a')).toMatchObject({ model: 'mine', title: null, message_count: 0 })
    expect(await store.sessions.get('b')).toMatchObject({ parent_session_id: 'a', title: 'Taken' })
    expect(await sizes(store)).toEqual({ a: 0, b: 2 })
  })

  test('is given anew where that is asked for, and children follow', async () => {
    const store = await memory()
    await store.sessions.create({ id: 'a', source: 'cli' })
    const records = [
      session('b', { parent_session_id: 'a', messages: messages(2) }),
      session('a', { messages: user({ client_id: 'c' }) }),
    ]
    const [a, b] = await outcome(store, records, { ids: 'new' })
    const stored = a?.stored_id ?? ''
    expect(a).toEqual({ id: 'a', status: 'imported', stored_id: expect.stringMatching(/^[0-9a-f-]{36}$/) })
    expect(b).toEqual({ id: 'b', status: 'imported' })
    expect(await sizes(store)).toEqual({ a: 0, b: 2, [stored]: 1 })
    expect((await store.sessions.get('b'))?.parent_session_id).toBe(stored)
    expect((await store.transfer.exportSession(stored)).messages).toMatchObject([{ client_id: 'c' }])
  })
})

test('a title that another session has gets the next number, or goes', async () => {
  const records = [
    session('a', { title: 'Fix build' }),
    session('b', { title: 'Fix build' }),
    session('c', { title: 'Fix build #2' }),
    session('d', { title: 'Tea' }),
  ]
  const numbered = await memory()
  await numbered.sessions.create({ id: 'mine', source: 'cli' })
  await numbered.titles.set('mine', 'Fix build')
  expect(await outcome(numbered, records)).toEqual([
    { id: 'a', status: 'imported', title: 'Fix build #2' },
    { id: 'b', status: 'imported', title: 'Fix build #3' },
    { id: 'c', status: 'imported', title: 'Fix build #4' },
    { id: 'd', status: 'imported' },
  ])
  expect(await numbered.titles.get('c')).toBe('Fix build #4')
  const dropped = await memory()
  expect(await outcome(dropped, records, { titles: 'drop' })).toEqual([
    { id: 'a', status: 'imported' },
    { id: 'b', status: 'imported', title: null },
    { id: 'c', status: 'imported' },
    { id: 'd', status: 'imported' },
  ])
  expect(await dropped.titles.get('b')).toBeNull()
})

test.each(kinds)('counters are kept, and counted where there are none ($name)', async ({ open }) => {
  const store = await open()
  const calls = [{ id: 'c', function: { name: 'f', arguments: '{}' } }, { id: 'd' }]
  const list = [
    { role: 'assistant', tool_calls: calls, timestamp: 1 },
    { role: 'assistant', raw: { tool_calls: '[{"n": 1.0}]' }, timestamp: 2 },
  ]
  await store.transfer.importSessions([
    session('kept', { message_count: 7, tool_call_count: 9, messages: list }),
    session('counted', { messages: list, more: true }),
    { type: 'messages', session_id: 'counted', messages: list },
  ])
  expect(await store.sessions.get('kept')).toMatchObject({ message_count: 7, tool_call_count: 9 })
  expect(await store.sessions.get('counted')).toMatchObject({ message_count: 4, tool_call_count: 6 })
})

test.each(bothModes)(
  'what has no place is counted, not dropped silently ($name)',
  async ({ open, additions }) => {
    const store = await open()
    const records = [
      session('a', {
        cwd: '/tmp',
        pinned: 1,
        hidden: 0,
        messages: user({ client_id: 'c', display_kind: 'x' }),
      }),
      session('b', {
        cwd: '/home',
        messages: [...user({ inactive: 'undone' }), ...user({ inactive: 'compacted' })],
      }),
      session('refused', { cwd: '/', source: 7 }),
    ]
    expect(await store.transfer.importSessions(records)).toMatchObject({
      imported: 2,
      messages: 1,
      not_carried: {
        cwd: 2,
        pinned: 1,
        'messages.display_kind': 1,
        'messages.inactive': 2,
        ...(additions ? {} : { 'messages.client_id': 1 }),
      },
    })
  },
)

test('keys that JavaScript gives a meaning are data', async () => {
  const store = await memory()
  const config = JSON.parse('{"__proto__": {"polluted": true}, "constructor": 1}')
  const record = JSON.parse(JSON.stringify({ ...session('s', { messages: user({}) }), model_config: config }))
  Object.defineProperty(record.messages[0], '__proto__', { value: 'x', enumerable: true })
  const report = await store.transfer.importSessions([record])
  expect(report.not_carried).toEqual({ 'messages.__proto__': 1 })
  const { model_config } = await store.transfer.exportSession('s')
  expect(JSON.stringify(model_config)).toBe('{"__proto__":{"polluted":true},"constructor":1}')
  expect(Object.hasOwn(Object.prototype, 'polluted')).toBe(false)
})
