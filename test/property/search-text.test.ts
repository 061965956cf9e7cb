import fc from 'fast-check'
import { beforeEach, describe, expect, test } from 'vitest'
import type { NewMessage, StateStore } from '../../src/index.ts'
import { anyText } from '../support/arbitraries.ts'
import { bothModes } from '../support/stores.ts'

const PRINTABLE = Array.from({ length: 95 }, (_, index) => String.fromCharCode(0x20 + index))

/** Words of the sides, in scripts with spaces and without. */
const WORDS = ['alpha', 'beta', 'x', '7', 'Été', 'бета', 'ΟΔΟΣ', 'سلام', 'שלום', '修复', 'ｶﾅ', '배포', 'ครับ']

const anySign = fc.constantFrom(...PRINTABLE)
const anyWord = fc.constantFrom(...WORDS)

const anyUnicode = fc.oneof(
  anyText,
  fc.string({ unit: 'binary', minLength: 1, maxLength: 4 }),
  fc.string({ unit: 'grapheme', minLength: 1, maxLength: 4 }),
  fc.stringMatching(/^[\p{P}\p{S}\p{Z}\p{C}]{1,3}$/u),
  fc.array(anySign, { minLength: 1, maxLength: 4 }).map((signs) => signs.join('')),
)

/** What a query means by it, it does not look for. */
const isOperator = (text: string) => text.includes('NOT')

describe.each(bothModes)('text that is typed as it was said, in $name', (kind) => {
  let store: StateStore
  beforeEach(async () => {
    store = await kind.open()
    await store.sessions.create({ id: 's', source: 'cli' })
  })

  const append = (message: Omit<NewMessage, 'role'>) =>
    store.messages.append('s', { role: 'assistant', ...message })
  const find = async (query: string) => {
    const hits = await store.search.messages(query, { limit: 10_000, context: 0 })
    return hits.filter(({ matched }) => matched === 'all').map(({ id }) => id)
  }

  test.for(PRINTABLE)('alpha%sbeta is found', async (sign) => {
    const text = `alpha${sign}beta`
    const contents = [
      text,
      `say ${text} twice`,
      `(${text})`,
      `"${text}"`,
      `\n${text}\t${text}.`,
      `修 ${text}。`,
    ]
    const ids = await store.messages.appendMany(
      's',
      contents.map((content) => ({ role: 'user', content })),
    )
    const parts = await append({ content: [{ type: 'text', text: `one ${text} two` }] })
    expect(await find(text)).toEqual(expect.arrayContaining([...ids, parts]))
    expect(await find(`"${text}"`)).toEqual(expect.arrayContaining([...ids, parts]))
  })

  test('with a printable sign between any two words', { timeout: 120_000 }, async () => {
    for (const [at, left] of WORDS.entries())
      for (const sign of PRINTABLE) {
        const right = WORDS[(at + sign.charCodeAt(0)) % WORDS.length]!
        const text = left + sign + right
        const id = await append({ content: `before ${text} after` })
        expect(await find(text), text).toContain(id)
      }
  })

  test('with any text between two words', { timeout: 120_000 }, async () => {
    await fc.assert(
      fc.asyncProperty(
        anyUnicode.filter((text) => !isOperator(text)),
        async (between) => {
          const text = `alpha${between}beta`
          const id = await append({ content: `before ${text} after` })
          expect(await find(text)).toContain(id)
        },
      ),
      { numRuns: 500 },
    )
  })

  test('with any text between any words, in the midst of any other', { timeout: 120_000 }, async () => {
    const around = fc.oneof(anyUnicode, fc.constantFrom('', 'docker ', '修复'))
    await fc.assert(
      fc.asyncProperty(
        anyWord,
        anyUnicode.filter((text) => !isOperator(text)),
        anyWord,
        around,
        around,
        async (left, between, right, before, after) => {
          const text = left + between + right
          const id = await append({ content: `${before} ${text} ${after}` })
          expect(await find(text)).toContain(id)
        },
      ),
      { numRuns: 500 },
    )
  })

  test('with a printable sign, in the name of a tool', async () => {
    for (const sign of PRINTABLE) {
      const id = await append({ content: null, tool_name: `alpha${sign}gamma` })
      expect(await find(`alpha${sign}gamma`), sign).toContain(id)
    }
  })

  test('with a printable sign that JSON does not escape, in the arguments of a call', async () => {
    for (const sign of PRINTABLE.filter((sign) => !'"\\'.includes(sign))) {
      const call = {
        id: 'c',
        type: 'function',
        function: { name: 'f', arguments: `{"a":"alpha${sign}delta"}` },
      }
      const id = await append({ content: null, tool_calls: [call] })
      expect(await find(`alpha${sign}delta`), sign).toContain(id)
    }
  })
})
