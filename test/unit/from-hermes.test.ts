import { describe, expect, test } from 'vitest'
import { fromHermes } from '../../src/index.ts'

const session = (fields: object) => ({ id: 's', source: 'cli', started_at: 1000, messages: [], ...fields })
const read = (message: object) => fromHermes(session({ messages: [message] }), 'a.jsonl, line 1').messages

test('columns stay, text of model_config is kept as it is, a value of it too', () => {
  expect(fromHermes(session({ title: 'Tea', model_config: '{"top_p": 1.0}', cwd: '/tmp' }), 'a')).toEqual({
    type: 'session',
    id: 's',
    source: 'cli',
    started_at: 1000,
    title: 'Tea',
    raw: { model_config: '{"top_p": 1.0}' },
    cwd: '/tmp',
    messages: [],
  })
  expect(fromHermes(session({ model_config: { top_p: 1 } }), 'a')).toMatchObject({
    model_config: { top_p: 1 },
  })
  expect(fromHermes(session({ model_config: null }), 'a')).toMatchObject({ model_config: null })
})

describe('a message', () => {
  const message = { role: 'user', timestamp: 1 }

  test.each<[what: string, message: object, record: object]>([
    [
      'whose JSON is values keeps them',
      { ...message, content: 'hi', tool_calls: [{ id: 'c' }], reasoning_details: null },
      { ...message, content: 'hi', tool_calls: [{ id: 'c' }], reasoning_details: null },
    ],
    [
      'whose JSON is text keeps the text, broken or not',
      {
        ...message,
        content: '',
        tool_calls: '[{"n": 1.0}]',
        reasoning_details: '[',
        codex_reasoning_items: '',
      },
      {
        ...message,
        content: '',
        raw: { tool_calls: '[{"n": 1.0}]', reasoning_details: '[', codex_reasoning_items: '' },
      },
    ],
    [
      'with structured content keeps its text',
      { ...message, content: '\0json:[{"type": "text"}]' },
      { ...message, raw: { content: '[{"type": "text"}]' } },
    ],
    [
      'with broken structured content is that text',
      { ...message, content: '\0json:[' },
      { ...message, content: '\0json:[' },
    ],
    ['with content in parts keeps them', { ...message, content: [7] }, { ...message, content: [7] }],
    ['that was taken back', { ...message, active: 0 }, { ...message, inactive: 'undone' }],
    [
      'that was summarised away',
      { ...message, active: 0, compacted: 1 },
      { ...message, inactive: 'compacted' },
    ],
    ['that is there', { ...message, active: 1, compacted: 0 }, message],
    [
      'whose flags are off has none',
      { ...message, observed: 0, display_kind: null },
      { ...message, display_kind: null },
    ],
    [
      'at time 0, of 0 tokens',
      { ...message, timestamp: 0, token_count: 0 },
      { role: 'user', timestamp: 0, token_count: 0 },
    ],
    [
      'with fields of later versions keeps them',
      { ...message, api_content: 'x' },
      { ...message, api_content: 'x' },
    ],
  ])('%s', (_, given, record) => {
    expect(read(given)).toEqual([record])
  })
})

test.each<[what: string, value: unknown, sentence: string]>([
  ['no session', [], 'a.jsonl, line 1 must be a session with its messages.'],
  ['no messages', session({ messages: {} }), 'a.jsonl, line 1: messages must be an array.'],
  ['no message', session({ messages: [{}, 7] }), 'a.jsonl, line 1: messages[1] must be an object.'],
])('refused: %s', (_, value, sentence) => {
  expect(() => fromHermes(value, 'a.jsonl, line 1')).toThrow(new TypeError(sentence))
})
