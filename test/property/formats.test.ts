import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import type { Conversation, FormatName } from '../../src/transfer/conversation.ts'
import { FORMATS, formatOf } from '../../src/transfer/formats.ts'
import { anyContent, anyText as anyHalfText, anyJson, anyObject } from '../support/arbitraries.ts'

const names = Object.keys(FORMATS) as FormatName[]

/** What a store holds: half characters are U+FFFD in it. */
const anyText = anyHalfText.map((text) => text.toWellFormed())

const call = fc.record(
  {
    id: fc.constantFrom('call_1', 'call_2', 'call_3', 'a', 'b'),
    type: fc.constantFrom('function', 'custom'),
    function: fc.record({
      name: fc.constantFrom('look', 'find', '', '__proto__'),
      arguments: fc.oneof(
        anyObject.map((value) => JSON.stringify(value)),
        anyText,
        fc.constantFrom('{"n": 12345678901234567890}', '[1]', '{ "x": 1.0 }', 'null', '"q"'),
      ),
    }),
    callProviderMetadata: fc.constant({ google: { thoughtSignature: 'x' } }),
  },
  { requiredKeys: ['function'] },
)

const part = fc.oneof(
  anyText.map((text) => ({ type: 'text', text })),
  anyText.map((text) => ({ type: 'text', text, is_error: true })),
  anyText.map((value) => ({ type: 'text', value })),
  fc
    .constantFrom('data:image/png;base64,iVBORw0K', 'data:,', 'https://a.example/b.png')
    .map((url) => ({ type: 'image_url', image_url: { url } })),
  fc.constantFrom(
    { type: 'image_url', image_url: { url: 'https://a.example', detail: 'low' } },
    { type: 'image', source: { type: 'file', file_id: 'f' } },
    { type: 'file', mediaType: 'image/png', url: 'https://a.example' },
    { type: 'data-note', data: null },
    { type: 'reasoning', value: 'a thought' },
    { type: 'tool_call', value: '{"name": "look"}' },
    { type: 'refusal', refusal: 'no' },
    { type: 'server_tool_use', id: 's', name: 'web_search', input: {} },
  ),
)

const details = fc.oneof(
  anyJson,
  fc.array(
    fc.constantFrom(
      { type: 'thinking', thinking: 'hm', signature: 's' },
      { type: 'redacted_thinking', data: 'd' },
      { type: 'reasoning', text: 'hm', providerMetadata: { p: { signature: 's' } } },
    ),
    { maxLength: 3 },
  ),
)

const message = fc.record(
  {
    role: fc.constantFrom('user', 'assistant', 'assistant', 'tool', 'tool', 'system', 'developer', 'critic'),
    content: fc.oneof(anyText, fc.constantFrom(null, ''), fc.array(part, { maxLength: 3 }), anyContent),
    tool_call_id: fc.constantFrom('call_1', 'call_2', 'a', 'b', null),
    tool_name: fc.constantFrom('look', 'find', ''),
    tool_calls: fc.oneof(fc.constant(null), fc.array(call, { maxLength: 3 })),
    reasoning: fc.oneof(anyText, fc.constant('hm')),
    reasoning_details: details,
    finish_reason: fc.constantFrom('stop', null),
    timestamp: fc.constant(1_700_000_000),
  },
  { requiredKeys: ['role'] },
)

/** Any conversation, however little sense it makes. */
const anyConversation: fc.Arbitrary<Conversation> = fc.record(
  {
    title: anyText,
    model: fc.constantFrom('m', ''),
    source: anyText,
    system_prompt: anyText,
    tools: fc.oneof(anyObject, fc.constant('[{"name":"look"}]'), fc.constant(null)),
    // The first message is not a system message without words.
    messages: fc
      .array(message, { maxLength: 8 })
      .map((messages) => [{ role: 'user', content: 'Hi' }, ...messages]),
  },
  { requiredKeys: ['messages'] },
)

const calls = (ids: readonly string[]) =>
  fc.tuple(anyText, fc.tuple(...ids.map(() => anyObject))).map(([content, inputs]) => [
    {
      role: 'assistant',
      content: ids.length > 1 ? content : null,
      tool_calls: inputs.map((input, index) => ({
        id: ids[index]!,
        type: 'function',
        function: { name: `tool_${index}`, arguments: JSON.stringify(input) },
      })),
    },
    ...ids.map((id, index) => ({ role: 'tool', content, tool_call_id: id, tool_name: `tool_${index}` })),
  ])

/** A conversation as agents have them: questions, calls that are all answered, answers. */
const usualConversation: fc.Arbitrary<Conversation> = fc
  .tuple(
    anyText,
    fc.constantFrom(['call_1'], ['call_1', 'call_2'], ['x', 'y', 'z']).chain(calls),
    anyText,
    fc.option(anyText),
  )
  .map(([question, step, answer, system]) => ({
    system_prompt: system ?? undefined,
    messages: [
      { role: 'user', content: question },
      ...step,
      { role: 'assistant', content: answer },
      { role: 'user', content: question },
    ],
  }))

/** Half characters within structured content are U+FFFD too. */
function stored(conversation: Conversation): Conversation {
  return JSON.parse(JSON.stringify(conversation), (_key, value) =>
    typeof value === 'string' ? value.toWellFormed() : value,
  )
}

/** What counts as the same: nothing and an empty text, a list of one text and the text, whatever its white space. */
function meant(conversation: Conversation): unknown {
  const { system_prompt, tools, title, model, source, messages } = conversation
  const all = system_prompt ? [{ role: 'system', content: system_prompt }, ...messages] : messages
  return JSON.parse(
    JSON.stringify({ title, model, source, tools, all }, (key, value: unknown) => {
      if (key === 'arguments' && typeof value === 'string') {
        try {
          return JSON.parse(value)
        } catch {
          return value
        }
      }
      if (value === null || value === '') return undefined
      if (key === 'tool_calls' && Array.isArray(value) && value.length === 0) return undefined
      return value
    }),
  )
}

describe.each(names)('%s', (name) => {
  const { from, to } = FORMATS[name]

  test('what it writes, it reads, and writes the same again with nothing left out', () => {
    fc.assert(
      fc.property(anyConversation, (conversation) => {
        const { value } = to(stored(conversation))
        const again = to(from(JSON.parse(JSON.stringify(value)), 'it'))
        expect(JSON.parse(JSON.stringify(again.value))).toEqual(JSON.parse(JSON.stringify(value)))
        expect(again.not_carried).toEqual({})
      }),
      { numRuns: 1000 },
    )
  })

  test('a conversation of which it leaves nothing out comes back', () => {
    let whole = 0
    fc.assert(
      fc.property(usualConversation, (conversation) => {
        const { value, not_carried } = to(conversation)
        if (Object.keys(not_carried).length > 0) return
        whole++
        const { source_format: _format, ...read } = from(JSON.parse(JSON.stringify(value)), 'it')
        expect(meant(read)).toEqual(meant(conversation))
        expect(FORMATS[formatOf(JSON.parse(JSON.stringify(value)))!]).toBeDefined()
      }),
      { numRuns: 500 },
    )
    expect(whole).toBeGreaterThan(20)
  })
})
