import { sql } from 'kysely'
import { beforeEach, describe, expect, test } from 'vitest'
import type { MessageContent, SearchHit, SearchOptions, StateStore } from '../../src/index.ts'
import { bothModes } from '../support/stores.ts'

/** A query for every way to find a text that holds `docker 容器 🚀`. */
const WAYS: [string, string, SearchOptions?][] = [
  ['words', 'docker'],
  ['words, newest first', 'docker', { orderBy: 'newest' }],
  ['Chinese', '容器'],
  ['Chinese and Latin', '容器 docker'],
  ['Chinese and a part of a word', '容器 ocke'],
  ['an emoji', '🚀'],
  ['a part of a word', 'ocke'],
  ['some of the words', 'docker quokka'],
  ['some, newest first', 'docker quokka', { orderBy: 'newest' }],
  ['a scan', 'docker', { scan: true }],
]

describe.each(bothModes)('hits in $name', (kind) => {
  let store: StateStore
  beforeEach(async () => {
    store = await kind.open()
    await store.sessions.create({ id: 's', source: 'new', model: 'm', started_at: 2000 })
  })

  const say = (content: MessageContent) => store.messages.append('s', { role: 'user', content })

  /** What the matches of the first hit are, as they stand in its visible text. */
  const matched = async (query: string, visible: string, options?: SearchOptions) => {
    const [hit] = await store.search.messages(query, options)
    return hit?.matches.map(({ field, start, end }) => `${field} ${visible.slice(start, end)}`)
  }

  test.each(WAYS)('found by %s have the same form', async (_, query, options) => {
    await say('before')
    await store.messages.append('s', {
      role: 'tool',
      tool_name: 'shell',
      content: 'docker 容器 🚀',
      timestamp: 5,
    })
    await say('after')
    const id = 2
    expect(await store.search.messages(query, options)).toEqual([
      {
        id,
        session_id: 's',
        role: 'tool',
        timestamp: 5,
        tool_name: 'shell',
        snippet: expect.stringMatching(/>>>.+<<</),
        matches: expect.arrayContaining([
          { field: 'content', start: expect.any(Number), end: expect.any(Number) },
        ]),
        context: [
          { id: 1, role: 'user', content: 'before' },
          { id, role: 'tool', content: 'docker 容器 🚀' },
          { id: 3, role: 'user', content: 'after' },
        ],
        source: 'new',
        model: 'm',
        session_started: 2000,
        route: expect.stringMatching(/^(words|unsegmented|substring)$/),
        matched: query.includes('quokka') ? 'any' : 'all',
        partial: false,
      } satisfies SearchHit,
    ])
  })

  describe('snippets', () => {
    test('mark every match, of every term', async () => {
      await say('docker and 容器 and Docker, not dockerfile')
      const snippet = async (query: string, options?: SearchOptions) =>
        (await store.search.messages(query, options))[0]?.snippet
      expect(await snippet('docker')).toBe('>>>docker<<< and 容器 and >>>Docker<<<, not dockerfile')
      expect(await snippet('容器 docker')).toContain('>>>docker<<< and >>>容器<<< and >>>Docker<<<')
      expect(await snippet('docker*')).toMatch(/not >>>docker<<<file$|not >>>dockerfile<<<$/)
      expect(await snippet('docker NOT quokka')).toBe(await snippet('docker'))
      expect(await snippet('docker OR "docker and"')).not.toMatch(/>>>[^<]*>>>/)
    })

    test.each(WAYS)('of %s have the marks that were asked for', async (_, query, options) => {
      await say('docker 容器 🚀')
      for (const marks of [
        ['<b>', '</b>'],
        ['', ''],
        ['$&', '$1'],
      ] as const) {
        const [hit] = await store.search.messages(query, { ...options, marks })
        const { start, end } = hit!.matches[0]!
        const text = 'docker 容器 🚀'
        expect(hit?.snippet).toContain(marks[0] + text.slice(start, end) + marks[1])
        expect(hit?.snippet.replaceAll(marks[0], '').replaceAll(marks[1], '')).toBe(text)
      }
    })

    test('cut no character in half', async () => {
      for (const fill of ['🚀', '🚀 ', 'x🚀'])
        for (let shift = 0; shift < 3; shift++) {
          const content = `${'y'.repeat(shift)}${fill.repeat(200)} needle 针 ${fill.repeat(200)}`
          await say(content)
          for (const query of ['needle', '针', 'needl', '针 needle']) {
            const [hit] = await store.search.messages(query, { orderBy: 'newest' })
            expect(hit?.snippet.isWellFormed()).toBe(true)
            expect(hit?.snippet).toMatch(/^\.\.\..*>>>.*\.\.\.$/)
            expect(content).toContain(hit?.snippet.replaceAll(/^\.{3}|\.{3}$|>>>|<<</g, ''))
          }
        }
    })
  })

  describe('matches', () => {
    test.each<[string, string, string[]]>([
      ['docker', '🚀🚀 docker 𠮷 Docker', ['docker', 'Docker']],
      ['容器', '🚀 关于容器𠮷容器', ['容器', '容器']],
      ['🚀', 'a𠮷🚀b🚀', ['🚀', '🚀']],
      ['ABC', '全ＡＢＣ角 ＡＢＣ', ['ＡＢＣ', 'ＡＢＣ']],
      ['ＡＢＣ全', '🚀ＡＢＣ全角', ['ＡＢＣ全']],
      ['ガス', '🚀のｶﾞｽとガス', ['ｶﾞｽ', 'ガス']],
      ['한글', 'x \u1112\u1161\u11ab글 한글', ['\u1112\u1161\u11ab글', '한글']],
      ['cafe', 'naïve café, CAFE', ['café', 'CAFE']],
      ['cafe', 'nai\u0308ve cafe\u0301 cafe', ['cafe\u0301', 'cafe']],
      ['café', 'cafe\u0301 and café', ['cafe\u0301', 'café']],
      ['file', '🚀 ﬁle', ['ﬁle']],
      ['istanbul', 'İİ istanbul', ['istanbul']],
      ['σοφος', 'ὁ ΣΟΦΟΣ', ['ΣΟΦΟΣ']],
      ['"foo bar"', 'İ foo  \n bar foo\u3000bar', ['foo  \n bar', 'foo\u3000bar']],
      ['scripts/deploy.sh', 'at scripts/deploy.sh!', ['scripts/deploy.sh']],
      ['deploy', 'redeploy deployed deploy', ['deploy']],
      ['eploy', 'redeploy deployed', ['eploy', 'eploy']],
      ['docker 容器 🚀', '🚀容器 docker', ['🚀', '容器', 'docker']],
      ['two', 'one\0two', ['two']],
      ['word', 'pass\u200b\u200bword', ['word']],
      ['it’s', 'so it’s on', ['it’s']],
      ['C++', 'in C++ and c', ['C', 'c']],
    ])('of %s in %j are where it stands', async (query, content, expected) => {
      await say(content)
      expect(await matched(query, content)).toEqual(expected.map((text) => `content ${text}`))
    })

    test.each(['docker', '容器', '🚀', 'ocke'])('of %s in structured content', async (query) => {
      const parts = [
        { type: 'text', text: 'İ first 🚀' },
        { type: 'image_url', image_url: { url: 'data:image/png;base64,AAAA' } },
        { type: 'text', text: 'docker 容器' },
      ]
      await say(parts)
      expect(await matched(query, 'İ first 🚀\ndocker 容器')).toEqual([`content ${query}`])
    })

    test('in tool calls, whose quotes are spaces', async () => {
      const tool_calls = [
        {
          id: 'c1',
          type: 'function',
          function: { name: 'shell', arguments: JSON.stringify({ run: 'echo 🚀\ndocker 容器' }) },
        },
      ]
      await store.messages.append('s', { role: 'assistant', content: 'İ', tool_calls })
      const text = JSON.stringify(tool_calls).replaceAll(/\\{1,2}[ntr]|\\{0,3}"/g, ' ')
      for (const query of ['shell', 'docker', '容器', '🚀', 'ocke'])
        expect(await matched(query, text), query).toEqual([`tool_calls ${query}`])
      expect(await matched('docker', text, { scan: true })).toEqual(['tool_calls docker'])
    })

    test.each(['C:\\new', 'new', 'tmp\\readme.txt', '修改', 'naïve', '🚀'])(
      'of %s behind escapes',
      async (query) => {
        const args = JSON.stringify({ run: 'del C:\\new C:\\tmp\\readme.txt', note: '修改 naïve 🚀' })
        const tool_calls = [{ id: 'c1', type: 'function', function: { name: 'shell', arguments: args } }]
        await store.messages.append('s', { role: 'assistant', content: null, tool_calls })
        const [hit] = await store.search.messages(query)
        expect(hit?.snippet).toContain(`>>>${query}<<<`)
        // As Python's json.dumps writes it, with the arguments escaped once and twice.
        const escaped = (text: string) =>
          text.replaceAll(/[^\0-\x7f]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`)
        await store.messages.append('s', { role: 'assistant', content: null })
        for (const text of [
          escaped(JSON.stringify(tool_calls)),
          JSON.stringify([
            { id: 'c1', type: 'function', function: { name: 'shell', arguments: escaped(args) } },
          ]),
        ]) {
          await sql`update messages set tool_calls = ${text}`.execute(store.db)
          expect(await store.search.messages(query), text).toHaveLength(2)
          expect((await store.search.messages(query))[0]?.snippet).toContain(`>>>${query}<<<`)
        }
      },
    )

    test.each(['C:\\new', 'new'])('of %s behind escapes in structured content', async (query) => {
      await store.messages.append('s', { role: 'user', content: [{ type: 'text', text: 'in C:\\new' }] })
      await sql`
        update messages set content = ${`\0json:${JSON.stringify([{ type: 'text', text: 'C:\\new here' }])}`}`.execute(
        store.db,
      )
      expect((await store.search.messages(query))[0]).toMatchObject({ route: 'words' })
    })

    test('come by field, and no more than a hundred', async () => {
      await store.messages.append('s', { role: 'tool', tool_name: 'docker', content: 'docker '.repeat(99) })
      for (const query of ['docker', 'ocke']) {
        const [hit] = await store.search.messages(query)
        expect(hit?.matches.map(({ field }) => field)).toEqual([...Array(99).fill('content'), 'tool_name'])
      }
      await say('docker '.repeat(1_000))
      expect((await store.search.messages('docker', { orderBy: 'newest' }))[0]?.matches).toHaveLength(100)
    })

    test.each(['needle', '針', 'eedl'])('of %s deep in a long text, in no time', async (query) => {
      const content = `${'é 漢 🚀 '.repeat(16_000)}needle 針 ${'x '.repeat(50_000)}`
      await say(content)
      const started = performance.now()
      expect(await matched(query, content)).toEqual([`content ${query}`])
      expect(performance.now() - started).toBeLessThan(1_000)
    })
  })

  test.each(WAYS)('found by %s have as much context as was asked for', async (_, query, options) => {
    for (const content of ['1', '2', 'docker 容器 🚀', '4', '5', '6']) await say(content)
    for (const [context, expected] of [
      [0, ['docker 容器 🚀']],
      [2, ['1', '2', 'docker 容器 🚀', '4', '5']],
      [1_000, ['1', '2', 'docker 容器 🚀', '4', '5', '6']],
    ] as const) {
      const [hit] = await store.search.messages(query, { ...options, context })
      expect(hit?.context.map(({ content }) => content)).toEqual(expected)
    }
  })

  test('come newest first where that is asked for', async () => {
    const ids = []
    for (const content of ['docker', `docker ${'long '.repeat(50)}`, 'docker docker', 'docker and so on'])
      ids.push(await say(content))
    const found = async (query: string, options: SearchOptions) =>
      (await store.search.messages(query, options)).map(({ id }) => id)
    for (const query of ['docker', 'ocke', 'docker quokka']) {
      expect(await found(query, { orderBy: 'newest' }), query).toEqual(ids.toReversed())
      expect(await found(query, { orderBy: 'newest', limit: 2, offset: 0 }), query).toEqual([4, 3])
    }
    expect(await found('docker', { orderBy: 'newest', limit: 2, offset: 1 })).toEqual([3, 2])
    expect(await found('docker', {})).not.toEqual(ids.toReversed())
  })

  test('of equal rank are paged, also within filters', async () => {
    await store.messages.appendMany(
      's',
      Array.from({ length: 50 }, (_, index) => ({
        role: index % 2 ? 'user' : 'tool',
        content: index % 5 ? 'same words' : 'same',
      })),
    )
    for (const options of [{}, { roles: ['user'] }, { roles: ['user'], orderBy: 'newest' }] as const) {
      const all = await store.search.messages('same', { ...options, limit: 100 })
      const pages: SearchHit[] = []
      for (let page: SearchHit[] | undefined; page?.length !== 0; pages.push(...page))
        page = await store.search.messages('same', { ...options, limit: 4, after: pages.at(-1) })
      expect(pages).toEqual(all)
      expect(new Set(pages.map(({ id }) => id)).size).toBe('roles' in options ? 25 : 50)
    }
  })

  describe('filters', () => {
    beforeEach(async () => {
      await store.sessions.create({ id: 't', source: 'telegram' })
      const content = 'docker 容器 🚀'
      await store.messages.append('s', { role: 'user', content, timestamp: 10 })
      await store.messages.append('s', { role: 'tool', content, timestamp: 20, tool_name: 'shell' })
      await store.messages.append('t', { role: 'tool', content, timestamp: 30, tool_name: 'web' })
      await store.messages.append('t', { role: 'user', content, timestamp: 15.5 })
    })

    test.each(WAYS)('hold for %s', async (_, query, way) => {
      const ids = async (options: SearchOptions) =>
        (await store.search.messages(query, { ...way, ...options })).map(({ id }) => id).sort()
      expect(await ids({})).toEqual([1, 2, 3, 4])
      expect(await ids({ sources: ['telegram'] })).toEqual([3, 4])
      expect(await ids({ sources: ['telegram', 'new'], excludeSources: ['new'] })).toEqual([3, 4])
      expect(await ids({ excludeSources: ['telegram'] })).toEqual([1, 2])
      expect(await ids({ roles: ['user'] })).toEqual([1, 4])
      expect(await ids({ tools: ['shell', 'web'] })).toEqual([2, 3])
      expect(await ids({ tools: ['web'], roles: ['user'] })).toEqual([])
      expect(await ids({ sessionId: 't' })).toEqual([3, 4])
      expect(await ids({ sessionId: 'nobody' })).toEqual([])
      expect(await ids({ since: 15.5 })).toEqual([2, 3, 4])
      expect(await ids({ until: 15.5 })).toEqual([1])
      expect(await ids({ since: 15.5, until: 30 })).toEqual([2, 4])
      expect(await ids({ since: 30, until: 30 })).toEqual([])
      expect(await ids({ since: -1, sessionId: 's', roles: ['tool'] })).toEqual([2])
      for (const name of ['sources', 'roles', 'tools']) expect(await ids({ [name]: [] }), name).toEqual([])
    })

    test.each(WAYS)('hold on the next page of %s', async (_, query, way) => {
      const options = { ...way, tools: ['shell', 'web'], limit: 1 }
      const [first] = await store.search.messages(query, options)
      const [second] = await store.search.messages(query, { ...options, after: first })
      expect([first?.id, second?.id].sort()).toEqual([2, 3])
      expect(await store.search.messages(query, { ...options, after: second })).toEqual([])
    })
  })

  describe('a scan', () => {
    test.each(['needle', '针', '🎯'])('finds %s where no index has it', async (query) => {
      const result = `${'x '.repeat(4_200)}needle 针 🎯 end`
      const image = 'see data:image/png;base64,iVBOR needle 针 🎯'
      await store.messages.append('s', { role: 'tool', content: result })
      await say(image)
      // Without additions the word index has whole texts.
      if (kind.additions || query !== 'needle') expect(await store.search.messages(query)).toEqual([])
      const hits = await store.search.messages(query, { scan: true })
      expect(hits.map(({ id, route }) => `${id} ${route}`)).toEqual(['2 substring', '1 substring'])
      for (const [index, text] of [image, result].entries()) {
        const { matches, snippet } = hits[index]!
        expect(matches.map(({ start, end }) => text.slice(start, end))).toEqual([query])
        expect(snippet).toContain(`>>>${query}<<<`)
      }
      expect(await store.search.messages(query, { scan: true, limit: 1, after: hits[0] })).toEqual([hits[1]])
    })

    test('is not needed up to 8,192 characters of a result, nor for other roles', async () => {
      const texts = ['x '.repeat(4_093), '🚀'.repeat(8_186), 'x '.repeat(4_094)].map(
        (head) => `${head}needle`,
      )
      for (const content of texts) await store.messages.append('s', { role: 'tool', content })
      await say(texts[2]!)
      const ids = async (query: string, options?: SearchOptions) =>
        (await store.search.messages(query, options)).map(({ id }) => id)
      expect(await ids('eedle')).toEqual([4, 2, 1])
      expect(await ids('eedle', { scan: true })).toEqual([4, 3, 2, 1])
    })

    test('means what its query means', async () => {
      await say('docker build')
      await say('podman rebuild')
      const ids = async (query: string) =>
        (await store.search.messages(query, { scan: true })).map(({ id }) => id)
      expect(await ids('build')).toEqual([2, 1])
      expect(await ids('docker podman')).toEqual([])
      expect(await ids('docker OR podman')).toEqual([2, 1])
      expect(await ids('build NOT podman')).toEqual([1])
    })
  })

  describe('a signal', () => {
    const reason = new Error('enough')

    test.each(WAYS)('that is aborted stops %s', async (_, query, options) => {
      await say('docker 容器 🚀')
      const signal = AbortSignal.abort(reason)
      await expect(store.search.messages(query, { ...options, signal })).rejects.toBe(reason)
      await expect(store.search.sessions(query, { signal })).rejects.toBe(reason)
    })

    test('stops a scan that is under way', async () => {
      const content = `é ${'words '.repeat(2_000)}`
      await store.messages.appendMany(
        's',
        Array.from({ length: 1_000 }, () => ({ role: 'user', content })),
      )
      const controller = new AbortController()
      setTimeout(() => controller.abort(reason), 15)
      const search = store.search.messages('🎯', { scan: true, signal: controller.signal })
      await expect(search).rejects.toBe(reason)
      expect(await store.search.messages('words', { signal: new AbortController().signal })).toHaveLength(20)
    })
  })

  test.each(WAYS)('of what a transaction has written itself are found by %s', async (_, query, options) => {
    await say('docker 容器 🚀 committed')
    const failed = new Error('undone')
    const transaction = store.transaction(async (tx) => {
      const id = await tx.messages.append('s', { role: 'user', content: 'docker 容器 🚀 own' })
      const hits = await tx.search.messages(query, options)
      expect(hits.map((hit) => hit.id).sort()).toEqual([1, id])
      await tx.messages.append('s', { role: 'user', content: 'docker 容器 🚀 more' })
      const newer = await tx.search.messages(query, { ...options, orderBy: 'newest', limit: 1 })
      expect(newer).toMatchObject([{ id: id + 1, context: [{ id }, { id: id + 1 }] }])
      throw failed
    })
    await expect(transaction).rejects.toBe(failed)
    expect((await store.search.messages(query, options)).map(({ id }) => id)).toEqual([1])
  })

  test('of a word that is everywhere are ranked in part, unless all are asked for', async () => {
    const [content, more] = ['needle', 'needle in a long message']
    await store.messages.appendMany(
      's',
      Array.from({ length: 10_001 }, (_, index) => ({ role: 'user', content: index === 0 ? content : more })),
    )
    const [hit] = await store.search.messages('needle', { limit: 1 })
    expect(hit).toMatchObject({ id: 10_001, partial: true })
    expect(await store.search.messages('needle', { limit: 1, roles: ['user'] })).toMatchObject([
      { id: 10_001 },
    ])
    const exact = await store.search.messages('needle', { limit: 1, exact: true })
    expect(exact).toMatchObject([{ id: 1, partial: false }])
  })
})
