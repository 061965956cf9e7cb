import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import type { NewMessage } from '../../src/index.ts'
import { anyContent, anyJson, anyObject, anyText } from '../support/arbitraries.ts'
import { bothModes, eventsOf, rawRow } from '../support/stores.ts'

/** JSON as text: equal texts are equal values, whatever their prototypes. */
const same = (value: unknown) => JSON.stringify(value)

describe.each(bothModes)('in $name', (kind) => {
  test('any text comes back well-formed, and is stored as UTF-8', async () => {
    const store = await kind.open()
    await fc.assert(
      fc.asyncProperty(fc.array(anyText, { minLength: 9, maxLength: 9 }), async (texts) => {
        const [content, tool_call_id, tool_name, finish_reason, reasoning, user_id, system_prompt] = texts
        const [role, source] = texts.slice(7).map((text) => `x${text}`)
        const session = await store.sessions.create({
          source: source!,
          user_id,
          system_prompt,
          model: content,
        })
        expect(await store.sessions.get(session)).toMatchObject({
          source: source?.toWellFormed(),
          user_id: user_id?.toWellFormed(),
          system_prompt: system_prompt?.toWellFormed(),
          model: content?.toWellFormed(),
        })
        const message = { role: role!, content, tool_call_id, tool_name, finish_reason, reasoning }
        const id = await store.messages.append(session, message)
        expect(await store.messages.get(id)).toMatchObject(
          Object.fromEntries(Object.entries(message).map(([name, text]) => [name, text?.toWellFormed()])),
        )
        const { bytes } = await rawRow<{ bytes: Buffer }>(
          store,
          'select cast(reasoning as blob) as bytes from messages where id = ?',
          id,
        )
        expect(bytes.toString('hex')).toBe(Buffer.from(reasoning!, 'utf8').toString('hex'))
      }),
      { numRuns: 150 },
    )
    expect(eventsOf(store, 'broken-json')).toEqual([])
    expect(eventsOf(store, 'ill-formed-text')).toEqual([])
  })

  test('any JSON comes back exactly', async () => {
    const store = await kind.open()
    await fc.assert(
      fc.asyncProperty(
        anyContent,
        anyObject,
        anyJson,
        anyJson,
        fc.array(anyJson, { minLength: 1, maxLength: 3 }),
        async (content, model_config, reasoning_details, codex_reasoning_items, extras) => {
          const session = await store.sessions.create({ source: 'cli', model_config })
          expect(same((await store.sessions.get(session))?.model_config)).toBe(same(model_config))
          const tool_calls = extras.map((extra) => ({ function: { name: 'f', arguments: '{}' }, extra }))
          const id = await store.messages.append(session, {
            role: 'assistant',
            content,
            tool_calls,
            reasoning_details,
            codex_reasoning_items,
          })
          const message = await store.messages.get(id)
          expect(same(message?.content)).toBe(same(content))
          expect(same(message?.tool_calls)).toBe(same(tool_calls))
          expect(same(message?.reasoning_details)).toBe(same(reasoning_details))
          expect(same(message?.codex_reasoning_items)).toBe(same(codex_reasoning_items))
          const [replay] = await store.messages.conversation(session)
          expect(same(replay?.content)).toBe(same(content))
          expect(same(replay?.tool_calls)).toBe(same(tool_calls))
        },
      ),
      { numRuns: 150 },
    )
    expect(eventsOf(store, 'broken-json')).toEqual([])
  })

  const anyMessage: fc.Arbitrary<NewMessage> = fc.record(
    {
      role: fc.constantFrom('system', 'user', 'assistant', 'tool'),
      content: fc.oneof(anyText, anyContent, fc.constant(null)),
      tool_calls: fc.array(fc.constant({ id: 'c', function: { name: 'f', arguments: '{}' } }), {
        maxLength: 3,
      }),
      timestamp: fc.double({ min: 0, max: 4e9, noNaN: true }),
    },
    { requiredKeys: ['role'] },
  )

  test('any sequence of writes leaves what the same writes leave in an array', async () => {
    const store = await kind.open()
    const messages = fc.array(anyMessage, { maxLength: 4 })
    const step = fc.oneof(
      {
        weight: 6,
        arbitrary: fc.record({ how: fc.constantFrom('one by one', 'together', 'many'), messages }),
      },
      { weight: 1, arbitrary: fc.record({ how: fc.constantFrom('replace'), messages }) },
      { weight: 1, arbitrary: fc.record({ how: fc.constantFrom('clear'), messages: fc.constant([]) }) },
    )
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 6 }), async (steps) => {
        const session = await store.sessions.create({ source: 'cli' })
        let model: NewMessage[] = []
        for (const { how, messages } of steps) {
          if (how === 'replace' || how === 'clear') model = []
          model.push(...messages)
          if (how === 'one by one')
            for (const message of messages) await store.messages.append(session, message)
          else if (how === 'together')
            await Promise.all(messages.map((message) => store.messages.append(session, message)))
          else if (how === 'many') await store.messages.appendMany(session, messages)
          else if (how === 'replace') await store.messages.replaceAll(session, messages)
          else await store.messages.clear(session)
        }
        const stored = await store.messages.list(session)
        expect(stored.map(({ role, content }) => same([role, content]))).toEqual(
          model.map(({ role, content = null }) =>
            same([role, typeof content === 'string' ? content.toWellFormed() : content]),
          ),
        )
        expect(stored.map(({ id }) => id)).toEqual(stored.map(({ id }) => id).sort((a, b) => a - b))
        for (const [index, { timestamp }] of model.entries())
          if (timestamp !== undefined) expect(stored[index]?.timestamp).toBe(timestamp)
        expect(await store.messages.count(session)).toBe(model.length)
        expect(await store.sessions.get(session)).toMatchObject({
          message_count: model.length,
          tool_call_count: model.reduce((sum, { tool_calls }) => sum + (tool_calls?.length ?? 0), 0),
        })
      }),
      { numRuns: 60 },
    )
  })
})
