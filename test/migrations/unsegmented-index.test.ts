import { beforeEach, describe, expect, test } from 'vitest'
import type { StateStore } from '../../src/index.ts'
import { bigramPhrase } from '../../src/search/bigrams.ts'
import { change, expectIndexesSound, matching, query } from '../support/index-damage.ts'
import { startSql } from '../support/processes.ts'
import { eventsOf, newPath, openForTest } from '../support/stores.ts'

let path: string
let store: StateStore

beforeEach(async () => {
  path = newPath()
  store = await openForTest({ path })
  await store.sessions.create({ id: 's', source: 'cli' })
})

const say = (...contents: string[]) =>
  store.messages.appendMany(
    's',
    contents.map((content) => ({ role: 'user', content })),
  )
const insertion = (content: string, id: number | null = null) =>
  `insert into messages (id, session_id, role, content, timestamp) values (${id}, 's', 'user', '${content}', 1)`
const indexed = (run: string) => matching(path, 'hs_bigrams', bigramPhrase(run))
const state = () => ({
  watermark: query<number>(path, 'select watermark from hs_bigrams_state')[0],
  pending: query<number>(path, 'select message_id from hs_bigrams_pending order by 1'),
})
const ids = async (text: string, asked = store) =>
  (await asked.search.messages(text, { limit: 10_000 })).map(({ id }) => id).sort((a, b) => a - b)

describe('the watermark', () => {
  test('follows what the store appends', async () => {
    expect(state()).toEqual({ watermark: 0, pending: [] })
    await say('海象', 'walrus', '海豹')
    expect(state()).toEqual({ watermark: 3, pending: [] })
    await store.messages.append('s', { role: 'user', content: '海獭' })
    expect(state()).toEqual({ watermark: 4, pending: [] })
    expect(indexed('海')).toEqual([1, 3, 4])
    expect(indexed('海象')).toEqual([1])
    expect(query(path, 'select id from hs_bigrams_docsize order by 1')).toEqual([1, 3, 4])
  })

  test('stays below what others have inserted, until a search', async () => {
    await say('海象')
    change(path, insertion('海象 theirs'))
    expect(state()).toEqual({ watermark: 1, pending: [] })
    await say('海象 ours', '海象 too')
    expect(state()).toEqual({ watermark: 1, pending: [] })
    expect(indexed('海象')).toEqual([1])
    expect(await ids('海象')).toEqual([1, 2, 3, 4])
    expect(state()).toEqual({ watermark: 4, pending: [] })
    expect(indexed('海象')).toEqual([1, 2, 3, 4])
  })

  test('is not waited for by a search that only asks the word index', async () => {
    change(path, insertion('walrus 海象'))
    expect(await ids('walrus')).toEqual([1])
    expect(state()).toEqual({ watermark: 0, pending: [] })
  })
})

describe('what is pending', () => {
  beforeEach(() => say('海象 one', '海象 two', '海象 three', 'four'))

  test.each([
    ['an update', "update messages set content = '海豹' where id = 2", [2]],
    ['an update of the name of the tool', "update messages set tool_name = '海豹' where id = 2", [2]],
    ['an update of the role', "update messages set role = 'tool' where id = 2", [2]],
    ['an update to the same', 'update messages set content = content', []],
    ['an update of another column', 'update messages set token_count = 7', []],
    ['a deletion', 'delete from messages where id in (1, 3)', [1, 3]],
    ['another id', 'update messages set id = 9 where id = 2', [2]],
    ['an id that is taken again', `delete from messages where id = 2; ${insertion('海豹', 2)}`, [2]],
    ['an id that was never given', insertion('海豹', -5), [-5]],
    ['an insertion above the watermark', insertion('海豹'), []],
  ])('%s: ids up to the watermark, until a search', async (_, change_, pending) => {
    change(path, change_)
    expect(state()).toEqual({ watermark: 4, pending })
    for (const text of ['海象', '海豹'])
      expect(await ids(text)).toEqual(
        query(
          path,
          `select id from messages where instr(content, '${text}') or instr(tool_name, '${text}') order by id`,
        ),
      )
    expect(state()).toMatchObject({ pending: [] })
    expect([indexed('海象'), indexed('海豹')]).toEqual([await ids('海象'), await ids('海豹')])
    expectIndexesSound(path)
  })

  test('an update above the watermark is not', async () => {
    change(path, `${insertion('海象 five')}; update messages set content = '海豹 five' where id = 5`)
    expect(state()).toEqual({ watermark: 4, pending: [] })
    expect(await ids('海豹')).toEqual([5])
    expect(await ids('海象')).toEqual([1, 2, 3])
  })

  test('is what the store deletes and replaces', async () => {
    await store.messages.replaceAll('s', [{ role: 'user', content: '海豹' }])
    expect(state().pending).toEqual([1, 2, 3, 4])
    expect(await ids('海象')).toEqual([])
    expect(await ids('海豹')).toEqual([5])
    expect(indexed('海')).toEqual([5])
    await store.sessions.delete('s')
    expect(await ids('海豹')).toEqual([])
    expect(indexed('海')).toEqual([])
  })
})

test('a search catches up on thousands of messages, page by page too', async () => {
  await say('海象')
  change(
    path,
    `insert into messages (session_id, role, content, timestamp)
     with recursive n(i) as (select 2 union all select i + 1 from n where i < 3000)
     select 's', 'user', '海象 ' || i, i from n;
     update messages set content = '海豹' where id = 1;
     delete from messages where id % 100 = 0`,
  )
  const there = query(path, "select id from messages where instr(content, '海象') order by id")
  expect(await ids('海象')).toEqual(there)
  expect(indexed('海象')).toEqual(there)
  expect(indexed('海豹')).toEqual([1])
  expect(state()).toEqual({ watermark: 2999, pending: [] })
})

test('a store that only reads finds what waits to be indexed', async () => {
  await say('海象 one', '海象 two', '海豹 three')
  change(
    path,
    `${insertion('海象 four')}; ${insertion('海象 five')};
     update messages set content = '海象 three' where id = 3; update messages set content = '海豹' where id = 1;
     delete from messages where id = 2`,
  )
  const before = state()
  expect(before).toEqual({ watermark: 3, pending: [1, 2, 3] })
  await store.close()
  const reader = await openForTest({ path, readonly: true })
  expect(await ids('海象', reader)).toEqual([3, 4, 5])
  expect(await ids('海豹', reader)).toEqual([1])
  const [newest] = await reader.search.messages('海象', { limit: 1 })
  expect(newest).toMatchObject({ id: 5, route: 'unsegmented' })
  expect((await reader.search.messages('海象', { limit: 5, after: newest })).map(({ id }) => id)).toEqual([
    4, 3,
  ])
  expect(state()).toEqual(before)
  expect(eventsOf(reader, 'word-index-unused')).toEqual([])
})

test('four writers at once lose nothing', async () => {
  const other = await openForTest({ path })
  const programs = await Promise.all([startSql(path), startSql(path)])
  const ROUNDS = 60
  const ours = async (writer: StateStore, name: string) => {
    for (let n = 0; n < ROUNDS; n++) {
      await writer.messages.append('s', { role: 'user', content: `海象 ${name} ${n}` })
      if (n % 10 === 0) await writer.search.messages('海象')
      if (n % 15 === 0)
        await writer.messages.appendMany(
          's',
          [1, 2, 3].map((m) => ({ role: 'user', content: `海獭 ${name} ${n} ${m}` })),
        )
    }
  }
  const theirs = async (program: (typeof programs)[number], name: string) => {
    for (let n = 0; n < ROUNDS; n++) {
      await program.ask(insertion(`海象 ${name} ${n}`))
      const some = `(select id from messages where id % 7 = ${n % 7} order by id desc limit 1)`
      if (n % 5 === 0)
        await program.ask(`update messages set content = '海豹 ${name} ${n}' where id = ${some}`)
      if (n % 5 === 2) await program.ask(`delete from messages where id = ${some}`)
    }
  }
  await Promise.all([
    ours(store, 'one'),
    ours(other, 'two'),
    theirs(programs[0]!, 'three'),
    theirs(programs[1]!, 'four'),
  ])
  for (const asked of [store, other])
    for (const text of ['海象', '海豹', '海獭', '象', '海'])
      expect(await ids(text, asked)).toEqual(
        query(path, `select id from messages where instr(content, '${text}') order by id`),
      )
  for (const text of ['海象', '海豹', '海獭', '海']) expect(indexed(text)).toEqual(await ids(text))
  expect(state()).toEqual({ watermark: query(path, 'select max(id) from messages')[0], pending: [] })
  expectIndexesSound(path)
})
