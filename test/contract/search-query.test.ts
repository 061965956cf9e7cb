import { beforeEach, describe, expect, test } from 'vitest'
import { type SearchOptions, type StateStore, sanitizeFts5Query } from '../../src/index.ts'
import { bothModes } from '../support/stores.ts'

const EVERYDAY =
  "it's broken in gateway/run.py for user@host, why? costs $5 (50%) e=mc2 #tag [bracket] $HOME C:\\temp " +
  'a&b x|y <div> ~user `code` done; left, !important user@example.com 61.2% x@y.z/w path\\to\\file.txt'

const HOSTILE: Record<string, string> = {
  '50,000 quotes': '"'.repeat(50_000),
  '5,000 alternatives': Array.from({ length: 5_000 }, (_, index) => `w${index}`).join(' OR '),
  '300 phrases after NOT': `x${' NOT "zz"'.repeat(300)}`,
  '300 Chinese phrases after NOT': `x${' NOT "字字"'.repeat(300)}`,
  '200 nested brackets': `${'('.repeat(200)}x${')'.repeat(200)}`,
  '60,000 letters': 'x'.repeat(60_000),
  '60,000 Chinese characters': '字'.repeat(60_000),
  '20,000 wildcards of LIKE': '%_'.repeat(20_000),
  '20,000 stars': '*'.repeat(20_000),
  '20,000 operators': 'AND OR NOT '.repeat(20_000),
  '5,000 emoji': '🚀 '.repeat(5_000),
  '1,000 marks on one letter': `x${'\u0301'.repeat(1_000)}`,
  'half characters': '\ud800 \udc00"\ud800 字\ud83d',
  'every ASCII character': String.fromCharCode(...Array.from({ length: 128 }, (_, code) => code)),
}

describe.each(bothModes)('queries in $name', (kind) => {
  let store: StateStore
  beforeEach(async () => {
    store = await kind.open()
    await store.sessions.create({ id: 's', source: 'new', model: 'm' })
  })

  const say = (...contents: string[]) =>
    store.messages.appendMany(
      's',
      contents.map((content) => ({ role: 'user', content })),
    )

  const contentsOf = (hits: { id: number }[]) =>
    Promise.all(hits.map(async ({ id }) => (await store.messages.get(id))!.content))

  /** The contents that have all of a query, sorted. */
  const found = async (query: string, options?: SearchOptions) => {
    const hits = await store.search.messages(query, { limit: 1_000, ...options })
    return (await contentsOf(hits.filter(({ matched }) => matched === 'all'))).sort()
  }

  describe('colons', () => {
    const todo = 'TODO: fix the parser'
    const columns = 'the content: a parser, rowid:1 in C:\\temp, tool_name: x'

    test.each([
      ['TODO: fix', todo],
      ['content: parser', columns],
      ['{content}: parser', columns],
      ['rowid:1', columns],
      ['C:\\temp', columns],
      ['tool_name: x', columns],
    ])('are text in %s', async (query, content) => {
      await say(todo, columns)
      expect(await found(query)).toEqual([content])
    })

    test('name no column where nothing has the word before it', async () => {
      await say('fix the parser')
      for (const query of ['content: parser', '{content}: parser', 'tool_calls: parser', 'rowid:1'])
        expect(await found(query), query).toEqual([])
      expect(await store.search.messages('content: parser')).toMatchObject([{ matched: 'any' }])
    })
  })

  describe('punctuation', () => {
    test.each(EVERYDAY.split(' '))('in %s hides nothing', async (query) => {
      await say(EVERYDAY, 'other')
      expect(await found(query)).toEqual([EVERYDAY])
    })

    test('makes a phrase of a term', async () => {
      await say('look at scripts/deploy.sh and', 'deploy the sh scripts')
      expect(await found('scripts/deploy.sh')).toEqual(['look at scripts/deploy.sh and'])
      expect(sanitizeFts5Query('scripts/deploy.sh')).toBe('"scripts/deploy.sh"')
    })

    test('around words, of any kind and however much, hides nothing', async () => {
      await say('alpha beta')
      for (let code = 0; code < 128; code++) {
        const sign = String.fromCharCode(code)
        if (/[a-z0-9]/i.test(sign)) continue
        for (const query of [
          `${sign}alpha`,
          `alpha${sign}`,
          `alpha ${sign} beta`,
          `${sign}${sign}beta${sign}`,
        ])
          expect(await found(query), JSON.stringify(query)).toEqual(['alpha beta'])
      }
    })
  })

  describe('underscores', () => {
    test('are found in the beginning of a longer name', async () => {
      await say('call sp_new1 now', 'call sp_new12 later', 'spnew')
      expect(await found('sp_new')).toEqual(['call sp_new1 now', 'call sp_new12 later'])
      expect(await found('sp_new*')).toEqual(['call sp_new1 now', 'call sp_new12 later'])
      expect(await found('sp_new1')).toEqual(['call sp_new1 now'])
    })
  })

  describe('operators', () => {
    test('in a row are one', async () => {
      await say('aa bb', 'aa', 'bb', 'foo bar', 'foo')
      expect(await found('aa AND OR bb')).toEqual(['aa bb'])
      expect(await found('foo AND AND bar')).toEqual(['foo bar'])
      expect(await found('foo OR OR bar')).toEqual(['foo', 'foo bar'])
    })

    test('without an operand mean nothing', async () => {
      await say('foo bar', 'foo')
      for (const query of ['foo OR', 'foo AND', 'foo NOT', 'OR foo', 'AND foo', 'OR foo AND OR'])
        expect(await found(query), query).toEqual(['foo', 'foo bar'])
    })

    test('in small letters are words', async () => {
      await say('not found error', 'found error', 'state and machine', 'state machine')
      expect(await found('not found')).toEqual(['not found error'])
      expect(await found('state and machine')).toEqual(['state and machine'])
      expect(await found('state AND machine')).toEqual(['state and machine', 'state machine'])
    })

    test('alone are words', async () => {
      await say('this AND that')
      expect(await found('AND')).toEqual(['this AND that'])
      for (const query of ['OR', 'NOT', 'AND OR NOT', 'NOT NOT', '"" AND ""'])
        expect(await found(query), query).toEqual(query === '"" AND ""' ? ['this AND that'] : [])
    })
  })

  describe('quotes', () => {
    test.each(['"', '""', '"""', '" "', '"" ""', '""*'])(
      'that hold nothing find nothing: %s',
      async (query) => {
        await say('foo bar', '" quoted "')
        expect(await store.search.messages(query)).toEqual([])
      },
    )

    test.each(['"foo bar', 'foo "bar', '"" foo', '"foo" -bar', 'foo"bar"', '"foo""bar"', 'foo bar"'])(
      'need not be in pairs: %s',
      async (query) => {
        await say('foo bar', 'other')
        expect(await found(query)).toEqual(['foo bar'])
      },
    )
  })

  describe('other syntax of FTS5', () => {
    test('NEAR is a word', async () => {
      await say('foo bar', 'foo near bar')
      expect(await found('foo NEAR bar')).toEqual(['foo near bar'])
      expect(await found('NEAR')).toEqual(['foo near bar'])
      expect(await found('NEAR(foo bar)')).toEqual([])
      expect((await store.search.messages('NEAR(foo bar)')).map(({ matched }) => matched)).toContain('any')
    })

    test.each(['^foo', 'foo^', '((foo', '{foo}', '+foo', '-foo', '(foo)'])('%s is foo', async (query) => {
      await say('foo', 'bar')
      expect(await found(query)).toEqual(['foo'])
    })
  })

  test.each(['\u200b', '\u200d', '\u2060', '\ufeff', '\u00ad'])('%j parts words', async (separator) => {
    const content = `pass${separator}word`
    await say(content)
    for (const query of [content, 'pass word', '"pass word"', 'pass', 'word'])
      expect(await found(query), query).toEqual([content])
    expect(await store.search.messages('password')).toEqual([])
  })

  describe('accents', () => {
    test('may be left out, two on one letter where the word index is ours', async () => {
      const content = 'naïve café tiếng Việt'
      await say(content)
      for (const query of ['cafe', 'naive', 'CAFÉ', 'cafe\u0301', 'tiếng', 'việt', 'tie\u0302\u0301ng'])
        expect(await found(query), query).toEqual([content])
      for (const query of ['tieng', 'viet'])
        expect(await found(query), query).toEqual(kind.additions ? [content] : [])
    })

    test('and vowel signs of other scripts may not', async () => {
      await say('مُحَمَّد', 'שָׁלוֹם', 'πόλη')
      for (const query of ['محمد', 'שלום', 'πολη']) expect(await found(query), query).toEqual([])
      for (const query of ['مُحَمَّد', 'שָׁלוֹם', 'πόλη', 'ΠΌΛΗ']) expect(await found(query), query).toHaveLength(1)
    })

    test('ligatures are the letters they are made of', async () => {
      await say('the ﬁle')
      expect(await found('file')).toEqual(['the ﬁle'])
      expect(await found('ﬁle')).toEqual(['the ﬁle'])
    })
  })

  test.each(Object.keys(HOSTILE))('%s are answered at once', async (name) => {
    await say('x zz 字字 🚀 %_', 'w1')
    const started = performance.now()
    expect(await store.search.messages(HOSTILE[name]!)).toBeInstanceOf(Array)
    expect(await store.search.messages(HOSTILE[name]!, { orderBy: 'newest' })).toBeInstanceOf(Array)
    expect(await store.search.sessions(HOSTILE[name]!)).toBeInstanceOf(Array)
    expect(performance.now() - started).toBeLessThan(1_000)
  })

  describe('options', () => {
    test('an empty list is a filter that nothing meets, or that excludes nothing', async () => {
      await say('needle 针')
      for (const query of ['needle', '针', 'needl']) {
        for (const name of ['sources', 'roles', 'tools'])
          expect(await store.search.messages(query, { [name]: [] }), name).toEqual([])
        expect(await found(query, { excludeSources: [] })).toEqual(['needle 针'])
        const none = { sources: undefined, excludeSources: undefined, roles: undefined, tools: undefined }
        expect(await found(query, { ...none, sessionId: undefined, since: undefined })).toEqual(['needle 针'])
      }
    })

    test.each(['limit', 'offset', 'context'])('%s is a whole number from 0', async (name) => {
      await say('needle')
      for (const value of [-1, 'x', 2 ** 63, 1.5, Number.NaN, Number.POSITIVE_INFINITY, '5', 5n])
        await expect(store.search.messages('needle', { [name]: value }), String(value)).rejects.toThrow(
          TypeError,
        )
      expect(await store.search.messages('needle', { [name]: undefined })).toHaveLength(1)
    })

    test('null is no number', async () => {
      for (const name of ['limit', 'offset', 'context'])
        await expect(store.search.messages('needle', { [name]: null }), name).rejects.toThrow(TypeError)
    })

    test('an offset goes without a limit, and is beyond the end', async () => {
      await say('needle 1', 'needle 2', 'needle 3')
      expect(await store.search.messages('needle', { offset: 1 })).toHaveLength(2)
      expect(await store.search.messages('needle', { offset: 5 })).toEqual([])
      expect(await store.search.messages('needle', { limit: 0 })).toEqual([])
      expect(await store.search.messages('needle', { limit: Number.MAX_SAFE_INTEGER })).toHaveLength(3)
    })

    test.each<[string, unknown]>([
      ['since', 'yesterday'],
      ['until', Number.NaN],
      ['sessionId', 5],
      ['tools', 'shell'],
      ['orderBy', 'oldest'],
      ['marks', ['<b>']],
      ['marks', '<b>'],
      ['marks', [1, 2]],
      ['after', 5],
      ['after', {}],
    ])('%s cannot be %j', async (name, value) => {
      await expect(store.search.messages('needle', { [name]: value })).rejects.toThrow(TypeError)
    })
  })

  describe('tools', () => {
    const call = (name: string, args: string) => ({
      role: 'assistant',
      content: null,
      tool_calls: [{ id: 'c1', type: 'function', function: { name, arguments: args } }],
    })

    test.each(['quokka', 'web_search', 'web_search quokka', 'quok*'])(
      'names and arguments of calls are found: %s',
      async (query) => {
        const id = await store.messages.append('s', call('web_search', '{"query":"quokka"}'))
        await say('other')
        expect(await store.search.messages(query)).toMatchObject([
          {
            id,
            role: 'assistant',
            route: kind.additions ? 'words' : 'substring',
            matched: 'all',
            matches: [{ field: 'tool_calls' }, ...(query.includes(' q') ? [{ field: 'tool_calls' }] : [])],
          },
        ])
      },
    )

    test('the name at a result is found', async () => {
      const id = await store.messages.append('s', {
        role: 'tool',
        content: 'nothing',
        tool_name: 'web_fetch',
      })
      expect(await store.search.messages('web_fetch')).toMatchObject([
        {
          id,
          tool_name: 'web_fetch',
          route: kind.additions ? 'words' : 'substring',
          snippet: '>>>web_fetch<<<',
          matches: [{ field: 'tool_name', start: 0, end: 9 }],
        },
      ])
    })

    test('white space that is escaped in arguments parts words', async () => {
      const id = await store.messages.append(
        's',
        call('shell', JSON.stringify({ run: 'first\nsecond\tthird' })),
      )
      for (const query of ['second', 'third', 'first second'])
        expect(await store.search.messages(query), query).toMatchObject([{ id, matched: 'all' }])
    })

    test('Chinese arguments are found', async () => {
      const id = await store.messages.append('s', call('shell', JSON.stringify({ run: '部署服务' })))
      expect(await store.search.messages('署服')).toMatchObject([{ id, matches: [{ field: 'tool_calls' }] }])
      expect(await store.search.messages('shell 部署')).toMatchObject([{ id }])
    })
  })

  describe('when nothing has all of several words', () => {
    const billing = 'we deployed the billing service with docker compose'

    test('messages with any are found, best first', async () => {
      await say('how is the weather', billing, 'billing, how did it go', 'unrelated')
      const hits = await store.search.messages('how did we deploy billing')
      expect(new Set(hits.map(({ matched, route }) => `${matched} ${route}`))).toEqual(new Set(['any words']))
      expect(await contentsOf(hits)).toEqual(['billing, how did it go', billing, 'how is the weather'])
    })

    test('but not where some have all', async () => {
      await say('billing deployed', billing, 'billing')
      expect(await contentsOf(await store.search.messages('billing compose'))).toEqual([billing])
      expect(await store.search.messages('billing compos')).toMatchObject([
        { route: 'substring', matched: 'all' },
      ])
    })

    test.each([
      'quokka',
      'billing NOT docker',
      '"docker billing"',
      'quokka OR wallaby',
      '账单 quokka',
      '🚀 quokka',
    ])('which %s is not', async (query) => {
      await say(billing)
      expect(await store.search.messages(query)).toEqual([])
    })

    test('which words with AND between them are not', async () => {
      await say(billing)
      expect(await store.search.messages('docker AND quokka')).toEqual([])
    })

    test('nor behind the last that has all', async () => {
      await say('billing composed', 'billing', 'billing again')
      expect(await contentsOf(await store.search.messages('billing compose'))).toEqual(['billing composed'])
      const [last] = await store.search.messages('billing compose')
      expect(await store.search.messages('billing compose', { after: last })).toEqual([])
      expect(await store.search.messages('billing compose', { offset: 1 })).toEqual([])
    })

    test('within the filters', async () => {
      await store.sessions.create({ id: 't', source: 'telegram' })
      await say(billing)
      await store.messages.append('t', { role: 'user', content: 'billing how' })
      const hits = await store.search.messages('how did we deploy billing', { sources: ['telegram'] })
      expect(await contentsOf(hits)).toEqual(['billing how'])
    })
  })

  test('context is of the session, where others are written in between', async () => {
    await store.sessions.create({ id: 't', source: 'new' })
    const turns = ['a1', 'b1', 'a2 TARGETWORD', 'b2', 'a3']
    for (const content of turns)
      await store.messages.append(content.startsWith('a') ? 's' : 't', { role: 'user', content })
    for (const query of ['TARGETWORD', 'TARGETWOR']) {
      const [hit] = await store.search.messages(query)
      expect(hit?.context.map(({ content }) => content)).toEqual(['a1', 'a2 TARGETWORD', 'a3'])
    }
  })
})
