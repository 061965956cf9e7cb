import { describe, expect, test } from 'vitest'
import { fromAnthropic, type NewMessage } from '../../src/index.ts'

const text = (text: string) => ({ type: 'text', text })
const call = (id: string, name: string, args: string) => ({
  id,
  type: 'function',
  function: { name, arguments: args },
})

const read = (role: string, ...content: object[]): NewMessage[] =>
  fromAnthropic([{ role, content }], 'a.json').messages

test('a conversation: system, thinking, a call, its result, an answer', () => {
  const thinking = { type: 'thinking', thinking: 'look it up', signature: 'x' }
  const redacted = { type: 'redacted_thinking', data: 'zzz' }
  expect(
    fromAnthropic(
      {
        title: 'Weather',
        model: 'm-1',
        source: 'cli',
        tools: [{ name: 'weather', input_schema: { type: 'object' } }],
        system: 'Be brief.',
        max_tokens: 1024,
        messages: [
          { role: 'user', content: 'Tokyo?' },
          {
            id: 'msg_1',
            role: 'assistant',
            stop_reason: 'tool_use',
            usage: { input_tokens: 3 },
            content: [
              thinking,
              redacted,
              { ...text('One moment.'), citations: null },
              { type: 'tool_use', id: 't1', name: 'weather', input: { city: '東京' } },
              { type: 'tool_use', id: 't2', name: 'clock', input: {} },
            ],
          },
          {
            role: 'user',
            content: [
              {
                type: 'tool_result',
                tool_use_id: 't1',
                content: 'sunny',
                cache_control: { type: 'ephemeral' },
              },
              { type: 'tool_result', tool_use_id: 't2', content: [text('12'), text('noon')] },
              text('And Paris?'),
            ],
          },
          { role: 'assistant', content: [text('Sunny.')] },
        ],
      },
      'a.json',
    ),
  ).toEqual({
    source_format: 'anthropic',
    title: 'Weather',
    model: 'm-1',
    source: 'cli',
    tools: [{ name: 'weather', input_schema: { type: 'object' } }],
    system_prompt: 'Be brief.',
    messages: [
      { role: 'user', content: 'Tokyo?' },
      {
        role: 'assistant',
        content: 'One moment.',
        reasoning: 'look it up',
        reasoning_details: [thinking, redacted],
        tool_calls: [call('t1', 'weather', '{"city":"東京"}'), call('t2', 'clock', '{}')],
      },
      { role: 'tool', content: 'sunny', tool_call_id: 't1', tool_name: 'weather' },
      { role: 'tool', content: [text('12'), text('noon')], tool_call_id: 't2', tool_name: 'clock' },
      { role: 'user', content: 'And Paris?' },
      { role: 'assistant', content: 'Sunny.' },
    ],
  })
})

test('system in blocks is joined by newlines; none is none', () => {
  const system = [{ ...text('Be brief.'), cache_control: { type: 'ephemeral' } }, text('Be kind.')]
  expect(fromAnthropic({ system, messages: [] }, 'a.json')).toEqual({
    source_format: 'anthropic',
    system_prompt: 'Be brief.\nBe kind.',
    messages: [],
  })
  expect(fromAnthropic({ system: null, messages: [] }, 'a.json').system_prompt).toBeUndefined()
})

describe('content', () => {
  test.each<[what: string, blocks: object[], content: unknown]>([
    ['one text is text', [text('a')], 'a'],
    ['several are a list', [text('a'), text('b')], [text('a'), text('b')]],
    [
      'a text with further fields is a list',
      [{ ...text('a'), cache_control: { type: 'ephemeral' } }],
      [{ ...text('a'), cache_control: { type: 'ephemeral' } }],
    ],
    [
      'an image at an address becomes the part of OpenAI',
      [{ type: 'image', source: { type: 'url', url: 'https://a.example/b.png' } }],
      [{ type: 'image_url', image_url: { url: 'https://a.example/b.png' } }],
    ],
    [
      'and one in the message',
      [{ type: 'image', source: { type: 'base64', media_type: 'image/png', data: 'iVBO' } }],
      [{ type: 'image_url', image_url: { url: 'data:image/png;base64,iVBO' } }],
    ],
    [
      'one of a file stays',
      [{ type: 'image', source: { type: 'file', file_id: 'f1' } }],
      [{ type: 'image', source: { type: 'file', file_id: 'f1' } }],
    ],
    [
      'one with further fields stays',
      [
        {
          type: 'image',
          source: { type: 'url', url: 'https://a.example' },
          cache_control: { type: 'ephemeral' },
        },
      ],
      [
        {
          type: 'image',
          source: { type: 'url', url: 'https://a.example' },
          cache_control: { type: 'ephemeral' },
        },
      ],
    ],
    [
      'documents, searches and others stay',
      [
        { type: 'document', source: { type: 'text', media_type: 'text/plain', data: 'a' } },
        { type: 'server_tool_use', id: 's1', name: 'web_search', input: { query: 'tea' } },
      ],
      [
        { type: 'document', source: { type: 'text', media_type: 'text/plain', data: 'a' } },
        { type: 'server_tool_use', id: 's1', name: 'web_search', input: { query: 'tea' } },
      ],
    ],
    ['none is none', [], null],
  ])('%s', (_, blocks, content) => {
    expect(read('user', ...blocks)).toEqual([{ role: 'user', content }])
  })
})

test('blocks in another order than thinking, content, calls become several messages', () => {
  const thinking = { type: 'thinking', thinking: 'hm', signature: 'x' }
  expect(
    read(
      'assistant',
      text('a'),
      { type: 'tool_use', id: 't1', name: 'look', input: {} },
      thinking,
      text('b'),
      thinking,
    ),
  ).toEqual([
    { role: 'assistant', content: 'a', tool_calls: [call('t1', 'look', '{}')] },
    { role: 'assistant', content: 'b', reasoning: 'hm', reasoning_details: [thinking] },
    { role: 'assistant', content: null, reasoning: 'hm', reasoning_details: [thinking] },
  ])
})

describe('a result', () => {
  const result = (fields: object) => ({ type: 'tool_result', tool_use_id: 't1', ...fields })

  test.each<[what: string, block: object, content: unknown]>([
    ['of text', result({ content: '7' }), '7'],
    ['of one text in a list', result({ content: [text('7')] }), '7'],
    ['without content', result({}), null],
    ['that is empty', result({ content: [] }), null],
    ['that failed', result({ content: 'no', is_error: true }), [{ ...text('no'), is_error: true }]],
    [
      'that failed, in a list',
      result({ content: [text('no'), text('really')], is_error: true }),
      [{ ...text('no'), is_error: true }, text('really')],
    ],
    ['that failed without a word', result({ is_error: true }), [{ ...text(''), is_error: true }]],
    ['that did not fail', result({ content: '7', is_error: false }), '7'],
  ])('%s', (_, block, content) => {
    expect(read('user', block)).toEqual([{ role: 'tool', content, tool_call_id: 't1' }])
  })

  test('has the name of the latest call of its id', () => {
    const use = (name: string) => ({
      role: 'assistant',
      content: [{ type: 'tool_use', id: 't1', name, input: {} }],
    })
    const answer = { role: 'user', content: [result({ content: '7' })] }
    const { messages } = fromAnthropic([use('find'), answer, use('open'), answer], 'a.json')
    expect(messages.map(({ tool_name }) => tool_name)).toEqual([undefined, 'find', undefined, 'open'])
  })
})

test.each<[what: string, conversation: unknown, sentence: string]>([
  [
    'no conversation',
    'hi',
    'a.json must be an array of Anthropic messages, or an object with such an array in messages.',
  ],
  ['no message', [7], 'a.json, message 1 must be an object such as {role, content}.'],
  ['no role', [{ content: 'hi' }], 'a.json, message 1: role must be a non-empty string, not undefined.'],
  [
    'no content',
    [{ role: 'user' }],
    'a.json, message 1: content must be text or an array of blocks such as {type}.',
  ],
  [
    'no block',
    [{ role: 'user', content: ['hi'] }],
    'a.json, message 1: content[0] must be a block such as {type}.',
  ],
  [
    'thinking',
    [{ role: 'assistant', content: [{ type: 'thinking' }] }],
    'a.json, message 1: thinking must be a string, not undefined.',
  ],
  [
    'a call without an id',
    [{ role: 'assistant', content: [{ type: 'tool_use', name: 'look', input: {} }] }],
    'a.json, message 1: id of tool_use must be a non-empty string, not undefined.',
  ],
  [
    'a call without a name',
    [{ role: 'assistant', content: [{ type: 'tool_use', id: 't1', input: {} }] }],
    'a.json, message 1: name of tool_use must be a string, not undefined.',
  ],
  [
    'an input that would change',
    [{ role: 'assistant', content: [{ type: 'tool_use', id: 't1', name: 'look', input: { id: 2 ** 53 } }] }],
    'a.json, message 1: input of tool_use: arguments.id is 9007199254740992, an integer beyond 2^53 that would not come back exactly: use a string.',
  ],
  [
    'a result of nothing',
    [{ role: 'user', content: [{ type: 'tool_result', content: '7' }] }],
    'a.json, message 1: tool_use_id must be a non-empty string, not undefined.',
  ],
  ['system', { system: 7, messages: [] }, 'a.json: system must be a string, not 7.'],
  [
    'a block of system',
    { system: [text('a'), { type: 'text' }], messages: [] },
    'a.json: system[1].text must be a string, not undefined.',
  ],
  ['model', { model: 7, messages: [] }, 'a.json: model must be a string, not 7.'],
])('refused: %s', (_, conversation, sentence) => {
  expect(() => fromAnthropic(conversation, 'a.json')).toThrow(new TypeError(sentence))
})
