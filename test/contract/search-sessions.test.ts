import { beforeEach, describe, expect, test } from 'vitest'
import type { SearchSessionsOptions, StateStore } from '../../src/index.ts'
import { sql } from '../support/processes.ts'
import { bothModes, fileKinds, kinds, openForTest, rawRun } from '../support/stores.ts'

describe.each(bothModes)('search for sessions in $name', (kind) => {
  let store: StateStore
  beforeEach(async () => {
    store = await kind.open()
  })

  const create = async (id: string, title: string | null, ...contents: string[]) => {
    const source = id.split('-')[0]!
    await store.sessions.create({ id, source, model: 'm', started_at: 1000 })
    if (title !== null) await store.titles.set(id, title)
    await store.messages.appendMany(
      id,
      contents.map((content) => ({ role: 'user', content })),
    )
  }

  const found = async (query: string, options?: SearchSessionsOptions) =>
    (await store.search.sessions(query, options)).map(({ id, found_by }) => `${id} ${found_by}`)

  test('finds them by the beginning of an id, then by title, then by content', async () => {
    await create('cli-content', null, 'about docker-x here')
    await create('cli-title', 'How docker-x works', 'nothing')
    await create('docker-x1', null, 'nothing')
    await create('docker-x2', 'docker-x too', 'docker-x')
    await create('cli-none', 'Another', 'nothing')
    expect(await found('docker-x')).toEqual([
      'docker-x1 id',
      'docker-x2 id',
      'cli-title title',
      'cli-content content',
    ])
    expect(await found(' docker-x2 ')).toContain('docker-x2 id')
    expect(await found('quokka')).toEqual([])
  })

  test('short beginnings of ids are accidents, whole ids are not', async () => {
    await create('abc', null)
    await create('abcdef', null)
    expect(await found('abc')).toEqual(['abc id'])
    expect(await found('ab')).toEqual([])
    expect(await found('abcd')).toEqual(['abcdef id'])
  })

  test('returns one row a session, with its summary and its best message', async () => {
    await create(
      'cli-a',
      'Containers',
      'first words',
      `docker ${'long '.repeat(50)}`,
      'docker 容器',
      'docker 容器 too',
    )
    await create('cli-b', null, 'nothing')
    const best = (await store.search.messages('docker'))[0]
    expect(await store.search.sessions('docker')).toEqual([
      {
        ...(await store.sessions.list({ sources: ['cli'] })).find(({ id }) => id === 'cli-a'),
        found_by: 'content',
        hit: best,
      },
    ])
    expect(await store.search.sessions('容器')).toMatchObject([
      { id: 'cli-a', title: 'Containers', preview: 'first words', message_count: 4, hit: { id: 4 } },
    ])
  })

  test('sessions found by content come in the order of their best messages', async () => {
    await create('cli-a', null, `docker ${'long '.repeat(50)}`, 'x')
    await create('cli-b', null, 'docker', 'docker in a longer text')
    await create('cli-c', null, 'docker within some words')
    const ids = (await store.search.messages('docker')).map(({ session_id }) => session_id)
    expect(await found('docker')).toEqual([...new Set(ids)].map((id) => `${id} content`))
    expect(ids[0]).toBe('cli-b')
  })

  test('titles hold what a query means, in any script', async () => {
    await create('cli-a', 'Docker build failed')
    await create('cli-b', '部署服务 🚀')
    await create('cli-c', 'docker 部署')
    expect(await found('DOCKER')).toEqual(['cli-a title', 'cli-c title'])
    expect(await found('docker NOT build')).toEqual(['cli-c title'])
    expect(await found('部署')).toEqual(['cli-c title', 'cli-b title'])
    expect(await found('🚀 OR failed')).toEqual(['cli-a title', 'cli-b title'])
    expect(await found('"build docker"')).toEqual([])
    expect((await store.search.sessions('docker'))[0]?.hit).toBeNull()
  })

  test('a session that has several of these is there once, with its hit', async () => {
    await create('docker-1', 'docker-1 again', 'on docker-1')
    await create('cli-b', 'docker-1', 'say docker-1')
    const rows = await store.search.sessions('docker-1')
    expect(rows.map(({ id, found_by }) => `${id} ${found_by}`)).toEqual(['docker-1 id', 'cli-b title'])
    expect(rows.map(({ hit }) => hit?.session_id)).toEqual(['docker-1', 'cli-b'])
  })

  test('filters by source, whatever a session was found by', async () => {
    await create('docker-1', null, 'x')
    await create('cli-a', 'docker- one', 'x')
    await create('telegram-a', 'docker- two', 'x')
    await create('telegram-b', null, 'about docker- things')
    expect(await found('docker-')).toHaveLength(4)
    expect(await found('docker-', { sources: ['telegram'] })).toEqual([
      'telegram-a title',
      'telegram-b content',
    ])
    expect(await found('docker-', { excludeSources: ['telegram'] })).toEqual(['docker-1 id', 'cli-a title'])
    expect(await found('docker-', { sources: [] })).toEqual([])
  })

  test('fills its limit with sessions of the sources asked for', async () => {
    for (let index = 0; index < 4; index++) {
      await create(`docker-${index}`, null, 'x')
      await create(`web-${index}`, `docker- ${index}`, 'x')
    }
    await create('cli-a', 'zz docker-', 'x')
    await create('cli-b', null, 'on docker-')
    const own = { sources: ['cli'] }
    expect(await found('docker-', { ...own, limit: 2 })).toEqual(['cli-a title', 'cli-b content'])
    expect(await found('docker-', { ...own, limit: 1 })).toEqual(['cli-a title'])
  })

  test('takes a limit', async () => {
    for (let index = 0; index < 30; index++) await create(`cli-${index}`, null, `docker ${index}`, 'docker')
    expect(await found('docker')).toHaveLength(20)
    expect(await found('docker', { limit: 25 })).toHaveLength(25)
    expect(await found('docker', { limit: 1_000 })).toHaveLength(30)
    expect(await found('docker', { limit: 0 })).toEqual([])
    for (const limit of [-1, 1.5, '5', Number.NaN])
      await expect(found('docker', { limit: limit as number })).rejects.toThrow(TypeError)
  })

  test('a hit does not depend on the limit', async () => {
    await create('docker-1', null, 'on docker-1')
    await create('cli-a', 'A docker-1', 'on docker-1')
    await create('cli-b', 'B docker-1', 'on docker-1')
    for (const limit of [1, 2, 3, 4])
      for (const { id, hit } of await store.search.sessions('docker-1', { limit }))
        expect(hit?.session_id, `${id}, limit ${limit}`).toBe(id)
  })

  test.each(['docker', '容器'])('one long session does not hide the others for %s', async (query) => {
    await create('cli-small', null, `a docker 容器 ${'long '.repeat(50)}`)
    await create('cli-long', null, ...Array<string>(1_100).fill('docker 容器'))
    expect(await found(query)).toEqual(['cli-long content', 'cli-small content'])
  })

  test('has the marks that were asked for', async () => {
    await create('cli-a', null, 'docker 容器')
    for (const query of ['docker', '容器'])
      expect((await store.search.sessions(query, { marks: ['[', ']'] }))[0]?.hit?.snippet).toContain(
        `[${query}]`,
      )
  })

  test.each(['', ' ', '"', '***'])('%j finds none', async (query) => {
    await create('cli-a', 'x', 'x')
    expect(await store.search.sessions(query)).toEqual([])
  })

  describe('around a message', () => {
    beforeEach(async () => {
      await create('cli-a', null)
      await create('cli-b', null)
      for (let index = 1; index <= 30; index++) {
        await store.messages.append('cli-a', { role: 'user', content: `a${index}` })
        await store.messages.append('cli-b', { role: 'user', content: `b${index}` })
      }
    })

    const around = async (content: string, options?: { before?: number; after?: number; ends?: number }) => {
      const [hit] = await store.search.messages(content)
      const found = await store.search.around(hit!.id, options)
      const contents = (messages: { content: unknown }[]) =>
        messages.map((message) => message.content).join(' ')
      return {
        session_id: found?.session_id,
        messages: contents(found!.messages),
        first: contents(found!.first),
        last: contents(found!.last),
      }
    }

    test('are its neighbours and the ends of its session', async () => {
      expect(await around('a15', { before: 2, after: 3 })).toEqual({
        session_id: 'cli-a',
        messages: 'a13 a14 a15 a16 a17 a18',
        first: 'a1 a2',
        last: 'a29 a30',
      })
      const { messages } = await around('b15')
      expect(messages.split(' ')).toEqual(Array.from({ length: 21 }, (_, index) => `b${5 + index}`))
    })

    test('the ends are not repeated where they are neighbours', async () => {
      expect(await around('a3', { before: 1, after: 1 })).toMatchObject({ messages: 'a2 a3 a4', first: 'a1' })
      expect(await around('a1', { before: 5, after: 1 })).toMatchObject({ messages: 'a1 a2', first: '' })
      expect(await around('a30', { before: 1, after: 5 })).toMatchObject({ messages: 'a29 a30', last: '' })
      expect(await around('a28', { before: 0, after: 1, ends: 3 })).toMatchObject({ last: 'a30' })
      expect(await around('a15', { before: 0, after: 0, ends: 0 })).toMatchObject({
        messages: 'a15',
        first: '',
        last: '',
      })
      expect(await around('a15', { before: 50, after: 50, ends: 5 })).toMatchObject({ first: '', last: '' })
    })

    test('are whole messages', async () => {
      const [hit] = await store.search.messages('a7')
      const found = await store.search.around(hit!.id, { before: 0, after: 0, ends: 0 })
      expect(found?.messages).toEqual([await store.messages.get(hit!.id)])
    })

    test('a missing message has none, and options are counts', async () => {
      for (const id of [0, 9_999, Number.MAX_SAFE_INTEGER]) expect(await store.search.around(id)).toBeNull()
      for (const id of [-1, 1.5, '1', null, undefined])
        await expect(store.search.around(id as number)).rejects.toThrow(TypeError)
      for (const name of ['before', 'after', 'ends'])
        await expect(store.search.around(1, { [name]: -1 })).rejects.toThrow(TypeError)
    })
  })
})

const INSERT = "insert into messages (id, session_id, role, content, timestamp) values (?, 's', 'user', ?, 1)"

describe.each(kinds)('what others write to $name', (kind) => {
  let store: StateStore
  beforeEach(async () => {
    store = await kind.open()
    await store.sessions.create({ id: 's', source: 'cli' })
  })

  const ids = async (query: string) =>
    (await store.search.messages(query, { limit: 1_000, orderBy: 'newest' })).map(({ id }) => id)

  /** Each of these is in every text `docker 容器 🚀 x`. */
  const QUERIES = ['docker', '容器', '🚀', '容器 docker', 'ocker', '器']

  test('is found and no longer found as rows come and go', async () => {
    await store.messages.append('s', { role: 'user', content: 'nothing' })
    await rawRun(store, INSERT, 100, 'docker 容器 🚀')
    for (const query of QUERIES) expect(await ids(query), query).toEqual([100])
    await rawRun(store, "update messages set content = 'podman 镜像 🎯' where id = 100")
    for (const query of QUERIES) expect(await ids(query), query).toEqual([])
    for (const query of ['podman', '镜像', '🎯']) expect(await ids(query), query).toEqual([100])
    await rawRun(store, 'delete from messages where id = 100')
    for (const query of ['podman', '镜像', '🎯', ...QUERIES]) expect(await ids(query), query).toEqual([])
  })

  test('is found in any order of ids, between writes of this package', async () => {
    await rawRun(store, INSERT, 500, 'docker 容器 🚀')
    await rawRun(store, INSERT, 30, 'docker 容器 🚀')
    const own = await store.messages.append('s', { role: 'user', content: 'docker 容器 🚀' })
    for (const query of QUERIES) expect(await ids(query), query).toEqual([own, 500, 30])
    await rawRun(store, INSERT, 20, 'docker 容器 🚀')
    await rawRun(store, INSERT, 700, 'docker 容器 🚀')
    const last = await store.messages.append('s', { role: 'user', content: 'docker 容器 🚀' })
    for (const query of QUERIES) expect(await ids(query), query).toEqual([last, 700, own, 500, 30, 20])
  })

  test('is found under another id', async () => {
    const id = await store.messages.append('s', { role: 'user', content: 'docker 容器 🚀' })
    expect(await ids('容器')).toEqual([id])
    await rawRun(store, 'update messages set id = 900 where id = ?', id)
    for (const query of QUERIES) expect(await ids(query), query).toEqual([900])
    await rawRun(store, 'update messages set id = 15 where id = 900')
    for (const query of QUERIES) expect(await ids(query), query).toEqual([15])
  })

  test('is found when it replaces what was there', async () => {
    const id = await store.messages.append('s', { role: 'user', content: 'podman 镜像 🎯' })
    expect(await ids('镜像')).toEqual([id])
    await rawRun(store, INSERT.replace('insert', 'insert or replace'), id, 'docker 容器 🚀')
    for (const query of QUERIES) expect(await ids(query), query).toEqual([id])
    // The word index keeps what such a statement takes away: see docs/file-format.md.
    for (const query of ['镜像', '🎯', '镜像 podman']) expect(await ids(query), query).toEqual([])
  })

  test('is found in tool calls', async () => {
    const id = await store.messages.append('s', { role: 'assistant', content: 'x' })
    expect(await ids('容器')).toEqual([])
    const calls = JSON.stringify([{ function: { name: 'docker', arguments: '{"q":"容器 🚀"}' } }])
    await rawRun(store, 'update messages set tool_calls = ? where id = ?', calls, id)
    for (const query of QUERIES) expect(await ids(query), query).toEqual([id])
    await rawRun(store, 'update messages set tool_calls = null where id = ?', id)
    for (const query of QUERIES) expect(await ids(query), query).toEqual([])
  })

  test('is found however much it is', async () => {
    await rawRun(
      store,
      `insert into messages (session_id, role, content, timestamp)
       with recursive n(i) as (select 1 union all select i + 1 from n where i < 1200)
       select 's', 'user', iif(i % 4, 'docker 容器 🚀', 'nothing'), 1 from n`,
    )
    for (const query of ['容器', 'docker', '🚀']) expect(await ids(query), query).toHaveLength(900)
  })

  test('is found inside a transaction', async () => {
    await rawRun(store, INSERT, 100, 'docker 容器 🚀')
    await store.transaction(async (tx) => {
      for (const query of QUERIES) expect(await tx.search.messages(query), query).toMatchObject([{ id: 100 }])
    })
  })
})

describe.each(fileKinds)('in a read-only store of $name', (kind) => {
  test('what others write is found, though nothing can be indexed', async () => {
    const store = await kind.open()
    await store.sessions.create({ id: 's', source: 'cli' })
    const first = await store.messages.append('s', { role: 'user', content: 'docker 容器 🚀 old' })
    const changed = await store.messages.append('s', { role: 'user', content: 'podman 镜像' })
    const removed = await store.messages.append('s', { role: 'user', content: 'docker 容器 🚀' })
    await store.close()
    const { path } = store.info
    const readonly = await openForTest({ path, readonly: true })
    sql(path, INSERT, 500, 'docker 容器 🚀')
    sql(path, INSERT, 50, 'docker 容器 🚀')
    sql(path, "update messages set content = 'docker 容器 🚀' where id = ?", changed)
    sql(path, 'delete from messages where id = ?', removed)
    for (const query of ['docker', '容器', '🚀', '容器 docker', 'ocker', '器']) {
      const hits = await readonly.search.messages(query, { orderBy: 'newest' })
      expect(
        hits.map(({ id }) => id),
        query,
      ).toEqual([500, 50, changed, first])
    }
    for (const query of ['podman', '镜像']) expect(await readonly.search.messages(query), query).toEqual([])
    const [newest] = await readonly.search.messages('容器', { limit: 1 })
    const rest = await readonly.search.messages('容器', { after: newest })
    expect(rest.map(({ id }) => id)).toEqual([50, changed, first])
    expect(await readonly.search.sessions('容器')).toMatchObject([{ id: 's', hit: { id: 500 } }])
  })
})
