import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import fc from 'fast-check'
import { micromark } from 'micromark'
import { gfm, gfmHtml } from 'micromark-extension-gfm'
import { type DefaultTreeAdapterTypes, parseFragment, serializeOuter } from 'parse5'
import { describe, expect, it } from 'vitest'
import { type NewMessage, openStateStore, type SessionRecord, toMarkdown } from '../../src/index.ts'
import { contained } from '../../src/transfer/contained-markdown.ts'
import { newFolder } from '../support/stores.ts'

const SESSION: SessionRecord = {
  type: 'session',
  id: 's1',
  source: 'cli',
  user_id: null,
  model: 'hermes-4',
  model_config: null,
  system_prompt: null,
  parent_session_id: null,
  started_at: 1_770_000_000,
  ended_at: null,
  end_reason: null,
  title: 'Fix the build',
  message_count: 2,
  tool_call_count: 1,
  input_tokens: 1_200,
  output_tokens: 34,
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
  messages: [],
}

function session(messages: NewMessage[], fields: Partial<SessionRecord> = {}): SessionRecord {
  return {
    ...SESSION,
    ...fields,
    messages: messages.map((message, index) => ({ ...message, timestamp: 1_770_000_000 + index })),
  }
}

type Element = DefaultTreeAdapterTypes.Element

/** The elements at the top of the page that a code host makes of a text. */
function page(markdown: string): Element[] {
  const html = micromark(markdown, {
    allowDangerousHtml: true,
    allowDangerousProtocol: true,
    extensions: [gfm()],
    htmlExtensions: [gfmHtml()],
  })
  return parseFragment(html).childNodes.filter((node): node is Element => 'tagName' in node)
}

function textOf(node: DefaultTreeAdapterTypes.Node): string {
  if ('value' in node) return node.value
  return 'childNodes' in node ? node.childNodes.map(textOf).join('') : ''
}

function tagsOf(node: DefaultTreeAdapterTypes.Node): string[] {
  if (!('tagName' in node)) return []
  return [node.tagName, ...node.childNodes.flatMap(tagsOf)]
}

describe('a session as Markdown', () => {
  it('has what is known of it, then its messages; calls and results are folded', async () => {
    const call = {
      id: 'c1',
      type: 'function',
      function: { name: 'write', arguments: '{"path":"a.py","text":"x = 1\\ny = 2"}' },
    }
    const { value, not_carried } = await toMarkdown(
      session(
        [
          { role: 'user', content: '修复构建 🚀' },
          {
            role: 'assistant',
            content: 'On it.',
            reasoning: 'Look **first**.',
            tool_calls: [call],
            finish_reason: 'tool_calls',
          },
          { role: 'tool', content: 'ok\n', tool_call_id: 'c1', tool_name: 'write' },
        ],
        {
          actual_cost_usd: 0.0123,
          parent_session_id: 'p_0',
          ended_at: 1_770_000_060,
          end_reason: 'compression',
          model_config: { top_p: 1 },
        },
      ),
    )
    expect(value).toBe(`# Fix the build

| Session | s1 |
| --- | --- |
| Parent | p\\_0 |
| Source | cli |
| Model | hermes-4 |
| Started | 2026-02-02 02:40:00 UTC |
| Ended | 2026-02-02 02:41:00 UTC, compression |
| Messages | 2, 1 calls of tools |
| Tokens | 1,200 in, 34 out |
| Cost | \\$0.0123 |

## User · 2026-02-02 02:40:00 UTC

修复构建 🚀

## Assistant · 2026-02-02 02:40:01 UTC

<details>
<summary>Reasoning</summary>

Look **first**.

</details>

On it.

<details>
<summary>Calls <code>write</code></summary>

\`\`\`json
{
  "path": "a.py"
}
\`\`\`

text:

\`\`\`
x = 1
y = 2
\`\`\`

</details>

<details>
<summary>Result of <code>write</code> · 2026-02-02 02:40:02 UTC</summary>

\`\`\`
ok
\`\`\`

</details>
`)
    expect(not_carried).toEqual({
      model_config: 1,
      'messages.finish_reason': 1,
      'messages.tool_call_id': 1,
      'messages.tool_calls.id': 1,
    })
  })

  it('has fences that are longer than those in a result', async () => {
    const { value } = await toMarkdown(session([{ role: 'tool', content: '```js\nx\n```\n`````' }]))
    expect(value).toContain('\n``````\n```js\nx\n```\n`````\n``````\n')
  })

  it('cuts out files, and says so', async () => {
    const url = `data:image/png;base64,${'A'.repeat(400)}`
    const { value, not_carried } = await toMarkdown(
      session([
        {
          role: 'user',
          content: [
            { type: 'text', text: 'See' },
            { type: 'image_url', image_url: { url } },
          ],
        },
      ]),
    )
    expect(value).toContain('See\n\nImage: data:image/png;base64,… (300 bytes)\n')
    expect(not_carried).toEqual({ 'messages.content': 1 })
  })

  it('shows broken JSON as it is stored, and a time that is none', async () => {
    const record = session([{ role: 'assistant' }])
    Object.assign(record.messages[0]!, { raw: { tool_calls: '[{"id":' }, timestamp: 1e300 })
    const { value } = await toMarkdown(record)
    expect(value).toContain(
      '## Assistant · 1e+300 s\n\n<details>\n<summary>Calls</summary>\n\n```\n[{"id":\n```',
    )
  })

  it('follows others in a file, with credentials masked', async () => {
    const store = await openStateStore({ path: ':memory:', worker: false })
    const path = join(newFolder(), 'sessions.md')
    for (const id of ['a', 'b']) {
      await store.sessions.create({ id, source: 'cli', started_at: 0 })
      await store.messages.append(id, {
        role: 'user',
        content: 'API_KEY=abc123',
        timestamp: 0,
        token_count: 7,
      })
    }
    const { sessions, not_carried, masked } = await store.transfer.exportFile(path, {
      format: 'markdown',
      redact: true,
    })
    expect({ sessions, not_carried, masked }).toEqual({
      sessions: 2,
      not_carried: { 'messages.token_count': 2 },
      masked: { secret: 2 },
    })
    const one = (id: string) => `# ${id}

| Session | ${id} |
| --- | --- |
| Source | cli |
| Started | 1970-01-01 00:00:00 UTC |
| Messages | 1, 0 calls of tools |

## User · 1970-01-01 00:00:00 UTC

API_KEY=[redacted:secret]
`
    expect(readFileSync(path, 'utf8')).toBe(`${one('a')}\n${one('b')}`)
    await store.close()
  })

  it('keeps titles and names on their line', async () => {
    const { value } = await toMarkdown(
      session([{ role: 'tool', content: 'x', tool_name: '</code></summary><script>' }], {
        title: 'a\n# b | <b>*c*</b> \u202e`d`',
      }),
    )
    const [title, , result] = page(value)
    expect(title?.tagName).toBe('h1')
    expect(textOf(title!)).toBe('a # b | <b>*c*</b> `d`')
    expect(tagsOf(result!)).toEqual(['details', 'summary', 'code', 'pre', 'code'])
  })
})

describe('text that is Markdown', () => {
  const cases: [name: string, text: string, markdown: string][] = [
    [
      'looks as it was meant',
      '- **a**\n- `b`\n\n| x | y |\n| - | - |\n| 1 | 2 |',
      '- **a**\n- `b`\n\n| x | y |\n| - | - |\n| 1 | 2 |',
    ],
    ['keeps its lines', 'one\ntwo\n\n- a\n  b', 'one\\\ntwo\n\n- a\\\n  b'],
    [
      'has headings below those of the page',
      '# a\n\nb\n===\n\nc\n---\n\n> # d',
      '### a\n\n### b\n\n\n#### c\n\n\n> ### d',
    ],
    [
      'shows HTML',
      'a <b>b</b> <!-- c -->\n\n</details>\n\nx <y && z',
      'a &lt;b>b&lt;/b> &lt;!-- c -->\n\n&lt;/details>\n\nx &lt;y && z',
    ],
    [
      'leaves code alone',
      '`<b>` ``` `` ```\n\n    <i>\n\n```html\n<u>\n# x\n```',
      '`<b>` ``` `` ```\n\n    <i>\n\n```html\n<u>\n# x\n```',
    ],
    ['closes its code', 'See\n\n```js\nx()', 'See\n\n```js\nx()\n```'],
    ['closes code with tildes', '~~~~\n```\n~~~', '~~~~\n```\n~~~\n~~~~'],
    [
      'defines no links for others',
      'See [a].\n\n[a]: http://x\n[^1]: note',
      'See [a].\n\n\\[a]: http://x\n\\[^1]: note',
    ],
    [
      'is a code block where nothing else helps',
      '> # a\n> b\n> ===\n\n<!--\n`',
      '> ### a\n> b\n> ===\n\n&lt;!--\\\n`',
    ],
  ]
  it.each(cases)('%s', (_, text, markdown) => {
    expect(contained(text)).toBe(markdown)
  })

  it('reaches nowhere, and nothing of it is lost, whatever it is', async () => {
    const pieces = [
      '```',
      '````js',
      '~~~',
      '`',
      '``',
      '\n',
      '\n\n',
      '    ',
      '> ',
      '- ',
      '1. ',
      '# ',
      '## ',
      '===',
      '---',
      '<!--',
      '-->',
      '<details>',
      '</details>',
      '<b>',
      '</code>',
      '<script>',
      '<![CDATA[',
      '<?php',
      '<pre>',
      '[w',
      ']: http://x',
      '[^1]: ',
      '](',
      ')',
      '\\',
      '|',
      '| - |',
      '*',
      '_',
      '~~',
      '<http://x>',
      '&lt;',
      '\t',
      '\r',
      '$',
      '!',
      '"',
      "'",
      '<table>',
      '<a href="',
      'http://x',
      'www.x',
      'a@b.c',
      '<',
      '>',
      '| a | b |\n| - | - |\n',
      '[ ] ',
      '\n  ',
    ]
    let words = 0
    const piece = fc.oneof(
      { weight: 3, arbitrary: fc.constantFrom(...pieces) },
      { weight: 1, arbitrary: fc.constant(null) },
    )
    await fc.assert(
      fc.asyncProperty(fc.array(piece, { maxLength: 24 }), async (parts) => {
        const known: string[] = []
        const text = parts
          .map((part) => {
            if (part !== null) return part
            known.push(`w${++words}w`)
            return known.at(-1)
          })
          .join('')
        const { value } = await toMarkdown(
          session([
            { role: 'user', content: text },
            { role: 'assistant', content: 'END', reasoning: text },
          ]),
        )
        const elements = page(value)
        const heads = elements.filter(({ tagName }) => tagName === 'h1' || tagName === 'h2')
        expect(heads.map(({ tagName }) => tagName)).toEqual(['h1', 'h2', 'h2'])
        const at = elements.indexOf(heads[2]!)
        expect(elements.slice(at).map(({ tagName }) => tagName)).toEqual(
          text === '' ? ['h2', 'p'] : ['h2', 'details', 'p'],
        )
        expect(textOf(elements.at(-1)!)).toBe('END')
        const body = elements.slice(elements.indexOf(heads[1]!), at)
        const shown = body.map((element) => serializeOuter(element)).join('\n')
        // Shown nowhere: what follows the language of a code block, and cells beyond a table's columns.
        const isLeftOut = (word: string) =>
          text.includes('| -') || new RegExp(`(?:\`{3}|~{3}).*${word}`).test(text)
        for (const word of known) expect(shown.includes(word) || isLeftOut(word)).toBe(true)
        expect(elements.flatMap(tagsOf).filter((tag) => tag === 'script' || tag === 'b')).toEqual([])
      }),
      { numRuns: 1_500 },
    )
  })
})
