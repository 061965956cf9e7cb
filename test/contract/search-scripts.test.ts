import { beforeEach, describe, expect, test } from 'vitest'
import type { SearchHit, SearchOptions, StateStore } from '../../src/index.ts'
import { bothModes, kinds } from '../support/stores.ts'

/** A store with a session, and how tests write to it and search it. */
function prepare(open: () => Promise<StateStore>) {
  let store: StateStore
  beforeEach(async () => {
    store = await open()
    await store.sessions.create({ id: 's', source: 'new' })
  })
  return {
    store: () => store,
    say: (...contents: string[]) =>
      store.messages.appendMany(
        's',
        contents.map((content) => ({ role: 'user', content })),
      ),
    /** The contents that have all of a query, in their order in the conversation. */
    found: async (query: string, options?: SearchOptions) => {
      const hits = await store.search.messages(query, { limit: 1_000, ...options })
      const all = hits.filter(({ matched }) => matched === 'all')
      const messages = await Promise.all(all.map(({ id }) => store.messages.get(id)))
      return messages.sort((a, b) => a!.id - b!.id).map((message) => message!.content as string)
    },
  }
}

describe.each(kinds)('scripts without spaces in $name', (kind) => {
  const { store, say, found } = prepare(kind.open)
  const route = kind.additions ? 'unsegmented' : 'substring'

  test('are found whether or not they stand between spaces', async () => {
    const texts = ['查询 大别山项目 进度', '关于大别山项目的总结', '今天大别山项目开会']
    await say(...texts, '大别的山', '大 别 山')
    expect(await found('大别山项目')).toEqual(texts)
    expect(await found('大别山')).toEqual(texts)
    const hits = await store().search.messages('大别山项目')
    expect(hits.map((hit) => hit.route)).toEqual([route, route, route])
  })

  test('do not hide the Latin words that they touch', async () => {
    await say('修改youer服务端的计划', '服务端')
    for (const query of ['youer', 'YOUER', '改youer服', 'youer*', '"youer"'])
      expect(await found(query), query).toEqual(['修改youer服务端的计划'])
  })

  test('a Latin word inside another is found where no word is it', async () => {
    await say('concatenate')
    expect(await store().search.messages('cat')).toMatchObject([
      { route: 'substring', matched: 'all', snippet: 'con>>>cat<<<enate' },
    ])
    await say('a cat')
    expect(await found('cat')).toEqual(['a cat'])
  })

  test('are found with other terms in any order', async () => {
    const texts = ['修改youer服务端的计划', '聊天记录记忆断裂问题']
    await say(...texts, '服务端', 'youer', '记忆')
    for (const query of [
      'youer 服务端 修改',
      '服务端 youer',
      '修改 youer',
      '计划 修改 服务端',
      'youer AND 服务端',
    ])
      expect(await found(query), query).toEqual([texts[0]])
    for (const query of ['记忆 断裂', '断裂 记忆', '问题 聊天 断裂'])
      expect(await found(query)).toEqual([texts[1]])
    expect(await store().search.messages('记忆 大别山')).toEqual([])
  })

  test('are found as phrases', async () => {
    await say('聊天记录记忆断裂问题', '修复 构建', '修复\u3000构建', '修复构建', '构建 修复')
    for (const query of ['"记忆断裂"', '"记忆" "断裂"', '"聊天记录" OR "没有"', '"没有" OR "聊天记录"'])
      expect(await found(query), query).toEqual(['聊天记录记忆断裂问题'])
    expect(await found('"修复 构建"')).toEqual(['修复 构建', '修复\u3000构建'])
    expect(await found('修复 构建')).toHaveLength(4)
    expect(await found('"修复构建"')).toEqual(['修复构建'])
  })

  test('are found by one character and by two', async () => {
    await say('守 住', '我们要守护它', '守护者', '护 守')
    expect(await found('守')).toEqual(['守 住', '我们要守护它', '守护者', '护 守'])
    expect(await found('守护')).toEqual(['我们要守护它', '守护者'])
    expect(await found('护')).toEqual(['我们要守护它', '守护者', '护 守'])
    expect(await found('者')).toEqual(['守护者'])
    expect(await found('守*')).toHaveLength(4)
  })

  test.each([
    ['half-width katakana', 'ｶﾀｶﾅのﾃｽﾄ', ['ﾃｽﾄ', 'テスト', 'ｶﾀｶﾅ', 'カタカナのテスト', 'ﾄ']],
    ['half-width katakana with marks', 'ｶﾞｽﾎﾞﾝﾍﾞ', ['ガス', 'ｶﾞｽ', 'ボンベ', 'ﾎﾞ']],
    ['the sign of a long vowel', 'サーバーを再起動', ['サーバー', 'ｻｰﾊﾞｰ', 'バーを']],
    ['Thai', 'สวัสดีครับผมชื่อสมชาย', ['ครับ', 'ผม', 'สวัสดี', 'ชื่อ']],
    ['Lao', 'ສະບາຍດີທຸກຄົນ', ['ທຸກ', 'ຄົນ']],
    ['Khmer', 'សួស្តីពិភពលោក', ['ពិភព', 'លោក']],
    ['Myanmar', 'မင်္ဂလာပါကမ္ဘာ', ['ကမ္ဘာ']],
    ['Tibetan', 'བཀྲ་ཤིས་བདེ་ལེགས', ['ཤིས', 'བདེ་ལེགས']],
    ['bopomofo', 'ㄅㄆㄇㄈ注音', ['ㄆㄇ', 'ㄈ注', 'ㄅ']],
    ['full-width Latin', 'ＡＢＣ全角', ['ABC', 'ＡＢＣ', 'abc', 'ａｂｃ全', '全角']],
    ['Extension B', '去𠮷野家吃', ['𠮷野家', '𠮷', '去𠮷', '野家', '𠮷野']],
    ['compatibility ideographs', '\uf900更', ['\u8c48', '\uf900', '\u8c48更']],
    ['Hangul', '오늘재배포했습니다', ['배포', '재배포', '했습']],
    ['Hangul of single letters', '\u1112\u1161\u11ab글', ['한글', '한', '\u1112\u1161\u11ab']],
    ['Yi', 'ꆈꌠꁱꂷ', ['ꌠꁱ']],
    ['digits in a run', '第10章2024年', ['10章', '2024年', '第10', '2024']],
  ])('%s', async (_, content, queries) => {
    await say(content, 'other', '別')
    for (const query of queries) {
      expect(await found(query), query).toEqual([content])
      expect(await found(`"${query}" NOT other`), query).toEqual([content])
    }
  })

  test('a variant of a character is another character', async () => {
    await say('𠮷野家', '壱')
    expect(await found('吉野家')).toEqual([])
    expect(await found('𠮶')).toEqual([])
    expect(await found('\ud842')).toEqual([])
  })

  test.each([
    ['docker NOT 部署', ['docker build', 'dockerdocker docker 🚀']],
    [
      '部署 OR docker',
      ['docker build', '用docker部署', '部署 服务 🚀', 'dockerdocker docker 🚀', '重新部署'],
    ],
    ['docker AND 部署', ['用docker部署']],
    ['部署 docker', ['用docker部署']],
    ['部署 NOT docker', ['部署 服务 🚀', '重新部署']],
    ['部署 NOT 重新', ['用docker部署', '部署 服务 🚀']],
    ['部署 NOT 🚀', ['用docker部署', '重新部署']],
    ['🚀 NOT 部署', ['dockerdocker docker 🚀', '🚀🚀 podman']],
    ['🚀', ['部署 服务 🚀', 'dockerdocker docker 🚀', '🚀🚀 podman']],
    ['🚀🚀 OR 重新', ['🚀🚀 podman', '重新部署']],
    ['🚀 部署', ['部署 服务 🚀']],
    ['🚀 docker', ['dockerdocker docker 🚀']],
    ['podman OR 重新 部署', ['🚀🚀 podman', '重新部署']],
    ['重新 部署 OR 服务 🚀', ['部署 服务 🚀', '重新部署']],
    ['"服务 🚀"', ['部署 服务 🚀']],
    ['docker NOT 部署 NOT 🚀', ['docker build']],
    ['部署 docker*', ['用docker部署']],
    ['"docker部署"', ['用docker部署']],
    ['署 OR podm*', ['用docker部署', '部署 服务 🚀', '🚀🚀 podman', '重新部署']],
  ])('mean the same beside operators: %s', async (query, expected) => {
    await say(
      'docker build',
      '用docker部署',
      '部署 服务 🚀',
      'dockerdocker docker 🚀',
      '🚀🚀 podman',
      '重新部署',
      'none',
    )
    expect(await found(query)).toEqual(expected)
    expect(await found(query, { orderBy: 'newest' })).toEqual(expected)
  })

  test('short forms find long ones', async () => {
    await say('カナ', 'ｶﾅ', 'かな', '배포', '배포했다', '배 포', '👍🏽', '👩‍💻 works')
    expect(await found('ｶﾅ')).toEqual(['カナ', 'ｶﾅ'])
    expect(await found('カナ')).toEqual(['カナ', 'ｶﾅ'])
    expect(await found('배포')).toEqual(['배포', '배포했다'])
    expect(await found('👍')).toEqual(['👍🏽'])
    expect(await found('👩‍💻')).toEqual(['👩‍💻 works'])
  })
})

describe.each(bothModes)('routes in $name', (kind) => {
  const { store, say, found } = prepare(kind.open)

  test('any mixture of terms finds what their texts say', async () => {
    const pieces = ['部署', '服务', '🚀', '배포', 'ครับ', 'カナ']
    const texts = Array.from({ length: 64 }, (_, bits) =>
      pieces.filter((_, index) => bits & (1 << index)).join(bits % 3 ? '' : ' '),
    )
    await say(...texts)
    const has = (piece: string) => (text: string) => text.includes(piece)
    for (const a of pieces)
      for (const b of pieces) {
        if (a === b) continue
        const c = pieces.find((piece) => piece !== a && piece !== b)!
        const expected: [string, (text: string) => boolean][] = [
          [`${a} ${b}`, (text) => has(a)(text) && has(b)(text)],
          [`${a} OR ${b}`, (text) => has(a)(text) || has(b)(text)],
          [`${a} NOT ${b}`, (text) => has(a)(text) && !has(b)(text)],
          [`${a} OR ${b} NOT ${c}`, (text) => has(a)(text) || (has(b)(text) && !has(c)(text))],
          [`${a} ${b} OR ${c}`, (text) => (has(a)(text) && has(b)(text)) || has(c)(text)],
          [`"${a}${b}"`, has(a + b)],
          [`"${a} ${b}"`, has(`${a} ${b}`)],
        ]
        for (const [query, holds] of expected) expect(await found(query), query).toEqual(texts.filter(holds))
      }
  })

  const pages = async (query: string, options: SearchOptions, by: 'after' | 'offset') => {
    const all: SearchHit[] = []
    for (;;) {
      const from = by === 'after' ? { after: all.at(-1) } : { offset: all.length }
      const page = await store().search.messages(query, { limit: 7, ...options, ...from })
      all.push(...page)
      if (page.length < 7) return all
    }
  }

  describe.each<[string, string, Partial<SearchHit>, SearchOptions?]>([
    ['words', 'docker', { route: 'words' }],
    ['several words', 'docker build', { route: 'words' }],
    ['words, newest first', 'docker', { route: 'words' }, { orderBy: 'newest' }],
    ['Chinese', '部署', { route: kind.additions ? 'unsegmented' : 'substring' }],
    ['Chinese and Latin', '部署 docker', { route: kind.additions ? 'unsegmented' : 'substring' }],
    ['Chinese and Latin that is no word', '部署 dock', { route: 'substring' }],
    ['Latin or Chinese', 'docker OR 部署', { route: kind.additions ? 'unsegmented' : 'substring' }],
    ['Latin without Chinese', 'docker NOT 重新', { route: 'substring' }],
    ['an emoji', '🚀', { route: 'substring' }],
    ['an emoji and a word', '🚀 docker', { route: 'substring' }],
    ['a part of a word', 'ocke', { route: 'substring' }],
    ['parts of words', 'ocke buil', { route: 'substring' }],
    ['some of the words', 'docker quokka wallaby', { route: 'words', matched: 'any' }],
    ['some, newest first', 'docker quokka', { route: 'words', matched: 'any' }, { orderBy: 'newest' }],
    ['a scan', 'docker', { route: 'substring' }, { scan: true }],
  ])('pages of %s add up', (_, query, how, options = {}) => {
    beforeEach(async () => {
      await say(
        ...Array.from({ length: 80 }, (_, index) =>
          index % 4 === 3
            ? `dockers rebuild 重新部署 🚀 ${index}`
            : `docker build ${'部署 🚀 '.repeat(1 + (index % 3))}`,
        ),
      )
    })

    test.each(['after', 'offset'] as const)('by %s', async (by) => {
      const all = await store().search.messages(query, { limit: 1_000, ...options })
      expect(all.length).toBeGreaterThanOrEqual(60)
      for (const hit of all) expect(hit).toMatchObject({ matched: 'all', ...how })
      const ids = (await pages(query, options, by)).map(({ id }) => id)
      expect(ids).toEqual(all.map(({ id }) => id))
    })
  })
})
