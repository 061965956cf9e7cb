import { describe, expect, test } from 'vitest'
import { fromAiSdk, type NewMessage } from '../../src/index.ts'

const text = (text: string) => ({ type: 'text', text })
const call = (id: string, name: string, args: string) => ({
  id,
  type: 'function',
  function: { name, arguments: args },
})

/** The messages that an assistant message of some parts becomes. */
const read = (...parts: object[]): NewMessage[] =>
  fromAiSdk([{ role: 'assistant', parts }], 'a.json').messages

test('a chat: the system prompt, a question, a step with a call and its result, an answer', () => {
  expect(
    fromAiSdk(
      {
        id: 'chat-1',
        title: 'Weather',
        model: 'm-1',
        source: 'web',
        tools: '[{"name":"weather"}]',
        messages: [
          { id: 'm1', role: 'system', parts: [text('Be brief.')] },
          { id: 'm2', role: 'user', metadata: { at: 1 }, parts: [text('Tokyo?')] },
          {
            id: 'm3',
            role: 'assistant',
            parts: [
              { type: 'step-start' },
              { type: 'reasoning', text: 'look it up', state: 'done' },
              { type: 'text', text: 'One moment.', state: 'done' },
              {
                type: 'tool-weather',
                toolCallId: 'c1',
                state: 'output-available',
                input: { city: '東京' },
                output: 'sunny',
                providerExecuted: false,
              },
              { type: 'step-start' },
              { type: 'text', text: 'Sunny.', state: 'done' },
            ],
          },
        ],
      },
      'a.json',
    ),
  ).toEqual({
    source_format: 'ai-sdk',
    title: 'Weather',
    model: 'm-1',
    source: 'web',
    tools: [{ name: 'weather' }],
    system_prompt: 'Be brief.',
    messages: [
      { role: 'user', content: 'Tokyo?' },
      {
        role: 'assistant',
        content: 'One moment.',
        reasoning: 'look it up',
        tool_calls: [call('c1', 'weather', '{"city":"東京"}')],
      },
      { role: 'tool', content: 'sunny', tool_call_id: 'c1', tool_name: 'weather' },
      { role: 'assistant', content: 'Sunny.' },
    ],
  })
})

test('a system message of several texts is the prompt, each on a line of its own; a later one stays', () => {
  const system = { role: 'system', parts: [text('Be brief.'), text('Be kind.')] }
  expect(fromAiSdk([system, { role: 'user', parts: [text('Hi')] }, system], 'a.json')).toEqual({
    source_format: 'ai-sdk',
    system_prompt: 'Be brief.\nBe kind.',
    messages: [
      { role: 'user', content: 'Hi' },
      { role: 'system', content: [text('Be brief.'), text('Be kind.')] },
    ],
  })
})

describe('content', () => {
  test.each<[what: string, parts: object[], content: unknown]>([
    ['one text is text', [text('a')], 'a'],
    ['several are a list', [text('a'), text('b')], [text('a'), text('b')]],
    [
      'a text with what its provider says keeps it',
      [{ ...text('a'), state: 'done', providerMetadata: { p: { x: 1 } } }],
      [{ ...text('a'), providerMetadata: { p: { x: 1 } } }],
    ],
    [
      'other parts stay as they are',
      [
        text('a'),
        { type: 'source-url', sourceId: 's', url: 'https://a.example' },
        { type: 'data-note', data: 1 },
      ],
      [
        text('a'),
        { type: 'source-url', sourceId: 's', url: 'https://a.example' },
        { type: 'data-note', data: 1 },
      ],
    ],
    [
      'an image in the message becomes the part of OpenAI',
      [{ type: 'file', mediaType: 'image/png', url: 'data:image/png;base64,iVBO' }],
      [{ type: 'image_url', image_url: { url: 'data:image/png;base64,iVBO' } }],
    ],
    [
      'and one at an address whose kind is not said',
      [{ type: 'file', mediaType: 'image/*', url: 'https://a.example/b' }],
      [{ type: 'image_url', image_url: { url: 'https://a.example/b' } }],
    ],
    [
      'an image with a kind that its address does not say stays',
      [{ type: 'file', mediaType: 'image/png', url: 'https://a.example/b' }],
      [{ type: 'file', mediaType: 'image/png', url: 'https://a.example/b' }],
    ],
    [
      'one with a name stays',
      [{ type: 'file', mediaType: 'image/png', url: 'data:image/png;base64,iVBO', filename: 'a.png' }],
      [{ type: 'file', mediaType: 'image/png', url: 'data:image/png;base64,iVBO', filename: 'a.png' }],
    ],
    [
      'other files stay',
      [{ type: 'file', mediaType: 'application/pdf', url: 'data:application/pdf;base64,JVBE' }],
      [{ type: 'file', mediaType: 'application/pdf', url: 'data:application/pdf;base64,JVBE' }],
    ],
    ['no part is no content', [], null],
  ])('%s', (_, parts, content) => {
    expect(read(...parts)).toEqual([{ role: 'assistant', content }])
  })
})

describe('reasoning', () => {
  const think = (text: string) => ({ type: 'reasoning', text })

  test('is joined by newlines', () => {
    expect(read(think('a'), think('b'), text('c'))).toEqual([
      { role: 'assistant', content: 'c', reasoning: 'a\nb' },
    ])
  })

  test('that is signed is kept in whole, too', () => {
    const signed = { ...think('b'), providerMetadata: { anthropic: { signature: 'x' } } }
    expect(read(think('a'), { ...signed, state: 'done' }, text('c'))).toEqual([
      {
        role: 'assistant',
        content: 'c',
        reasoning: 'a\nb',
        reasoning_details: [think('a'), signed],
      },
    ])
  })
})

describe('a part out of the order reasoning, content, calls begins a message', () => {
  const think = { type: 'reasoning', text: 'hm' }
  const look = { type: 'tool-look', toolCallId: 'c1', state: 'input-available', input: {} }

  test.each<[what: string, parts: object[], messages: object[]]>([
    [
      'reasoning after text',
      [text('a'), think],
      [
        { role: 'assistant', content: 'a' },
        { role: 'assistant', content: null, reasoning: 'hm' },
      ],
    ],
    [
      'text after a call',
      [look, text('a')],
      [
        { role: 'assistant', content: null, tool_calls: [call('c1', 'look', '{}')] },
        { role: 'assistant', content: 'a' },
      ],
    ],
    [
      'a step, though it has the order',
      [text('a'), { type: 'step-start' }, text('b')],
      [
        { role: 'assistant', content: 'a' },
        { role: 'assistant', content: 'b' },
      ],
    ],
    [
      'a step without anything',
      [{ type: 'step-start' }, { type: 'step-start' }, text('b')],
      [
        { role: 'assistant', content: null },
        { role: 'assistant', content: 'b' },
      ],
    ],
  ])('%s', (_, parts, messages) => {
    expect(read(...parts)).toEqual(messages)
  })
})

describe('calls', () => {
  test('of a tool by its name, of a dynamic one, with what the provider says, of input that could not be read', () => {
    const callProviderMetadata = { google: { thoughtSignature: 'x' } }
    expect(
      read(
        { type: 'tool-find-file', toolCallId: 'c1', state: 'input-streaming', input: undefined },
        {
          type: 'dynamic-tool',
          toolName: 'mcp.look',
          toolCallId: 'c2',
          state: 'input-available',
          input: [1],
        },
        { type: 'tool-look', toolCallId: 'c3', state: 'input-available', input: {}, callProviderMetadata },
        {
          type: 'tool-look',
          toolCallId: 'c4',
          state: 'output-error',
          rawInput: '{"at',
          errorText: 'no JSON',
        },
      ),
    ).toEqual([
      {
        role: 'assistant',
        content: null,
        tool_calls: [
          call('c1', 'find-file', '{}'),
          call('c2', 'mcp.look', '[1]'),
          { ...call('c3', 'look', '{}'), callProviderMetadata },
          call('c4', 'look', '{"at'),
        ],
      },
      {
        role: 'tool',
        content: [{ ...text('no JSON'), is_error: true }],
        tool_call_id: 'c4',
        tool_name: 'look',
      },
    ])
  })

  test.each<[output: unknown, content: unknown]>([
    ['sunny', 'sunny'],
    ['', ''],
    [{ degrees: 20 }, { degrees: 20 }],
    [
      [1, 'two'],
      [1, 'two'],
    ],
    [20.5, '20.5'],
    [false, 'false'],
    [null, null],
    [undefined, null],
  ])('an output of %j is the content %j of its result', (output, content) => {
    const part = { type: 'tool-look', toolCallId: 'c1', state: 'output-available', input: {}, output }
    expect(read(part)[1]).toEqual({ role: 'tool', content, tool_call_id: 'c1', tool_name: 'look' })
  })

  test('that are together have their results after them, in order', () => {
    const answered = (toolCallId: string, preliminary: boolean) => ({
      type: 'tool-look',
      toolCallId,
      state: 'output-available',
      input: {},
      output: `of ${toolCallId}`,
      preliminary,
    })
    expect(
      read(answered('c1', false), answered('c2', true)).map(({ role, content }) => [role, content]),
    ).toEqual([
      ['assistant', null],
      ['tool', 'of c1'],
      ['tool', 'of c2'],
    ])
  })
})

test.each<[what: string, chat: unknown, sentence: string]>([
  ['no chat', 7, 'a.json must be an array of UIMessages, or an object with such an array in messages.'],
  [
    'no messages',
    { parts: [] },
    'a.json must be an array of UIMessages, or an object with such an array in messages.',
  ],
  [
    'no message',
    [{ role: 'user', parts: [] }, 'hi'],
    'a.json, message 2 must be a UIMessage such as {role, parts}.',
  ],
  ['no role', [{ parts: [] }], 'a.json, message 1: role must be a non-empty string, not undefined.'],
  ['no parts', [{ role: 'user', content: 'hi' }], 'a.json, message 1: parts must be an array of parts.'],
  [
    'no part',
    [{ role: 'user', parts: [text('a'), 'b'] }],
    'a.json, message 1: parts[1] must be a part such as {type}.',
  ],
  [
    'reasoning',
    [{ role: 'assistant', parts: [{ type: 'reasoning' }] }],
    'a.json, message 1: text of reasoning must be a string, not undefined.',
  ],
  [
    'a call without an id',
    [{ role: 'assistant', parts: [{ type: 'tool-look', state: 'input-available', input: {} }] }],
    'a.json, message 1: toolCallId must be a non-empty string, not undefined.',
  ],
  [
    'a dynamic tool of a number',
    [{ role: 'assistant', parts: [{ type: 'dynamic-tool', toolName: 7, toolCallId: 'c' }] }],
    'a.json, message 1: toolName must be a string, not 7.',
  ],
  [
    'an input that would change',
    [{ role: 'assistant', parts: [{ type: 'tool-look', toolCallId: 'c', input: { id: 2 ** 53 } }] }],
    'a.json, message 1: input: arguments.id is 9007199254740992, an integer beyond 2^53 that would not come back exactly: use a string.',
  ],
  [
    'an error of a number',
    [
      {
        role: 'assistant',
        parts: [{ type: 'tool-look', toolCallId: 'c', input: {}, state: 'output-error', errorText: 7 }],
      },
    ],
    'a.json, message 1: errorText must be a string, not 7.',
  ],
  ['title', { title: 7, messages: [] }, 'a.json: title must be a string, not 7.'],
])('refused: %s', (_, chat, sentence) => {
  expect(() => fromAiSdk(chat, 'a.json')).toThrow(new TypeError(sentence))
})
