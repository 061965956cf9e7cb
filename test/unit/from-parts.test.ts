import { describe, expect, test } from 'vitest'
import { fromParts } from '../../src/index.ts'

const text = (value: string) => ({ type: 'text', value })
const think = (value: string) => ({ type: 'reasoning', value })
const calls = (value: string) => ({ type: 'tool_call', value })
const call = (id: string, name: string, args: string) => ({
  id,
  type: 'function',
  function: { name, arguments: args },
})

test('the fields of the session, and a developer message as its prompt', () => {
  expect(
    fromParts(
      {
        title: 'Tea',
        model: 'm-1',
        source: 'cli',
        tools: [{ name: 'look' }],
        id: 7,
        messages: [{ role: 'developer', content: [text('Be brief.'), text('Be kind.')] }],
      },
      'a.jsonl, line 1',
    ),
  ).toEqual({
    source_format: 'parts',
    title: 'Tea',
    model: 'm-1',
    source: 'cli',
    tools: [{ name: 'look' }],
    system_prompt: 'Be brief.\nBe kind.',
    messages: [],
  })
})

test('thoughts are joined by newlines, apart from what is said, wherever they are', () => {
  expect(
    fromParts([{ role: 'assistant', content: [text('a'), think('1'), text('b'), think('2')] }], 'a').messages,
  ).toEqual([{ role: 'assistant', content: 'a\nb', reasoning: '1\n2' }])
})

test('parts of other kinds stay beside text, without thoughts and calls; a call that is none is text', () => {
  const image = { type: 'image', value: 'data:,', detail: 'low' }
  expect(
    fromParts(
      [{ role: 'assistant', content: [think('hm'), image, calls('{"name": "look"}'), calls('look()')] }],
      'a',
    ).messages,
  ).toEqual([
    {
      role: 'assistant',
      content: [image, text('look()')],
      reasoning: 'hm',
      tool_calls: [call('call_1', 'look', '{}')],
    },
  ])
})

test('calls are numbered through the conversation; several may be in one part', () => {
  const both = '[{"name": "a", "arguments": {"x": [1]}}, {"name": "b", "arguments": "{ }"}]'
  const { messages } = fromParts(
    [
      { role: 'assistant', content: [calls(both)] },
      { role: 'assistant', content: [calls('{"name": "c", "arguments": null}')] },
    ],
    'a',
  )
  expect(messages.map(({ tool_calls }) => tool_calls)).toEqual([
    [call('call_1', 'a', '{"x":[1]}'), call('call_2', 'b', '{ }')],
    [call('call_3', 'c', '{}')],
  ])
})

describe('results', () => {
  const open = { role: 'assistant', content: [calls('{"name": "a"}'), calls('{"name": "b"}')] }
  const results = (...messages: object[]) =>
    fromParts([open, ...messages], 'a').messages.filter(({ role }) => role === 'tool')

  test('answer the calls in order, one by one', () => {
    expect(
      results(
        { role: 'tool', content: [text('of a')] },
        { role: 'assistant', content: 'one moment' },
        { role: 'tool', content: 'of b' },
        { role: 'tool', content: null },
      ),
    ).toEqual([
      { role: 'tool', content: 'of a', tool_call_id: 'call_1', tool_name: 'a' },
      { role: 'tool', content: 'of b', tool_call_id: 'call_2', tool_name: 'b' },
      { role: 'tool', content: null },
    ])
  })

  test('or all at once, by name', () => {
    const list = '[{"tool_call_id": "x", "name": "a", "content": "7"}, {"name": "b", "content": null}]'
    expect(results({ role: 'tool', content: [text(list)] })).toEqual([
      { role: 'tool', content: '7', tool_call_id: 'x', tool_name: 'a' },
      { role: 'tool', content: 'null', tool_call_id: 'call_2', tool_name: 'b' },
    ])
  })
})

test.each([
  [
    'arguments that would change',
    [{ role: 'assistant', content: [calls('{"name": "a", "arguments": {"id": 12345678901234567890}}')] }],
    'a.jsonl, line 1, message 1: content[0]: arguments.id is 12345678901234567000, an integer beyond 2^53 that would not come back exactly: use a string.',
  ],
  [
    'a result that would change',
    [
      { role: 'assistant', content: [calls('{"name": "a"}')] },
      { role: 'tool', content: '[{"name": "a", "content": {"id": 12345678901234567890}}]' },
    ],
    'a.jsonl, line 1, message 2: content.id is 12345678901234567000, an integer beyond 2^53 that would not come back exactly: use a string.',
  ],
  ['source', { source: [], messages: [] }, 'a.jsonl, line 1: source must be a string, not an array.'],
])('refused: %s', (_, conversation, sentence) => {
  expect(() => fromParts(conversation, 'a.jsonl, line 1')).toThrow(new TypeError(sentence))
})
