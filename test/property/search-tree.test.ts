import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import type { NewMessage, SearchHit, StateStore } from '../../src/index.ts'
import { parseQuery, type QueryTree, type Term } from '../../src/search/query.ts'
import { bothModes, rawRun } from '../support/stores.ts'

const SPACED = [
  ...'docker Docker dock build café CAFÉ cafe cafe\u0301 naïve Ñu nu x1 42 read_file'.split(' '),
  ...'сервер Сервер сборка ёж еж код λόγος ΛΟΓΟΣ λογος οδός ναι'.split(' '),
  ...'خادم الخادم خطأ مرحبا كِتاب كتاب שרת השרת שגיאה שָׁלוֹם שלום'.split(' '),
]
const UNSEGMENTED = [
  ...'修 复 修复 构建 服务 服务端 修复服务端 東京 カナ ｶﾅ ガ ｶﾞ ひらがな サーバー ｻｰﾊﾞｰ'.split(' '),
  ...'배포 서버 서버를 데이터 배 เซิร์ฟเวอร์ ครับ สร้าง ที่'.split(' '),
]
const GLUED =
  '修改youer服务端 docker构建 使用Docker修复 x1服务 서버docker를 ｄｏｃｋｅｒ修复 café構建 readครับ'.split(' ')
const SYMBOLS = ['🚀', '→', '€', '★', '👍']
const BETWEEN = [' ', ' ', ' ', ' ', '\n', '-', '/', '.', ', ', '_', '', '。', '（', '" "', "'", '\u3000']

const anySpaced = fc.constantFrom(...SPACED)
const anyWord = fc.oneof(
  { weight: 4, arbitrary: anySpaced },
  { weight: 3, arbitrary: fc.constantFrom(...UNSEGMENTED) },
  { weight: 2, arbitrary: fc.constantFrom(...GLUED) },
  { weight: 1, arbitrary: fc.constantFrom(...SYMBOLS) },
)
const anyText = fc
  .array(fc.tuple(anyWord, fc.constantFrom(...BETWEEN)), { minLength: 1, maxLength: 6 })
  .map((parts) => parts.flat().join(''))

const anyPiece = fc
  .tuple(anyWord, fc.nat(3), fc.integer({ min: 1, max: 6 }))
  .map(([word, from, length]) => slice(word, from, length) || word)
const anyTerm = fc.oneof(
  { weight: 5, arbitrary: anyWord },
  { weight: 2, arbitrary: anyPiece },
  { weight: 2, arbitrary: anyWord.map((word) => `${slice(word, 0, 3)}*`) },
  { weight: 2, arbitrary: fc.tuple(anyWord, anyWord).map(([first, second]) => `"${first} ${second}"`) },
  { weight: 1, arbitrary: fc.tuple(anySpaced, anyPiece).map(([first, second]) => `"${first} ${second}"*`) },
  { weight: 1, arbitrary: fc.tuple(anyWord, anyWord).map((words) => words.join('-')) },
)
/** Of words alone: the index answers, or else the text. */
const anyWordTerm = fc.oneof(
  anySpaced,
  anySpaced.map((word) => `${word.slice(0, 2)}*`),
)
const anyQuery = fc.oneof(
  { weight: 3, arbitrary: queryOf(anyTerm) },
  { weight: 1, arbitrary: queryOf(anyWordTerm) },
)

function queryOf(term: fc.Arbitrary<string>): fc.Arbitrary<string> {
  const operator = fc.constantFrom(' ', ' ', ' AND ', ' OR ', ' OR ', ' NOT ')
  return fc
    .tuple(term, fc.array(fc.tuple(operator, term), { maxLength: 3 }))
    .map((parts) => parts.flat(2).join(''))
}

function slice(text: string, from: number, length: number): string {
  return Array.from(text)
    .slice(from, from + length)
    .join('')
}

/** Stands for more than is searched of a tool's result. */
const LONG = '⋯'

interface Said {
  role: string
  content: string | string[] | null
  tool_name: string | null
  /** What the calls were given. */
  calls: string[]
}

const anySaid: fc.Arbitrary<Said> = fc.record({
  role: fc.constantFrom('user', 'assistant', 'tool'),
  content: fc.oneof(
    { weight: 5, arbitrary: anyText as fc.Arbitrary<Said['content']> },
    { weight: 1, arbitrary: fc.constant(null) },
    { weight: 1, arbitrary: fc.array(anyText, { minLength: 1, maxLength: 2 }) },
    { weight: 1, arbitrary: anyText.map((text) => `${text} data:image/png;base64,AAAA docker 修复`) },
    { weight: 1, arbitrary: fc.tuple(anyText, anyText).map((texts) => texts.join(LONG)) },
  ),
  tool_name: fc.option(anyWord),
  calls: fc.array(anyText, { maxLength: 2 }),
})

type Step =
  | { kind: 'append'; said: Said }
  | { kind: 'insert'; said: Said }
  | { kind: 'update'; which: number; said: Said }
  | { kind: 'delete'; which: number }
  | { kind: 'find'; query: string }
  | { kind: 'cut'; which: number; from: number; length: number }

const kindOf = <Kind extends Step['kind']>(kind: Kind) => fc.constant(kind)
const which = fc.nat(30)
const length = fc.integer({ min: 1, max: 9 })
const anyStep: fc.Arbitrary<Step> = fc.oneof(
  { weight: 3, arbitrary: fc.record({ kind: kindOf('append'), said: anySaid }) as fc.Arbitrary<Step> },
  { weight: 3, arbitrary: fc.record({ kind: kindOf('insert'), said: anySaid }) },
  { weight: 2, arbitrary: fc.record({ kind: kindOf('update'), which, said: anySaid }) },
  { weight: 1, arbitrary: fc.record({ kind: kindOf('delete'), which }) },
  { weight: 7, arbitrary: fc.record({ kind: kindOf('find'), query: anyQuery }) },
  { weight: 2, arbitrary: fc.record({ kind: kindOf('cut'), which, from: fc.nat(20), length }) },
)

const partsOf = (texts: string[]) => texts.map((text) => ({ type: 'text', text }))

function toMessage({ role, content, tool_name, calls }: Said): NewMessage {
  const tool_calls = calls.map((text) => ({
    id: 'c',
    type: 'function',
    function: { name: 'run', arguments: JSON.stringify({ text }) },
  }))
  return {
    role,
    content: Array.isArray(content)
      ? partsOf(content)
      : (content?.replace(LONG, ' .'.repeat(4_096)) ?? content),
    tool_name,
    tool_calls: calls.length > 0 ? tool_calls : null,
  }
}

/** The row that another program would write. */
function toRow(said: Said) {
  const { role, content, tool_name, tool_calls } = toMessage(said)
  return {
    role,
    content: typeof content === 'object' && content ? `\0json:${JSON.stringify(content)}` : content,
    tool_name,
    tool_calls: tool_calls ? JSON.stringify(tool_calls) : null,
  }
}

/** What a message is found by. */
interface Searched {
  fields: string[]
  /** The same, as it is compared by substring. */
  plain: string[]
  /** The words of what the word index holds, by field. */
  words: string[][]
}

function searched(said: Said, additions: boolean): Searched {
  const { content, tool_calls } = toRow(said)
  const visible = Array.isArray(said.content) ? said.content.join('\n') : (content ?? '')
  const media = visible.indexOf(';base64,')
  const text = media === -1 ? visible : visible.slice(0, media + 8)
  const fields = [
    said.role === 'tool' ? slice(text, 0, 8_192) : text,
    said.tool_name ?? '',
    // No text here has a backslash: each one is of an escape, or of an escape's escape.
    (tool_calls ?? '').split(/\\+[ntr]|\\*"/).join(' '),
  ]
  return { fields, plain: fields.map(plain), words: (additions ? fields : [content ?? '']).map(wordsOf) }
}

function plain(text: string): string {
  return text.normalize('NFKC').toLowerCase().replaceAll('ς', 'σ').split(/\s+/).join(' ')
}

/** The words of a text: letters and digits, without the accents of Latin letters. */
function wordsOf(text: string): string[] {
  const bare = text
    .replace(/\p{Script=Latin}/gu, (letter) => letter.normalize('NFD'))
    .replace(/[\u0300-\u036f]/g, '')
  return (bare.match(/[\p{L}\p{N}]+/gu) ?? []).map((word) => word.toLowerCase().replaceAll('ς', 'σ'))
}

const CJK = /[\p{sc=Han}\p{sc=Hira}\p{sc=Kana}\p{sc=Hang}\p{sc=Thai}ーｰﾞ\u3099]/u

const isWord = ({ text }: Term) => /[\p{L}\p{N}]/u.test(text) && !CJK.test(text)

function hasWords(message: Searched, { text, prefix }: Term): boolean {
  const wanted = wordsOf(text)
  return message.words.some((words) =>
    words.some((_, at) =>
      wanted.every((word, index) => {
        const there = words[at + index]
        return prefix && index === wanted.length - 1 ? there?.startsWith(word) : there === word
      }),
    ),
  )
}

/** Whether a word is in a run of letters that has some of a script without spaces, too. */
function isGlued(message: Searched, term: Term): boolean {
  const letters = /[\p{L}\p{M}\p{N}]+/gu
  const [word, ...others] = plain(term.text).match(letters) ?? []
  if (word === undefined || others.length > 0) return false
  return message.plain.some((field) =>
    (field.match(letters) ?? []).some((run) => CJK.test(run) && run.includes(word)),
  )
}

function hasText(message: Searched, { text }: Term): boolean {
  return message.plain.some((field) => field.includes(plain(text)))
}

function holds(tree: QueryTree, has: (term: Term) => boolean): boolean {
  if (tree.kind === 'term') return has(tree)
  if (tree.kind === 'and') return tree.items.every((item) => holds(item, has))
  if (tree.kind === 'or') return tree.items.some((item) => holds(item, has))
  return holds(tree.keep, has) && !has(tree.drop)
}

function termsOf(tree: QueryTree): { wanted: Term[]; dropped: Term[] } {
  if (tree.kind === 'term') return { wanted: [tree], dropped: [] }
  if (tree.kind === 'not') {
    const { wanted, dropped } = termsOf(tree.keep)
    return { wanted, dropped: [...dropped, tree.drop] }
  }
  const parts = tree.items.map(termsOf)
  return { wanted: parts.flatMap(({ wanted }) => wanted), dropped: parts.flatMap(({ dropped }) => dropped) }
}

/** The ids that a query has to find, by looking at everything. */
function scan(query: string, messages: ReadonlyMap<number, Searched>): number[] {
  const tree = parseQuery(query)
  if (tree === undefined) return []
  const { wanted, dropped } = termsOf(tree)
  const mixed = ![...wanted, ...dropped].every(isWord)
  const idsWith = (has: (message: Searched, term: Term) => boolean) =>
    sorted(
      [...messages].filter(([_, message]) => holds(tree, (term) => has(message, term))).map(([id]) => id),
    )
  const found = idsWith((message, term) => {
    if (!isWord(term)) return hasText(message, term)
    return hasWords(message, term) || (mixed && isGlued(message, term))
  })
  return found.length === 0 && wanted.some(isWord) ? idsWith(hasText) : found
}

const sorted = (ids: number[]) => ids.toSorted((a, b) => a - b)

async function find(store: StateStore, query: string): Promise<number[]> {
  const hits = await store.search.messages(query, { limit: 10_000, context: 0 })
  return hits.filter(({ matched }) => matched === 'all').map(({ id }) => id)
}

function insert(store: StateStore, id: number, said: Said): Promise<void> {
  const { role, content, tool_name, tool_calls } = toRow(said)
  return rawRun(
    store,
    `insert into messages (id, session_id, role, content, tool_name, tool_calls, timestamp)
     values (?, 's', ?, ?, ?, ?, 1)`,
    ...[id, role, content, tool_name, tool_calls],
  )
}

function update(store: StateStore, id: number, said: Said): Promise<void> {
  const { role, content, tool_name, tool_calls } = toRow(said)
  return rawRun(
    store,
    'update messages set role = ?, content = ?, tool_name = ?, tool_calls = ? where id = ?',
    ...[role, content, tool_name, tool_calls, id],
  )
}

describe.each(bothModes)('search in $name', (kind) => {
  test('finds what a look at every message finds, whoever wrote it', { timeout: 120_000 }, async () => {
    const store = await kind.open()
    await store.sessions.create({ id: 's', source: 'cli' })
    const found = { some: 0, none: 0 }
    await fc.assert(
      fc.asyncProperty(fc.array(anyStep, { minLength: 8, maxLength: 24, size: 'max' }), async (steps) => {
        await rawRun(store, 'delete from messages')
        const messages = new Map<number, Searched>()
        const gone: number[] = []
        const pick = (which: number) => [...messages.keys()][which % messages.size] ?? 0
        const check = async (query: string) => {
          const expected = scan(query, messages)
          expect(sorted(await find(store, query)), query).toEqual(expected)
          found[expected.length > 0 ? 'some' : 'none']++
        }
        for (const step of steps) {
          if (step.kind === 'find') await check(step.query)
          else if (step.kind === 'append') {
            const id = await store.messages.append('s', toMessage(step.said))
            messages.set(id, searched(step.said, kind.additions))
          } else if (step.kind === 'insert') {
            const id = gone.pop() ?? Math.max(0, ...messages.keys()) + 3
            await insert(store, id, step.said)
            messages.set(id, searched(step.said, kind.additions))
          } else if (messages.size > 0) {
            const id = pick(step.which)
            if (step.kind === 'cut')
              await check(slice(messages.get(id)?.fields[0] ?? '', step.from, step.length))
            else if (step.kind === 'update') {
              await update(store, id, step.said)
              messages.set(id, searched(step.said, kind.additions))
            } else {
              await rawRun(store, 'delete from messages where id = ?', id)
              messages.delete(id)
              gone.push(id)
            }
          }
        }
      }),
      { numRuns: 300 },
    )
    expect(found.some).toBeGreaterThan(300)
    expect(found.none).toBeGreaterThan(100)
  })

  test('finds a word after a line break in parts that another program stored', async () => {
    const store = await kind.open()
    await store.sessions.create({ id: 's', source: 'cli' })
    const rest = { role: 'user', tool_name: null, calls: [] }
    await insert(store, 1, { ...rest, content: ['docker\nbuild'] })
    await insert(store, 2, { ...rest, content: 'build' })
    if (kind.additions) expect(sorted(await find(store, 'build'))).toEqual([1, 2])
    else expect(await find(store, 'build')).toEqual([2])
  })

  test('finds the next page the way it found the first', async () => {
    const store = await kind.open()
    await store.sessions.create({ id: 's', source: 'cli' })
    const contents = ['docker 🚀 修', 'dockers 🚀 修', 'docker 🚀 修']
    const [first, , last] = await store.messages.appendMany(
      's',
      contents.map((content) => ({ role: 'user', content })),
    )
    for (const query of ['docker 🚀', 'docker 修']) {
      const page = await store.search.messages(query, { limit: 1 })
      expect(page.map(({ id }) => id)).toEqual([last])
      const next = await store.search.messages(query, { limit: 1, after: page[0] })
      expect(
        next.map(({ id }) => id),
        query,
      ).toEqual([first])
    }
  })

  test('finds the same among many messages, and page by page', { timeout: 120_000 }, async () => {
    const store = await kind.open()
    await store.sessions.create({ id: 's', source: 'cli' })
    const messages = new Map<number, Searched>()
    for (const said of fc.sample(anySaid, { numRuns: 700, seed: 11 })) {
      const content = Array.isArray(said.content) ? null : (said.content?.replace(LONG, ' ') ?? null)
      const id = await store.messages.append('s', toMessage({ ...said, content }))
      messages.set(id, searched({ ...said, content }, kind.additions))
    }
    await fc.assert(
      fc.asyncProperty(anyQuery, fc.integer({ min: 50, max: 400 }), async (query, limit) => {
        const all = await find(store, query)
        expect(sorted(all), query).toEqual(scan(query, messages))
        const paged: number[] = []
        for (let after: SearchHit | undefined, more = true; more; ) {
          const hits = await store.search.messages(query, { limit, after, context: 0 })
          paged.push(...hits.filter(({ matched }) => matched === 'all').map(({ id }) => id))
          after = hits.at(-1)
          more = hits.length === limit
        }
        expect(paged, query).toEqual(all)
      }),
      { numRuns: 250 },
    )
  })
})
