import { beforeEach, describe, expect, test } from 'vitest'
import type { SearchOptions, StateStore } from '../../src/index.ts'
import { eventsOf, kinds, rawRun } from '../support/stores.ts'

describe.each(kinds)('search in $name', (kind) => {
  let store: StateStore
  beforeEach(async () => {
    store = await kind.open()
    await store.sessions.create({ id: 's', source: 'new', model: 'm', started_at: 2000 })
  })

  /** Stores messages of a user. */
  const say = (...contents: string[]) =>
    store.messages.appendMany(
      's',
      contents.map((content) => ({ role: 'user', content })),
    )

  /** The contents that have all of a query, in their order in the conversation. */
  const found = async (query: string, options?: SearchOptions) => {
    const hits = (await store.search.messages(query, { limit: 1000, ...options })).filter(
      ({ matched }) => matched === 'all',
    )
    const messages = await Promise.all(hits.map(({ id }) => store.messages.get(id)))
    return messages.sort((a, b) => a!.id - b!.id).map((message) => message!.content)
  }

  describe('what a query means', () => {
    test('terms are ANDed, whatever their case', async () => {
      await say('Docker build failed', 'docker runs', 'the build')
      expect(await found('build DOCKER')).toEqual(['Docker build failed'])
      expect(await found('docker')).toEqual(['Docker build failed', 'docker runs'])
      expect(await found('docker podman')).toEqual([])
    })

    test('a phrase has its words side by side', async () => {
      await say('hello big world', 'hello world', 'world hello')
      expect(await found('"hello world"')).toEqual(['hello world'])
      expect(await found('"hello wor"*')).toEqual(['hello world'])
      expect(await found('hello world')).toEqual(['hello big world', 'hello world', 'world hello'])
    })

    test('OR, NOT and a prefix', async () => {
      await say('docker only', 'podman only', 'docker and podman', 'deployment')
      expect(await found('docker OR podman')).toEqual(['docker only', 'podman only', 'docker and podman'])
      expect(await found('docker NOT podman')).toEqual(['docker only'])
      expect(await found('only OR docker NOT podman')).toEqual(['docker only', 'podman only'])
      expect(await found('deploy*')).toEqual(['deployment'])
      expect(await store.search.messages('deploy')).toMatchObject([{ route: 'substring' }])
    })

    test('NOT takes the next term only, then AND, then OR', async () => {
      await say('a b', 'a c', 'a b c', 'd')
      const own = { sources: ['new'] }
      expect(await found('a NOT b c', own)).toEqual(['a c'])
      expect(await found('a b OR d', own)).toEqual(['a b', 'a b c', 'd'])
      expect(await found('d OR a b', own)).toEqual(['a b', 'a b c', 'd'])
      expect(await found('a OR d NOT c', own)).toEqual(['a b', 'a c', 'a b c', 'd'])
    })

    test('operators that have no operands are words, or nothing', async () => {
      await say('not found error', 'found error', 'NOT this', 'and so on', 'foo bar')
      expect(await found('not found')).toEqual(['not found error'])
      expect(await found('NOT found')).toEqual(['not found error'])
      expect(await found('NOT')).toEqual(['not found error', 'NOT this'])
      expect(await found('AND')).toEqual(['and so on'])
      expect(await found('AND OR NOT')).toEqual([])
      expect(await found('foo OR')).toEqual(['foo bar'])
      expect(await found('OR foo')).toEqual(['foo bar'])
      expect(await found('foo AND AND bar')).toEqual(['foo bar'])
      expect(await found('foo AND OR bar')).toEqual(['foo bar'])
    })

    test('NEAR is a word', async () => {
      await say('foo bar', 'foo near bar')
      expect(await found('NEAR(foo bar)')).toEqual([])
      expect(await found('foo NEAR bar')).toEqual(['foo near bar'])
      expect(await found('NEAR')).toEqual(['foo near bar'])
    })

    test('there is no syntax for columns', async () => {
      const todo = 'TODO: fix the parser'
      const odd = 'content: rowid:1 in C:\\temp, tool_name: x'
      await say(todo, odd)
      expect(await found('TODO: fix')).toEqual([todo])
      expect(await found('content: parser')).toEqual([])
      expect(await found('{content}: rowid')).toEqual([odd])
      expect(await found('rowid:1')).toEqual([odd])
      expect(await found('C:\\temp')).toEqual([odd])
      expect(await found('tool_name: x')).toEqual([odd])
      expect(await found('messages_fts')).toEqual([])
    })

    test('quotes need not be in pairs, nor hold anything', async () => {
      await say('foo bar')
      for (const query of ['"', '""', '"""', '" "', ' ', '', '***', '\0'])
        expect(await found(query), query).toEqual([])
      for (const query of ['"foo bar', 'foo "bar', '"" foo', '"foo" -bar', 'foo"bar', '"foo bar""'])
        expect(await found(query), query).toEqual(['foo bar'])
    })

    test('brackets and other signs around a word mean nothing', async () => {
      await say('foo')
      for (const query of ['^foo', 'foo^', '((foo', '{foo}', '+foo', '-foo', 'foo!', '(foo)', '*foo', 'foo,'])
        expect(await found(query), query).toEqual(['foo'])
    })
  })

  describe('punctuation hides nothing', () => {
    test('everyday text is found as it is typed', async () => {
      const text =
        "it's broken in gateway/run.py for user@host, costs $5 (50%) e=mc2 #tag [bracket] $HOME C:\\temp " +
        'a&b x|y <div> ~user `code` done; left, !important why? 61.2% x@y.z/w path\\to\\file.txt C++'
      await say(text, 'other')
      for (const query of [...text.split(' '), 'user@example'.replace('example', 'host'), text.slice(0, 60)])
        expect(await found(query), query).toEqual([text])
    })

    test('a term with signs in it is one phrase', async () => {
      await say('look at scripts/deploy.sh and run', 'deploy the sh scripts')
      expect(await found('scripts/deploy.sh')).toEqual(['look at scripts/deploy.sh and run'])
    })

    test('text with any ASCII sign between two words is found', async () => {
      const signs = Array.from({ length: 128 }, (_, code) => String.fromCharCode(code)).filter(
        (sign) => !/[a-z0-9]/i.test(sign),
      )
      const ids = await say(...signs.map((sign) => `alpha${sign}beta`))
      for (const [index, sign] of signs.entries()) {
        const hits = await store.search.messages(`alpha${sign}beta`, { limit: 100, context: 0 })
        expect(
          hits.map(({ id }) => id),
          JSON.stringify(sign),
        ).toContain(ids[index])
      }
    })

    test('nothing a user types is an error', async () => {
      await say('x')
      for (const query of [
        '"'.repeat(50_000),
        Array.from({ length: 5_000 }, (_, index) => `w${index}`).join(' OR '),
        `x${' NOT "zz"'.repeat(300)}`,
        `${'('.repeat(200)}x${')'.repeat(200)}`,
        '字'.repeat(60_000),
        '🚀 '.repeat(1_000),
        `x${' NOT 🚀'.repeat(300)}`,
        'x '.repeat(20_000),
        'OR '.repeat(20_000),
        '\ud800 \udc00"\ud800',
        '\u0301',
        '*'.repeat(5_000),
        '\\',
        "'; drop table messages; --",
      ])
        expect(await store.search.messages(query), query.slice(0, 20)).toBeInstanceOf(Array)
      expect(await found('x')).toEqual(['x'])
    })

    test('the query must be text', async () => {
      for (const query of [undefined, null, 5, ['x'], {}])
        await expect(store.search.messages(query as never)).rejects.toThrow(TypeError)
    })
  })

  describe('other characters', () => {
    test('emoji are found as they are', async () => {
      await say('to the moon 🚀 today', 'no rocket', '🚀🚀 again', 'deploy now 🚀')
      expect(await found('🚀')).toEqual(['to the moon 🚀 today', '🚀🚀 again', 'deploy now 🚀'])
      expect(await found('🚀🚀')).toEqual(['🚀🚀 again'])
      expect(await found('deploy 🚀')).toEqual(['deploy now 🚀'])
      expect(await found('moon OR 🚀🚀')).toEqual(['to the moon 🚀 today', '🚀🚀 again'])
      expect(await found('🚀 NOT deploy')).toEqual(['to the moon 🚀 today', '🚀🚀 again'])
    })

    test('signs that SQLite does not know, and lone marks, hide nothing', async () => {
      const texts = ['rust🦀 is fun', 'pay ₿5 now', 'a mark \u0305 alone', '\u2066bidi\u2069 text']
      await say(...texts)
      for (const [index, query] of ['rust🦀', 'pay ₿5', 'mark \u0305 alone', '\u2066bidi\u2069'].entries())
        expect(await found(query), query).toEqual([texts[index]])
    })

    test('scripts without spaces are found inside of runs', async () => {
      await say('查询 大别山项目 进度', '关于大别山项目的总结', '今天大别山项目开会', 'สวัสดีครับผม', '守 住')
      expect(await found('大别山项目')).toHaveLength(3)
      expect(await found('山')).toHaveLength(3)
      expect(await found('大别山 总结')).toEqual(['关于大别山项目的总结'])
      expect(await found('大别山 NOT 总结')).toEqual(['查询 大别山项目 进度', '今天大别山项目开会'])
      expect(await found('ครับ')).toEqual(['สวัสดีครับผม'])
      expect(await found('守')).toEqual(['守 住'])
    })

    test('and so are their phrases', async () => {
      await say('聊天记录记忆断裂问题')
      for (const query of ['"记忆断裂"', '"记忆" "断裂"', '"聊天记录" OR "没有"', '记忆 断裂', '断裂 聊天'])
        expect(await found(query), query).toEqual(['聊天记录记忆断裂问题'])
      expect(await found('"断裂 记忆"')).toEqual([])
    })

    test('terms of several scripts are all needed, in any order', async () => {
      await say('修改youer服务端的计划', '服务端', 'youer')
      for (const query of ['youer 服务端 修改', '服务端 youer', 'YOUER 服务端'])
        expect(await found(query), query).toEqual(['修改youer服务端的计划'])
    })

    test('wildcards of LIKE are plain text', async () => {
      await say('中_文', '中x文', '中%文', '中\\文')
      expect(await found('中_文')).toEqual(['中_文'])
      expect(await found('中%文')).toEqual(['中%文'])
      expect(await found('中\\文')).toEqual(['中\\文'])
    })

    test('text after a NUL is found too', async () => {
      await say('one\0two 漢字 🚀')
      for (const query of ['two', '漢字', '🚀', 'one 漢字', 'one\0two'])
        expect(await found(query), query).toEqual(['one\0two 漢字 🚀'])
    })

    test('accents may be left out', async () => {
      await say('naïve café')
      expect(await found('cafe')).toEqual(['naïve café'])
      expect(await found('CAFÉ')).toEqual(['naïve café'])
    })

    test('zero-width characters part words, in texts and in queries', async () => {
      await say('pass\u200bword')
      expect(await found('pass\u200bword')).toEqual(['pass\u200bword'])
      expect(await found('word')).toEqual(['pass\u200bword'])
      expect(await found('password')).toEqual([])
    })
  })

  describe('filters', () => {
    beforeEach(async () => {
      await store.sessions.create({ id: 't', source: 'telegram' })
      await store.messages.append('s', { role: 'user', content: 'docker 容器 a' })
      await store.messages.append('s', { role: 'tool', content: 'docker 容器 b' })
      await store.messages.append('t', { role: 'user', content: 'docker 容器 c' })
    })

    test.each(['docker', '容器'])('are literal for %s', async (query) => {
      const letters = async (options: SearchOptions) =>
        (await found(query, options)).map((content) => String(content).at(-1)).join('')
      expect(await letters({})).toBe('abc')
      expect(await letters({ sources: undefined, excludeSources: undefined, roles: undefined })).toBe('abc')
      expect(await letters({ sources: ['new'] })).toBe('ab')
      expect(await letters({ sources: ['telegram', 'new', 'nobody'] })).toBe('abc')
      expect(await letters({ sources: [] })).toBe('')
      expect(await letters({ sources: [''] })).toBe('')
      expect(await letters({ sources: ['NEW'] })).toBe('')
      expect(await letters({ excludeSources: ['new'] })).toBe('c')
      expect(await letters({ excludeSources: [] })).toBe('abc')
      expect(await letters({ roles: ['user'] })).toBe('ac')
      expect(await letters({ roles: [] })).toBe('')
      expect(await letters({ roles: ['tool'], sources: ['telegram'] })).toBe('')
      expect(await letters({ sources: ['new', 'telegram'], excludeSources: ['telegram'] })).toBe('ab')
    })

    test('take more values than SQLite takes parameters', async () => {
      const sources = Array.from({ length: 40_000 }, (_, index) => `source ${index}`)
      expect(await found('docker', { sources: [...sources, 'telegram'] })).toEqual(['docker 容器 c'])
    })

    test('refuse what is not a list of texts', async () => {
      for (const name of ['sources', 'excludeSources', 'roles'])
        for (const value of ['new', null, [1], [null], {}])
          await expect(store.search.messages('docker', { [name]: value })).rejects.toThrow(TypeError)
    })

    test('refuse numbers that are not counts', async () => {
      for (const name of ['limit', 'offset', 'context'])
        for (const value of [-1, 1.5, Number.NaN, Number.POSITIVE_INFINITY, '5', 2 ** 63])
          await expect(store.search.messages('docker', { [name]: value })).rejects.toThrow(TypeError)
    })
  })

  describe('hits', () => {
    test('say where the match is', async () => {
      await store.messages.append('s', { role: 'user', content: 'before', timestamp: 2001 })
      const id = await store.messages.append('s', {
        role: 'tool',
        content: 'a docker image',
        tool_name: 'shell',
        timestamp: 2002.5,
      })
      const [hit] = await store.search.messages('docker')
      expect(hit).toMatchObject({
        id,
        session_id: 's',
        role: 'tool',
        timestamp: 2002.5,
        tool_name: 'shell',
        snippet: 'a >>>docker<<< image',
        context: [
          { id: id - 1, role: 'user', content: 'before' },
          { id, role: 'tool', content: 'a docker image' },
        ],
        source: 'new',
        model: 'm',
        session_started: 2000,
        route: 'words',
      })
    })

    test('mark a match in a script without spaces', async () => {
      await say('关于大别山项目的总结')
      expect(await store.search.messages('大别山')).toMatchObject([
        {
          snippet: '关于>>>大别山<<<项目的总结',
          route: kind.additions ? 'unsegmented' : 'substring',
          matches: [{ field: 'content', start: 2, end: 5 }],
        },
      ])
    })

    test('show a part of a long message around the match', async () => {
      await say(
        `${'before '.repeat(500)}needle${' after'.repeat(500)}`,
        `${'前'.repeat(500)}针🚀${'后'.repeat(500)}`,
      )
      for (const [query, match] of [
        ['needle', '>>>needle<<<'],
        ['针', '>>>针<<<'],
      ] as const) {
        const [hit] = await store.search.messages(query)
        expect(hit?.snippet).toContain(match)
        expect(hit?.snippet).toMatch(/^\.\.\./)
        expect(hit?.snippet).toMatch(/\.\.\.$/)
        expect(hit?.snippet.length).toBeLessThan(500)
      }
    })

    test('come best match first, then newest', async () => {
      const [long, first, second] = await say(
        `docker ${'other words '.repeat(30)}`,
        'docker rocks',
        'docker rolls',
      )
      expect((await store.search.messages('docker')).map(({ id }) => id)).toEqual([second, first, long])
    })

    test('come newest first where the word index is not used', async () => {
      const ids = await say('容器', '容器容器', '容器 too')
      expect((await store.search.messages('容器')).map(({ id }) => id)).toEqual(ids.reverse())
    })

    test('are 20 unless told otherwise, and pages add up', async () => {
      await say(...Array.from({ length: 25 }, () => 'same 同じ'))
      for (const query of ['same', '同じ']) {
        expect(await store.search.messages(query)).toHaveLength(20)
        expect(await store.search.messages(query, { limit: 0 })).toEqual([])
        const all = await store.search.messages(query, { limit: 100 })
        expect(all).toHaveLength(25)
        const pages = []
        for (let offset = 0; offset < 30; offset += 10)
          pages.push(...(await store.search.messages(query, { limit: 10, offset })))
        expect(pages).toEqual(all)
      }
    })
  })

  describe('context', () => {
    test('is of the same session', async () => {
      await store.sessions.create({ id: 't', source: 'new' })
      const a: number[] = []
      for (const [session, content] of [
        ['s', 'a1'],
        ['t', 'b1'],
        ['s', 'a2 TARGETWORD'],
        ['t', 'b2'],
        ['s', 'a3'],
        ['s', 'a4'],
      ] as const) {
        const id = await store.messages.append(session, { role: 'user', content, timestamp: 1 })
        if (session === 's') a.push(id)
      }
      const context = async (size?: number) =>
        (await store.search.messages('TARGETWORD', { context: size }))[0]?.context
      expect(await context()).toEqual([
        { id: a[0], role: 'user', content: 'a1' },
        { id: a[1], role: 'user', content: 'a2 TARGETWORD' },
        { id: a[2], role: 'user', content: 'a3' },
      ])
      expect((await context(0))?.map(({ content }) => content)).toEqual(['a2 TARGETWORD'])
      expect((await context(9))?.map(({ content }) => content)).toEqual(['a1', 'a2 TARGETWORD', 'a3', 'a4'])
    })

    test('is cut to 200 code points, and empty where a message has no text', async () => {
      await say('🚀'.repeat(300), 'needle')
      await store.messages.append('s', { role: 'assistant', content: null })
      const [hit] = await store.search.messages('needle')
      expect(hit?.context.map(({ content }) => content)).toEqual(['🚀'.repeat(200), 'needle', ''])
    })

    test('shows the visible text of structured content', async () => {
      await store.messages.append('s', { role: 'user', content: [{ type: 'text', text: 'look at this' }] })
      await say('needle')
      const [hit] = await store.search.messages('needle')
      expect(hit?.context.map(({ content }) => content)).toEqual(['look at this', 'needle'])
    })
  })

  describe('what is searched', () => {
    test('the text of structured content', async () => {
      const content = [
        { type: 'text', text: 'a quokka and 袋鼠' },
        { type: 'image_url', image_url: { url: 'data:,' } },
      ]
      await store.messages.append('s', { role: 'user', content })
      expect(await found('quokka')).toEqual([content])
      expect(await found('袋鼠')).toEqual([content])
    })

    test('what other programs wrote, and not what they took away', async () => {
      const [id] = await say('first words 第一')
      await rawRun(store, "update messages set content = 'second words 第二' where id = ?", id)
      expect(await found('first')).toEqual([])
      expect(await found('第一')).toEqual([])
      expect(await found('second')).toEqual(['second words 第二'])
      expect(await found('第二')).toEqual(['second words 第二'])
      await rawRun(
        store,
        "insert into messages (session_id, role, content, timestamp) values ('s', 'user', 'third', 1)",
      )
      expect(await found('third')).toEqual(['third'])
      await rawRun(store, 'delete from messages where id = ?', id)
      expect(await found('second')).toEqual([])
    })

    test('BLOBs and ill-formed text', async () => {
      const [blob, broken] = await say('x', 'y')
      await rawRun(store, "update messages set content = cast('quokka 袋鼠' as blob) where id = ?", blob)
      await rawRun(
        store,
        "update messages set content = cast(x'48692077616c6c61627920e29c' as text) where id = ?",
        broken,
      )
      expect(await found('wallaby')).toEqual(['Hi wallaby \ufffd'])
      expect(await found('quokka')).toEqual(['quokka 袋鼠'])
      expect(await found('袋鼠')).toEqual(['quokka 袋鼠'])
    })

    test('what was in the file before', async () => {
      if (kind.existing.messages === 0) return
      expect(await found('walrus')).toEqual(['walrus\nspotted', 'walrus count', 'walrus gone'])
      expect(await found('海象')).toEqual(['海象在这里'])
    })
  })

  test('a missing index hides nothing', async () => {
    const [id] = await say('missing')
    await rawRun(store, 'drop table messages_fts')
    expect(await store.search.messages('missing')).toMatchObject([{ id, route: 'substring' }])
    expect(eventsOf(store, 'word-index-unused')).toMatchObject([{ reason: 'is missing' }])
  })
})
