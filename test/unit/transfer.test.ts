import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, describe, expect, test } from 'vitest'
import type { ImportedConversation } from '../../src/transfer/conversation.ts'
import { FORMATS } from '../../src/transfer/formats.ts'
import { fromOpenAi } from '../../src/transfer/openai.ts'
import { fromParts } from '../../src/transfer/parts.ts'
import { readConversations } from '../../src/transfer/read-conversations.ts'
import { fromShareGpt } from '../../src/transfer/sharegpt.ts'
import { fromSweAgent } from '../../src/transfer/swe-agent.ts'

const folder = mkdtempSync(join(tmpdir(), 'hermes-state-transfer-'))
afterAll(() => rmSync(folder, { recursive: true }))

function file(name: string, text: string): string {
  const path = join(folder, name)
  writeFileSync(path, text)
  return path
}

async function readAll(path: string): Promise<ImportedConversation[]> {
  const conversations: ImportedConversation[] = []
  for await (const conversation of readConversations(path)) conversations.push(conversation)
  return conversations
}

const call = (id: string, name: string, args: string) => ({
  id,
  type: 'function',
  function: { name, arguments: args },
})

describe('OpenAI messages', () => {
  test('the leading system message is the system prompt, later ones stay', () => {
    expect(
      fromOpenAi(
        [
          { role: 'system', content: 'Be brief.' },
          { role: 'user', content: 'Hi' },
          { role: 'system', content: 'It is Monday.' },
        ],
        'a.json',
      ),
    ).toEqual({
      source_format: 'openai',
      system_prompt: 'Be brief.',
      messages: [
        { role: 'user', content: 'Hi' },
        { role: 'system', content: 'It is Monday.' },
      ],
    })
  })

  test('a leading system message in parts of text is joined, one with an image stays', () => {
    const text = [
      { type: 'text', text: 'Be brief.' },
      { type: 'text', text: 'Be kind.' },
    ]
    expect(fromOpenAi([{ role: 'developer', content: text }], 'a.json')).toMatchObject({
      system_prompt: 'Be brief.\nBe kind.',
      messages: [],
    })
    const image = [{ type: 'image_url', image_url: { url: 'data:image/png;base64,' } }]
    const { system_prompt, messages } = fromOpenAi([{ role: 'system', content: image }], 'a.json')
    expect(system_prompt).toBeUndefined()
    expect(messages).toEqual([{ role: 'system', content: image }])
  })

  test('calls, results, reasoning and the fields of the session', () => {
    const content = [{ type: 'text', text: 'Tokyo?', cache_control: { type: 'ephemeral' } }]
    const details = [{ type: 'reasoning.text', text: 'look it up', signature: 'x' }]
    expect(
      fromOpenAi(
        {
          title: 'Weather',
          model: 'm-1',
          source: 'telegram',
          tools: '[{"name":"weather"}]',
          messages: [
            { role: 'user', content, name: 'kim' },
            {
              role: 'assistant',
              tool_calls: [
                { ...call('c1', 'weather', '{"city": "東京"}'), index: 0 },
                { id: 'c2', function: { name: 'clock' } },
                { function: { name: 'clock', arguments: { zone: 'JST' } } },
              ],
              reasoning_content: 'look it up',
              reasoning_details: details,
              finish_reason: 'tool_calls',
            },
            { role: 'tool', tool_call_id: 'c1', name: 'weather_v2', content: 'sunny' },
            { role: 'tool', tool_call_id: 'c2', content: '12:00' },
            { role: 'tool', content: null },
            { role: 'assistant', content: 'Sunny.', reasoning: 'done', tool_calls: null },
          ],
        },
        'a.json',
      ),
    ).toEqual({
      source_format: 'openai',
      title: 'Weather',
      model: 'm-1',
      source: 'telegram',
      tools: [{ name: 'weather' }],
      messages: [
        { role: 'user', content },
        {
          role: 'assistant',
          content: null,
          tool_calls: [
            { ...call('c1', 'weather', '{"city": "東京"}'), index: 0 },
            { id: 'c2', function: { name: 'clock', arguments: '{}' } },
            { function: { name: 'clock', arguments: '{"zone":"JST"}' } },
          ],
          reasoning: 'look it up',
          reasoning_details: details,
          finish_reason: 'tool_calls',
        },
        { role: 'tool', tool_call_id: 'c1', tool_name: 'weather_v2', content: 'sunny' },
        { role: 'tool', tool_call_id: 'c2', tool_name: 'clock', content: '12:00' },
        { role: 'tool', content: null },
        { role: 'assistant', content: 'Sunny.', reasoning: 'done' },
      ],
    })
  })

  test.each([
    ['no array', 7, 'a.json must be an array of OpenAI messages'],
    ['messages is no array', { messages: {} }, 'a.json must be an array of OpenAI messages'],
    ['no message', [{ role: 'user' }, 'hi'], 'a.json, message 2 must be an object such as {role, content}.'],
    ['no role', [{ content: 'hi' }], 'a.json, message 1: role must be a non-empty string'],
    [
      'content',
      [{ role: 'user', content: 7 }],
      'a.json, message 1: content must be text, an array of parts or null, not 7.',
    ],
    ['tool_call_id', [{ role: 'tool', tool_call_id: 7 }], 'message 1: tool_call_id must be a string'],
    ['name', [{ role: 'tool', name: 7 }], 'message 1: name must be a string'],
    ['calls', [{ role: 'assistant', tool_calls: '[]' }], 'message 1: tool_calls must be an array of calls.'],
    [
      'call',
      [{ role: 'assistant', tool_calls: [call('c', 'n', '{}'), { id: 'd', name: 'n' }] }],
      'message 1: tool_calls[1] must be a call such as',
    ],
    [
      'call id',
      [{ role: 'assistant', tool_calls: [{ ...call('c', 'n', '{}'), id: 7 }] }],
      'tool_calls[0] must',
    ],
    ['reasoning', [{ role: 'assistant', reasoning: [] }], 'message 1: reasoning must be a string'],
    ['title', { messages: [], title: 7 }, 'a.json: title must be a string'],
  ])('refused: %s', (_what, value, sentence) => {
    const read = () => fromOpenAi(value, 'a.json')
    expect(read).toThrow(TypeError)
    expect(read).toThrow(sentence)
  })
})

describe('ShareGPT', () => {
  const read = (...turns: [from: string, value: string][]) =>
    fromShareGpt({ conversations: turns.map(([from, value]) => ({ from, value })) }, 'a.json').messages

  test('a call, its result, the system prompt and the tools', () => {
    expect(
      fromShareGpt(
        {
          system: '你是助手',
          tools: '[{"name": "发票", "parameters": {}}]',
          conversations: [
            { from: 'human', value: '开发票' },
            { from: 'function_call', value: '{"name": "发票", "arguments": {"客户": "约翰", "数量": 2.50}}' },
            { from: 'observation', value: '{"id": "INV1"}' },
            { from: 'gpt', value: '好了' },
          ],
        },
        'a.json',
      ),
    ).toEqual({
      source_format: 'sharegpt',
      system_prompt: '你是助手',
      tools: [{ name: '发票', parameters: {} }],
      messages: [
        { role: 'user', content: '开发票' },
        {
          role: 'assistant',
          content: null,
          tool_calls: [call('call_1', '发票', '{"客户":"约翰","数量":2.5}')],
        },
        { role: 'tool', content: '{"id": "INV1"}', tool_call_id: 'call_1', tool_name: '发票' },
        { role: 'assistant', content: '好了' },
      ],
    })
  })

  test('arguments that are text stay, missing ones are {}', () => {
    expect(
      read(
        ['function_call', '{"name": "a", "arguments": "{ \\"x\\": 1.0 }"}'],
        ['function_call', '{"name": "b"}'],
      ),
    ).toMatchObject([
      { tool_calls: [call('call_1', 'a', '{ "x": 1.0 }')] },
      { tool_calls: [call('call_2', 'b', '{}')] },
    ])
  })

  test('results answer open calls in order, and none across a question', () => {
    const messages = read(
      ['function_call', '[{"name": "a", "arguments": {}}, {"name": "b", "arguments": {}}]'],
      ['observation', 'of a'],
      ['gpt', 'one moment'],
      ['observation', 'of b'],
      ['observation', 'of nothing'],
      ['function_call', '{"name": "c"}'],
      ['human', 'forget it'],
      ['tool', 'late'],
    )
    expect(messages.filter(({ role }) => role === 'tool')).toEqual([
      { role: 'tool', content: 'of a', tool_call_id: 'call_1', tool_name: 'a' },
      { role: 'tool', content: 'of b', tool_call_id: 'call_2', tool_name: 'b' },
      { role: 'tool', content: 'of nothing' },
      { role: 'tool', content: 'late' },
    ])
  })

  test.each(['search(tea)', '{"tool": "search"}', '[]', '"search"'])(
    '%s is no call: it stays as text',
    (text) => {
      expect(read(['function_call', text])).toEqual([{ role: 'assistant', content: text }])
    },
  )

  test('a first system turn is the system prompt, tools that are not JSON stay text', () => {
    expect(
      fromShareGpt({ tools: 'search', conversations: [{ from: 'system', value: 'Be brief.' }] }, 'a.json'),
    ).toEqual({ source_format: 'sharegpt', system_prompt: 'Be brief.', tools: 'search', messages: [] })
  })

  test.each([
    ['no object', [], 'a.json must be an object such as {conversations: [{from, value}]}.'],
    ['no turns', {}, 'a.json: conversations must be an array of turns {from, value}.'],
    ['no turn', { conversations: ['hi'] }, 'a.json, message 1 must be an object such as {from, value}.'],
    ['no text', { conversations: [{ from: 'gpt' }] }, 'a.json, message 1: value must be a string'],
    ['unknown', { conversations: [{ from: 'bing', value: '' }] }, 'message 1: from must be human, gpt,'],
    ['system', { system: 7, conversations: [] }, 'a.json: system must be a string'],
    [
      'a number that would change',
      {
        conversations: [
          { from: 'function_call', value: '{"name": "a", "arguments": {"id": 12345678901234567890}}' },
        ],
      },
      'a.json, message 1: arguments.id is 12345678901234567000, an integer beyond 2^53',
    ],
  ])('refused: %s', (_what, value, sentence) => {
    const attempt = () => fromShareGpt(value, 'a.json')
    expect(attempt).toThrow(TypeError)
    expect(attempt).toThrow(sentence)
  })
})

describe('lists of parts', () => {
  const text = (value: string) => ({ type: 'text', value })
  const think = (value: string) => ({ type: 'reasoning', value })
  const calls = (value: string) => ({ type: 'tool_call', value })

  test('text, reasoning, calls and a result for each', () => {
    expect(
      fromParts(
        {
          tools: '[]',
          messages: [
            { role: 'system', content: [text('Think.')] },
            { role: 'user', content: [text('Areas?')] },
            {
              role: 'assistant',
              content: [
                think('two circles'),
                calls('{"name": "area", "arguments": {"r": 1.5}}'),
                calls('{"name": "area", "arguments": {"r": 3}}'),
              ],
            },
            {
              role: 'tool',
              content: [
                text(
                  '[{"tool_call_id": "x1", "name": "area", "content": "7.07"}, {"name": "area", "content": {"m2": 28.27}}]',
                ),
              ],
            },
            { role: 'assistant', content: [think('fine'), text('7.07'), text('28.27')] },
          ],
        },
        'a.jsonl, line 1',
      ),
    ).toEqual({
      source_format: 'parts',
      system_prompt: 'Think.',
      tools: [],
      messages: [
        { role: 'user', content: 'Areas?' },
        {
          role: 'assistant',
          content: null,
          reasoning: 'two circles',
          tool_calls: [call('x1', 'area', '{"r":1.5}'), call('call_2', 'area', '{"r":3}')],
        },
        { role: 'tool', content: '7.07', tool_call_id: 'x1', tool_name: 'area' },
        { role: 'tool', content: '{"m2":28.27}', tool_call_id: 'call_2', tool_name: 'area' },
        { role: 'assistant', content: '7.07\n28.27', reasoning: 'fine' },
      ],
    })
  })

  test.each([
    ['the bare result', '[{"result": 7}]'],
    ['further fields', '[{"name": "a", "content": "7", "error": true}]'],
    ['another name', '[{"name": "b", "content": "7"}]'],
    ['another number', '[{"name": "a", "content": "7"}, {"name": "a", "content": "8"}]'],
    ['no JSON', '7 m²'],
    ['empty', '[]'],
  ])('a result stays as it is: %s', (_what, result) => {
    const { messages } = fromParts(
      [
        { role: 'assistant', content: [calls('{"name": "a"}')] },
        { role: 'tool', content: [text(result)] },
      ],
      'a.json',
    )
    expect(messages[1]).toEqual({ role: 'tool', content: result, tool_call_id: 'call_1', tool_name: 'a' })
  })

  test('a result after a question answers no earlier call', () => {
    const { messages } = fromParts(
      [
        { role: 'assistant', content: [calls('{"name": "a"}')] },
        { role: 'user', content: 'stop' },
        { role: 'tool', content: [text('7')] },
      ],
      'a.json',
    )
    expect(messages[2]).toEqual({ role: 'tool', content: '7' })
  })

  test('other parts, calls that are none, text and null', () => {
    const image = { type: 'image_url', value: 'data:,' }
    expect(
      fromParts(
        [
          { role: 'user', content: [text('What is this?'), image] },
          { role: 'assistant', content: [calls('look()')] },
          { role: 'user', content: 'plain' },
          { role: 'assistant', content: null },
        ],
        'a.json',
      ).messages,
    ).toEqual([
      { role: 'user', content: [text('What is this?'), image] },
      { role: 'assistant', content: 'look()' },
      { role: 'user', content: 'plain' },
      { role: 'assistant', content: null },
    ])
  })

  test.each([
    ['no array', {}, 'a.json must be an array of messages with lists of parts'],
    ['no message', [7], 'a.json, message 1 must be an object such as {role, content: [{type, value}]}.'],
    ['no role', [{ content: [] }], 'message 1: role must be a non-empty string'],
    ['content', [{ role: 'user', content: 7 }], 'message 1: content must be a list of parts'],
    [
      'part',
      [{ role: 'user', content: ['hi'] }],
      'message 1: content[0] must be a part such as {type, value}.',
    ],
    [
      'reasoning',
      [{ role: 'user', content: [think(''), { type: 'reasoning' }] }],
      'content[1].value must be a string',
    ],
    [
      'call',
      [{ role: 'user', content: [{ type: 'tool_call', value: {} }] }],
      'content[0].value must be a string',
    ],
  ])('refused: %s', (_what, value, sentence) => {
    const attempt = () => fromParts(value, 'a.json')
    expect(attempt).toThrow(TypeError)
    expect(attempt).toThrow(sentence)
  })
})

describe('SWE-agent', () => {
  test('history', () => {
    const image = [
      { type: 'text', text: 'see' },
      { type: 'image_url', image_url: { url: 'data:,' } },
    ]
    const blocks = [{ type: 'thinking', thinking: 'hm', signature: 'x' }]
    expect(
      fromSweAgent(
        {
          environment: 'main',
          trajectory: [],
          history: [
            { role: 'system', content: 'SETTING', agent: 'main', message_type: 'system_prompt' },
            { role: 'user', content: [{ type: 'text', text: 'Fix it.' }], agent: 'main' },
            {
              role: 'assistant',
              content: 'List first.',
              thought: 'List first.\n',
              action: 'ls',
              agent: 'main',
              tool_calls: [call('c1', 'bash', '{"command":"ls"}')],
            },
            { role: 'tool', content: 'README', agent: 'main', tool_call_ids: ['c1'] },
            {
              role: 'assistant',
              content: '```\npwd\n```',
              thought: 'Where am I?',
              action: 'pwd',
              thinking_blocks: blocks,
            },
            { role: 'user', content: image },
            { role: 'assistant', content: '', thought: '', action: 'submit' },
          ],
        },
        'a.traj',
      ),
    ).toEqual({
      source_format: 'swe-agent',
      system_prompt: 'SETTING',
      messages: [
        { role: 'user', content: 'Fix it.' },
        { role: 'assistant', content: 'List first.', tool_calls: [call('c1', 'bash', '{"command":"ls"}')] },
        { role: 'tool', content: 'README', tool_call_id: 'c1', tool_name: 'bash' },
        { role: 'assistant', content: '```\npwd\n```', reasoning: 'Where am I?', reasoning_details: blocks },
        { role: 'user', content: image },
        { role: 'assistant', content: 'submit' },
      ],
    })
  })

  test('the latest call of an id that is used again names the tool', () => {
    const step = (name: string) => [
      { role: 'assistant', content: '', tool_calls: [call('same', name, '{}')] },
      { role: 'tool', content: 'done', tool_call_ids: ['same'] },
    ]
    const { messages } = fromSweAgent({ history: [...step('find'), ...step('open')] }, 'a.traj')
    expect(messages.map((message) => message.tool_name)).toEqual([undefined, 'find', undefined, 'open'])
  })

  test.each([
    ['no object', [], 'a.traj must be a SWE-agent trajectory such as {history: […]}.'],
    ['no history', {}, 'a.traj: history must be an array of messages such as {role, content}.'],
    ['no message', { history: ['hi'] }, 'a.traj, message 1 must be an object such as {role, content}.'],
    ['ids', { history: [{ role: 'tool', tool_call_ids: [7] }] }, 'message 1: tool_call_id must be a string'],
  ])('refused: %s', (_what, value, sentence) => {
    const attempt = () => fromSweAgent(value, 'a.traj')
    expect(attempt).toThrow(TypeError)
    expect(attempt).toThrow(sentence)
  })
})

describe('files', () => {
  const openAi = { messages: [{ role: 'user', content: 'openai' }] }
  const shareGpt = { conversations: [{ from: 'human', value: 'sharegpt' }] }
  const parts = { messages: [{ role: 'user', content: [{ type: 'text', value: 'parts' }] }] }
  const sweAgent = { history: [{ role: 'user', content: 'swe-agent' }] }
  const all = [openAi, shareGpt, parts, sweAgent, openAi.messages, parts.messages]
  const formats = ['openai', 'sharegpt', 'parts', 'swe-agent', 'openai', 'parts']

  test.each([
    ['an array of conversations', JSON.stringify(all), formats],
    ['the same, indented', JSON.stringify(all, null, 2), formats],
    ['JSON Lines', all.map((item) => JSON.stringify(item)).join('\n'), formats],
    [
      'JSON Lines with a byte order mark, \\r\\n, empty lines and an array in a line',
      `\uFEFF\n${JSON.stringify(openAi)}\r\n\r\n${JSON.stringify([shareGpt, parts])}\r\n`,
      ['openai', 'sharegpt', 'parts'],
    ],
    [
      'one conversation after a byte order mark',
      `\uFEFF${JSON.stringify(shareGpt, null, 2)}\n`,
      ['sharegpt'],
    ],
    ['an array of messages', JSON.stringify(openAi.messages), ['openai']],
    ['a trajectory', JSON.stringify(sweAgent, null, 4), ['swe-agent']],
    ['an empty array', '[]', []],
  ])('%s, whatever its name', async (_what, text, expected) => {
    const conversations = await readAll(file('any.txt', text))
    expect(conversations.map((conversation) => conversation.source_format)).toEqual(expected)
    for (const { source_format, messages } of conversations)
      expect(messages).toEqual([{ role: 'user', content: source_format }])
  })

  test('a line separator within JSON text ends no line, and lines longer than a chunk are whole', async () => {
    const long = 'ab\u2028c\u2029d '.repeat(30_000)
    const line = JSON.stringify([{ role: 'user', content: long }])
    const conversations = await readAll(file('separators.jsonl', `${line}\n${line}\n`))
    expect(conversations.map(({ messages }) => messages[0]?.content === long)).toEqual([true, true])
  })

  test('lines are read as they are asked for', async () => {
    const path = file(
      'broken-later.jsonl',
      `${JSON.stringify(openAi)}\n${JSON.stringify(parts)}\n{"messages": [`,
    )
    const read: string[] = []
    const attempt = async () => {
      for await (const conversation of readConversations(path)) read.push(conversation.source_format)
    }
    await expect(attempt()).rejects.toThrow(new TypeError(`${path}, line 3 must be a JSON document.`))
    expect(read).toEqual(['openai', 'parts'])
    for await (const conversation of readConversations(path)) {
      expect(conversation.source_format).toBe('openai')
      break
    }
  })

  test.each([
    ['empty', '', ' must be one JSON document, or JSON Lines with one on each line.'],
    ['not JSON', 'role: user', ' must be one JSON document, or JSON Lines with one on each line.'],
    [
      'no conversation',
      '{"role": "user", "content": "hi"}',
      ' must be a conversation: {messages: […]} or an array',
    ],
    ['none in an array', `[${JSON.stringify(openAi)}, 7]`, ', conversation 2 must be a conversation:'],
    ['none in a line', `${JSON.stringify(openAi)}\n\n{"role": "user"}`, ', line 3 must be a conversation:'],
    [
      'none in an array in a line',
      `${JSON.stringify(openAi)}\n[${JSON.stringify(parts)}, null]`,
      ', line 2, conversation 2 must be a conversation:',
    ],
    [
      'a message in an array',
      '[{"messages": []}, {"messages": [{"role": "user"}, {"role": ""}]}]',
      ', conversation 2, message 2: role must be a non-empty string, not an empty string.',
    ],
    [
      'a message in a line',
      '{"messages": []}\n{"conversations": [{"from": "gpt", "value": null}]}',
      ', line 2, message 1: value must be a string, not null.',
    ],
  ])('refused: %s', async (_what, text, sentence) => {
    const path = file('refused.json', text)
    const error = await readAll(path).catch((reason: unknown) => reason)
    expect(error).toBeInstanceOf(TypeError)
    expect(String(error)).toContain(`TypeError: ${path}${sentence}`)
  })

  test('a file that is not there', async () => {
    await expect(readAll(join(folder, 'missing.json'))).rejects.toMatchObject({ code: 'ENOENT' })
  })
})

test('the sample of the demo', async () => {
  const conversations = await readAll('scripts/sample/conversations.json')
  expect(conversations.map(({ title, source, messages }) => [title, source, messages.length])).toEqual([
    ['Docker build fails at npm ci', 'cli', 18],
    ['Is the 14:00 deploy healthy?', 'discord', 10],
    ['Two days in Porto with a train ticket', 'telegram', 5],
    ['每日备份报告', 'cron', 5],
    ['修复登录接口的单元测试', 'cli', 13],
    ['README を翻訳 / 翻译 README 🌏', 'telegram', 8],
  ])
  for (const { messages } of conversations) {
    const called = messages.flatMap((message) => (message.tool_calls ?? []).map((made) => made.id))
    const answered = messages.flatMap((message) => (message.role === 'tool' ? [message.tool_call_id] : []))
    expect(answered).toEqual(called)
  }
})

const DATA = '../shared/data'

describe.skipIf(!existsSync(DATA))(`real transcripts (skipped where ${DATA} does not exist)`, () => {
  /** Every text and number in a value; JSON text is taken apart, for the readers may write it anew. */
  function leaves(value: unknown): string[] {
    if (typeof value === 'object' && value !== null) return Object.values(value).flatMap(leaves)
    if (typeof value !== 'string') return [String(value)]
    if (/^\s*[[{]/.test(value)) {
      try {
        return leaves(JSON.parse(value))
      } catch {
        return [value]
      }
    }
    return value === '' ? [] : [value]
  }

  /** What of the source is not in the conversation, or less often. */
  function lost(source: unknown, conversation: ImportedConversation | undefined): string[] {
    const counts = new Map<string, number>()
    for (const leaf of leaves(conversation)) counts.set(leaf, (counts.get(leaf) ?? 0) + 1)
    return leaves(source).filter((leaf) => {
      const count = counts.get(leaf) ?? 0
      counts.set(leaf, count - 1)
      return count < 1
    })
  }

  const messagesOf = (conversations: ImportedConversation[]) =>
    conversations.flatMap(({ messages }) => messages)
  const countRoles = (conversations: ImportedConversation[]) => {
    const counts: Record<string, number> = {}
    for (const { role } of messagesOf(conversations)) counts[role] = (counts[role] ?? 0) + 1
    return counts
  }

  test.each([
    ['glaive_toolcall_en_demo.json', { user: 746, assistant: 957, tool: 211 }, 211, 0],
    // Two results follow a call that is written out in prose.
    ['glaive_toolcall_zh_demo.json', { user: 722, assistant: 940, tool: 218 }, 216, 2],
  ])('%s', async (name, roles, calls, unanswering) => {
    type Turns = { conversations: { value: string }[]; tools: string }
    const source: Turns[] = JSON.parse(readFileSync(join(DATA, name), 'utf8'))
    const conversations = await readAll(join(DATA, name))
    expect(conversations).toHaveLength(300)
    expect(new Set(conversations.map(({ source_format }) => source_format))).toEqual(new Set(['sharegpt']))
    expect(countRoles(conversations)).toEqual(roles)
    expect(messagesOf(conversations).flatMap(({ tool_calls }) => tool_calls ?? [])).toHaveLength(calls)
    expect(messagesOf(conversations).filter((m) => m.role === 'tool' && !m.tool_call_id)).toHaveLength(
      unanswering,
    )
    for (const [index, { conversations: turns, tools }] of source.entries())
      expect(lost([turns.map(({ value }) => value), tools], conversations[index])).toEqual([])
  })

  test('reason_tool_use_demo_50.jsonl', async () => {
    const path = join(DATA, 'reason_tool_use_demo_50.jsonl')
    type Line = { messages: { content: { value: string }[] }[]; tools: string }
    const source: Line[] = readFileSync(path, 'utf8')
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line))
    const conversations = await readAll(path)
    expect(conversations).toHaveLength(50)
    expect(
      conversations.every(({ source_format, system_prompt }) => source_format === 'parts' && system_prompt),
    ).toBe(true)
    // 42 messages of the file hold the results of 48 calls; 20 calls of the 68 got none.
    expect(countRoles(conversations)).toEqual({ user: 70, assistant: 112, tool: 48 })
    const messages = messagesOf(conversations)
    expect(messages.filter(({ reasoning }) => reasoning)).toHaveLength(112)
    expect(messages.flatMap(({ tool_calls }) => tool_calls ?? [])).toHaveLength(68)
    expect(messages.filter((message) => message.role === 'tool' && !message.tool_call_id)).toEqual([])
    for (const [index, { messages: list, tools }] of source.entries()) {
      const values = list.map(({ content }) => content.map(({ value }) => value))
      expect(lost([values, tools], conversations[index])).toEqual([])
    }
  })

  test.each([
    ['swe-agent-marshmallow-1867.traj', { user: 1, assistant: 11, tool: 11 }, 11],
    ['swe-agent-pydicom-1458.traj', { user: 13, assistant: 12 }, 0],
  ])('%s', async (name, roles, calls) => {
    type Item = {
      content: string
      thought?: string
      action?: string
      tool_calls?: unknown[]
      tool_call_ids?: string[]
    }
    const source: { history: Item[] } = JSON.parse(readFileSync(join(DATA, name), 'utf8'))
    const conversations = await readAll(join(DATA, name))
    expect(conversations).toHaveLength(1)
    const [conversation] = conversations
    expect(conversation?.source_format).toBe('swe-agent')
    expect(conversation?.system_prompt).toMatch(/^SETTING: You are an autonomous programmer/)
    expect(countRoles(conversations)).toEqual(roles)
    expect(messagesOf(conversations).flatMap(({ tool_calls }) => tool_calls ?? [])).toHaveLength(calls)
    const kept = source.history.map(({ content, tool_calls = [], tool_call_ids = [] }) => [
      content,
      tool_calls,
      tool_call_ids,
    ])
    expect(lost(kept, conversation)).toEqual([])
    const contents = messagesOf(conversations).map(({ content }) => content)
    for (const { thought, action, tool_calls } of source.history) {
      const parsed = [thought, tool_calls ? undefined : action].filter((text) => text !== undefined)
      for (const text of parsed)
        expect(contents.some((content) => content?.toString().includes(text))).toBe(true)
    }
  })
})

describe.each(Object.entries(FORMATS))('%s is not written from', (_, { to }) => {
  const cases: [what: unknown, error: string][] = [
    [undefined, 'messages must be an array.'],
    [[null], 'messages[0] must be an object, not null.'],
    [[{ role: 'user' }, { role: '' }], 'messages[1].role must be a non-empty string, not an empty string.'],
    [[{ role: 'assistant', tool_calls: {} }], 'messages[0].tool_calls must be an array.'],
    [
      [{ role: 'assistant', tool_calls: [{ id: 'a' }] }],
      "messages[0].tool_calls[0] must be a call such as {id, type: 'function', function: {name, arguments}}, arguments being JSON text.",
    ],
  ]
  test.each(cases)('%j', (messages, error) => {
    const conversation = { messages: [] }
    Object.assign(conversation, { messages })
    expect(() => to(conversation)).toThrow(new TypeError(error))
  })
})
