import { setImmediate as nextTick } from 'node:timers/promises'
import Database from 'better-sqlite3'
import { beforeEach, describe, expect, test } from 'vitest'
import { Connection } from '../../src/database/connection.ts'
import { migrate } from '../../src/database/migrator.ts'
import type { StateStore } from '../../src/index.ts'
import { type SearchedRow, searched } from '../../src/search/projection.ts'
import { writeHermesFile } from '../support/hermes-file.ts'
import { change, expectIndexesSound, indexBytes, matching, query } from '../support/index-damage.ts'
import { start } from '../support/processes.ts'
import { newPath, openForTest } from '../support/stores.ts'

const TEXT_LIMIT = 8_192
const found = (path: string, match: string) => matching(path, 'messages_fts', match)

async function migrateTo(path: string, target: string): Promise<void> {
  const db = new Database(path)
  try {
    await migrate(new Connection(db, () => {}), { additions: true, target, busyTimeout: 1_000 })
  } finally {
    db.close()
  }
}

describe('what the word index holds', () => {
  let path: string
  let store: StateStore

  beforeEach(async () => {
    path = newPath()
    store = await openForTest({ path })
    await store.sessions.create({ id: 's', source: 'cli' })
  })

  /** Writes a message as another program would. Returns its id. */
  const insert = (row: Record<string, unknown>): number => {
    const db = new Database(path)
    try {
      const values = { session_id: 's', role: 'user', timestamp: 1, ...row }
      const columns = Object.keys(values)
      return Number(
        db
          .prepare(`insert into messages (${columns}) values (${columns.map((name) => `@${name}`)})`)
          .run(values).lastInsertRowid,
      )
    } finally {
      db.close()
    }
  }

  test.each([
    ['of words', 'x '.repeat(TEXT_LIMIT / 2 - 3)],
    ['of characters beyond 16 bits', `${'🦭'.repeat(TEXT_LIMIT - 7)} `],
  ])('the first 8,192 characters of a result of a tool, %s', async (_, filling) => {
    const content = `${filling}inside beyond`
    const tool = insert({ role: 'tool', content })
    const user = insert({ role: 'user', content })
    expect(found(path, 'inside')).toEqual([tool, user])
    expect(found(path, 'beyond')).toEqual([user])
    expect((await store.search.messages('beyond')).map(({ id }) => id)).toEqual([user])
    expect((await store.search.messages('beyond', { scan: true })).map(({ id }) => id)).toEqual([user, tool])
    expectIndexesSound(path)
  })

  test('no text after `;base64,`', async () => {
    const id = insert({ content: 'look data:image/png;base64,iVBORw0KGgo walrus' })
    expect(found(path, 'look')).toEqual([id])
    expect(found(path, 'base64')).toEqual([id])
    expect(found(path, 'iVBORw0KGgo')).toEqual([])
    expect(found(path, 'walrus')).toEqual([])
    expectIndexesSound(path)
  })

  test('the structured content of Hermes', async () => {
    const id = insert({ content: '\0json:[{"type":"text","text":"walrus on ice"},{"type":"image_url"}]' })
    expect(found(path, 'walrus')).toEqual([id])
    expect((await store.search.messages('walrus')).map((hit) => hit.id)).toEqual([id])
    change(path, `update messages set content = char(0) || 'json:["otter"]' where id = ${id}`)
    expect(found(path, 'walrus')).toEqual([])
    expect(found(path, 'otter')).toEqual([id])
    expectIndexesSound(path)
  })

  test('BLOBs as text, also long ones', async () => {
    const id = insert({
      role: 'tool',
      content: Buffer.from(`${'x '.repeat(TEXT_LIMIT / 2 - 3)}inside beyond`),
    })
    const json = insert({ content: Buffer.from('\0json:["otter"]') })
    expect(found(path, 'inside')).toEqual([id])
    expect(found(path, 'beyond')).toEqual([])
    expect(found(path, 'otter')).toEqual([json])
    change(
      path,
      `update messages set content = 'text' where id = ${id}; delete from messages where id = ${json}`,
    )
    expect(found(path, 'inside OR otter')).toEqual([])
    expectIndexesSound(path)
  })

  test('tool calls without escapes and quotes, and names of tools', async () => {
    const args = JSON.stringify({ command: 'first\nsecond\tthird\r\nfourth "fifth"' })
    const tool_calls = JSON.stringify([
      { id: 'c', type: 'function', function: { name: 'shell', arguments: args } },
    ])
    const id = insert({ role: 'assistant', tool_calls, tool_name: 'census' })
    for (const word of ['first', 'second', 'third', 'fourth', 'fifth', 'shell', 'census', 'command'])
      expect({ word, ids: found(path, word) }).toEqual({ word, ids: [id] })
    expectIndexesSound(path)
  })

  test('what searches by reading look at too', async () => {
    for (const role of ['user', 'tool'])
      for (const content of [
        null,
        '',
        'plain 海象',
        'a;base64,b;base64,c',
        `${'é🦭'.repeat(TEXT_LIMIT)}`,
        `${'x'.repeat(TEXT_LIMIT)};base64,tail`,
        'bell \u0007 and \u2028 lines\r\n',
      ])
        insert({ role, content, tool_name: content === '' ? 'look' : null, tool_calls: '{"a":"b\\nc"}' })
    const db = new Database(path, { readonly: true })
    const rows = db
      .prepare(`
        select m.role, m.content, m.tool_name, m.tool_calls, t.content as text, t.tool_name as name, t.tool_calls as calls
        from messages as m join hs_message_text as t using (id)`)
      .all() as (SearchedRow & Record<'text' | 'name' | 'calls', string | null>)[]
    db.close()
    expect(rows).toHaveLength(14)
    for (const { text, name, calls, ...row } of rows)
      expect({ content: text ?? '', tool_name: name ?? '', tool_calls: calls ?? '' }).toEqual(searched(row))
  })

  test('words with and without their accents', async () => {
    const id = await store.messages.append('s', { role: 'user', content: 'tiếng Việt' })
    for (const text of ['tieng viet', 'tiếng việt', 'TIENG', 'ti\u00eang'])
      expect(await store.search.messages(text)).toMatchObject([{ id, route: 'words' }])
  })

  test.each([
    ['words', 'walrus '.repeat(1_500_000)],
    ['one word', 'x'.repeat(10_000_000)],
    ['base64', `data:image/png;base64,${'iVBORw0KGgo/'.repeat(850_000)}`],
    ['words of other scripts', '海象 '.repeat(2_500_000)],
    ['words behind a NUL', `a\0${'many different words '.repeat(500_000)}`],
  ])('less than 50 kB of a tool result of 10 MB: %s', async (_, content) => {
    const before = indexBytes(path, 'messages_fts') + indexBytes(path, 'hs_bigrams')
    await store.messages.append('s', { role: 'tool', content, tool_name: 'look' })
    expect(indexBytes(path, 'messages_fts') + indexBytes(path, 'hs_bigrams') - before).toBeLessThan(50_000)
    expectIndexesSound(path)
  })

  test('always what the messages are', async () => {
    const id = insert({ content: 'walrus', tool_name: 'look', tool_calls: '[]' })
    const tool = insert({ role: 'user', content: `${'x '.repeat(TEXT_LIMIT)}otter` })
    for (const set of [
      `content = 'seal'`,
      'content = null',
      `content = 'beaver'`,
      `tool_name = 'census'`,
      'tool_name = null',
      `tool_calls = '[{"name":"count"}]'`,
      'tool_calls = null',
      `role = 'tool'`,
      `id = ${id + 100}`,
    ]) {
      change(path, `update messages set ${set} where id = ${id}`)
      expectIndexesSound(path)
    }
    expect(found(path, 'beaver')).toEqual([id + 100])
    expect(found(path, 'walrus OR seal OR look OR census OR count')).toEqual([])
    expect(found(path, 'otter')).toEqual([tool])
    change(path, `update messages set role = 'tool' where id = ${tool}`)
    expect(found(path, 'otter')).toEqual([])
    expectIndexesSound(path)
    change(path, 'delete from messages')
    expect(found(path, 'beaver OR seal')).toEqual([])
    expectIndexesSound(path)
  })

  test('as it was, when something else of a message changes', async () => {
    const id = insert({ content: 'walrus 海象' })
    await store.search.messages('海象')
    const blocks = () => query(path, 'select id || hex(block) from messages_fts_data order by id')
    const before = blocks()
    for (const set of ['token_count = 5', `finish_reason = 'stop'`, `reasoning = 'why'`, 'content = content'])
      change(path, `update messages set ${set} where id = ${id}`)
    expect(blocks()).toEqual(before)
    expect(query(path, 'select count(*) from hs_bigrams_pending')).toEqual([0])
  })
})

describe('a file of 21,000 messages', () => {
  const COUNT = 21_000
  let path: string

  beforeEach(() => {
    path = newPath()
    writeHermesFile(path, 6)
    change(
      path,
      `insert into messages (session_id, role, content, timestamp)
       with recursive n(i) as (select 6 union all select i + 1 from n where i < ${COUNT})
       select 'gamma', 'user', 'seal number ' || i || ' 海豹', 4000 + i from n`,
    )
  })

  const progress = () =>
    query(path, "select 1 from sqlite_schema where name = 'hs_words_progress'").length > 0
      ? query<number>(path, 'select done from hs_words_progress')[0]
      : undefined

  const expectWhole = async (store: StateStore) => {
    expect(store.info.wordIndexProblem).toBeNull()
    expectIndexesSound(path)
    expect(query(path, "select name from sqlite_schema where name glob 'hs_words*'")).toEqual([])
    expect(await store.search.messages('20999')).toMatchObject([{ id: 20_999, route: 'words' }])
    expect(await store.search.messages('海象')).toMatchObject([{ id: 4, route: 'unsegmented' }])
    expect((await store.search.messages('walrus')).map(({ id }) => id).sort()).toEqual([1, 3])
    expect(query(path, 'select count(*) from hs_bigrams_docsize')).toEqual(
      query(path, `select count(*) from messages where content glob '*海*'`),
    )
  }

  /** Writes around the last message that is indexed; false where the lock is taken. */
  const changed = (done: number): boolean => {
    try {
      change(
        path,
        `begin immediate;
         update messages set content = content || ' touched' where id in (7, ${done}, ${done + 1}, 20500);
         delete from messages where id in (${done + 2}, ${Math.max(done - 2, 10)});
         insert into messages (session_id, role, content, timestamp) values ('gamma', 'user', 'late ${done}', 1);
         commit`,
      )
      return true
    } catch {
      return false
    }
  }

  test('gets the index in chunks, while others write', async () => {
    const seen = new Set<number>()
    let opened = false
    const opening = openForTest({ path }).finally(() => {
      opened = true
    })
    while (!opened) {
      const done = progress()
      if (done !== undefined && !seen.has(done) && changed(done)) seen.add(done)
      await nextTick()
    }
    const store = await opening
    expect(seen.size).toBeGreaterThan(3)
    expect(store.info.migrations).toEqual(expect.arrayContaining(['010_word_index', '011_unsegmented_index']))
    await expectWhole(store)
    expect(found(path, 'late')).toHaveLength(seen.size)
  })

  test('gets the rest of it by the next opening, and is searched by reading till then', async () => {
    const giveUp = new AbortController()
    const opening = openForTest({ path, signal: giveUp.signal }).catch((error) => error)
    while ((progress() ?? 0) < 6_000) await nextTick()
    giveUp.abort()
    expect((await opening).name).toBe('AbortError')
    change(
      path,
      `update messages set content = 'lynx' where id in (100, 20000);
       delete from messages where id in (101, 20001);
       insert into messages (session_id, role, content, timestamp) values ('gamma', 'user', 'lynx', 1)`,
    )
    const reader = await openForTest({ path, readonly: true })
    expect(reader.info.wordIndexProblem).toBe('is being made anew')
    expect((await reader.search.messages('lynx')).map(({ id }) => id)).toEqual([COUNT + 1, 20_000, 100])

    const opener = await start('opener.mjs')
    opener.send('go')
    expect(JSON.parse(await opener.ask(path, 'opened')).mended).toContain('word index (it was half made)')
    expect(found(path, 'lynx')).toEqual([100, 20_000, COUNT + 1])
    expect((await reader.search.messages('lynx')).map(({ route }) => route)).toEqual([
      'words',
      'words',
      'words',
    ])
    await reader.close()
    await expectWhole(await openForTest({ path }))
  })

  test('goes down to 009 and up again', async () => {
    await (await openForTest({ path })).close()
    await migrateTo(path, '009_session_activity')
    expect(
      query(path, "select name from sqlite_schema where name glob 'hs_b*' or name = 'hs_message_text'"),
    ).toEqual([])
    expectIndexesSound(path)
    expect(found(path, 'walrus')).toEqual([1, 3])
    const store = await openForTest({ path })
    expect(store.info.migrations).toEqual(['010_word_index', '011_unsegmented_index', '012_client_ids'])
    await expectWhole(store)
  })
})
