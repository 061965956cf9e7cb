import { spawnSync } from 'node:child_process'
import Database from 'better-sqlite3'
import fc from 'fast-check'
import { CompiledQuery } from 'kysely'
import { beforeEach, describe, expect, test } from 'vitest'
import { listedPages, readSources, type SessionOrder } from '../../src/database/session-pages.ts'
import type { ListSessionsOptions, NewSession, SessionSummary, StateStore } from '../../src/index.ts'
import { pythonSqlite } from '../support/processes.ts'
import { eventsOf, kinds, newPath, openForTest, rawRow, rawRows, rawRun } from '../support/stores.ts'

/** A session as the tests put it into a file, and what they remember of it. */
interface Known {
  id: string
  source: string
  parent: string | null
  started_at: number
  messages: { role: string; content: string | null; timestamp: number }[]
}

/** Contents, and what a preview makes of them: null where there is nothing to see. */
const previews = new Map<string | null, string | null>([
  [null, null],
  ['', null],
  [' \r\n\t\u3000', null],
  ['hello', 'hello'],
  ['a\r\nb', 'a b'],
  ['x\u2028y\u2029z', 'x y z'],
  ['🚀'.repeat(60), '🚀'.repeat(60)],
  [`${'🚀'.repeat(59)}é!`, `${'🚀'.repeat(59)}é...`],
  ['\n\n padded ', 'padded'],
])

/** UTF-8 orders like code points; JavaScript's `<` does not. */
const compareText = (a: string, b: string) => Buffer.compare(Buffer.from(a), Buffer.from(b))

function lastActive({ messages, started_at }: Known): number {
  return messages.length === 0 ? started_at : Math.max(...messages.map(({ timestamp }) => timestamp))
}

function preview({ messages }: Known): string {
  for (const { role, content } of messages) {
    const shown = role === 'user' ? previews.get(content) : null
    if (shown) return shown
  }
  return ''
}

/** The whole list, computed the slow and obvious way. */
function naive(sessions: Known[], options: ListSessionsOptions): Known[] {
  const { source, sources, excludeSources, show, orderBy } = options
  const time = orderBy === 'lastActive' ? lastActive : ({ started_at }: Known) => started_at
  return sessions
    .filter(
      (session) =>
        (source === undefined || session.source === source) &&
        (sources === undefined || sources.includes(session.source)) &&
        !excludeSources?.includes(session.source) &&
        (show !== 'roots' || session.parent === null),
    )
    .sort((a, b) => time(b) - time(a) || compareText(b.id, a.id))
}

const summarised = (sessions: SessionSummary[]) =>
  sessions.map(({ id, source, parent_session_id, started_at, last_active, preview, message_count }) => ({
    id,
    source,
    parent_session_id,
    started_at,
    last_active,
    preview,
    message_count,
  }))

const expected = (sessions: Known[]) =>
  sessions.map((session) => ({
    id: session.id,
    source: session.source,
    parent_session_id: session.parent,
    started_at: session.started_at,
    last_active: lastActive(session),
    preview: preview(session),
    message_count: 0,
  }))

/** Puts sessions into the file as another program would, instead of those that are there. */
async function fill(store: StateStore, sessions: Known[]): Promise<void> {
  await rawRun(store, 'delete from messages')
  await rawRun(store, 'delete from sessions')
  await rawRun(
    store,
    `insert into sessions (id, source, parent_session_id, started_at)
     select value ->> 'id', value ->> 'source', value ->> 'parent', value ->> 'started_at' from json_each(?)`,
    JSON.stringify(sessions),
  )
  await rawRun(
    store,
    `insert into messages (session_id, role, content, timestamp)
     select value ->> 'session_id', value ->> 'role', value ->> 'content', value ->> 'timestamp' from json_each(?)
     order by key`,
    JSON.stringify(sessions.flatMap(({ id, messages }) => messages.map((m) => ({ session_id: id, ...m })))),
  )
}

const SOURCES = ['cli', 'CLI', 'telegram', '', 'c%i', 'ünï', "it's", 'nul\0']

// Few times, so that many are equal.
const time = fc.constantFrom(0, 1000, 1000.25, 2000, 1_700_000_000.125)

const anySessions: fc.Arbitrary<Known[]> = fc
  .uniqueArray(
    fc.record({
      id: fc.string({
        unit: fc.constantFrom('a', 'B', 'ä', '\uffff', '🚀', '%', '_', "'"),
        minLength: 1,
        maxLength: 4,
      }),
      source: fc.constantFrom(...SOURCES),
      parent: fc.option(fc.nat(), { freq: 2 }),
      started_at: time,
      messages: fc.array(
        fc.record({
          role: fc.constantFrom('user', 'user', 'assistant'),
          content: fc.constantFrom(...previews.keys()),
          timestamp: time,
        }),
        { maxLength: 3 },
      ),
    }),
    { selector: ({ id }) => id, maxLength: 25, size: 'max' },
  )
  .map((sessions) =>
    sessions.map((session) => ({
      ...session,
      parent: session.parent === null ? null : sessions[session.parent % sessions.length]!.id,
    })),
  )

const someSources = fc.option(fc.subarray([...SOURCES, 'absent'], { maxLength: 4 }), { nil: undefined })

const anyOptions: fc.Arbitrary<ListSessionsOptions & { limit: number }> = fc
  .record({
    filter: fc.oneof(
      fc.record({ source: fc.constantFrom(...SOURCES, 'absent') }),
      fc.record({ sources: someSources }),
    ),
    excludeSources: someSources,
    show: fc.constantFrom('roots', 'all', undefined),
    orderBy: fc.constantFrom('started', 'lastActive', undefined),
    limit: fc.constantFrom(1, 2, 3, 7, 20),
  })
  .map(({ filter, ...options }) => ({ ...filter, ...options }))

const refused: [string, Record<string, unknown>][] = [
  ['both source and sources', { source: 'a', sources: ['a'] }],
  ['sources as text', { sources: 'new' }],
  ['sources null', { sources: null }],
  ['a number in sources', { sources: ['new', 5] }],
  ['excludeSources as text', { excludeSources: 'new' }],
  ['null in excludeSources', { excludeSources: [null] }],
  ['another show', { show: 'children' }],
  ['another order', { orderBy: 'title' }],
  ['after null', { after: null }],
  ['after as an id', { after: 'a' }],
  ['after without its fields', { after: {} }],
  ['after without a time', { after: { id: 'a' } }],
  ['after without an id', { after: { started_at: 5000, last_active: 5000 } }],
  ['after of a list in another order', { orderBy: 'lastActive', after: { id: 'a', started_at: 5000 } }],
  ['a limit below 0', { limit: -1 }],
  ['an offset that is not whole', { offset: 0.5 }],
]

describe.each(kinds)('lists in $name', (kind) => {
  let store: StateStore
  beforeEach(async () => {
    store = await kind.open()
  })

  const create = (id: string, session: Partial<NewSession> = {}) =>
    store.sessions.create({ id, source: 'new', started_at: 5000, ...session })

  const listed = async (options: ListSessionsOptions = {}) =>
    (await store.sessions.list({ limit: 100, ...options })).map(({ id }) => id)

  test('whatever the sessions and the options, the list and its pages are what a naive look finds', async () => {
    await fc.assert(
      fc.asyncProperty(
        anySessions,
        fc.array(anyOptions, { minLength: 8, maxLength: 8 }),
        async (sessions, queries) => {
          await fill(store, sessions)
          for (const options of queries) {
            const all = naive(sessions, options)
            const list = await store.sessions.list({ ...options, limit: 1000 })
            expect(summarised(list)).toEqual(expected(all))

            const byCursor: SessionSummary[] = []
            const byOffset: SessionSummary[] = []
            for (let page: SessionSummary[] | undefined; page?.length !== 0; ) {
              const next = await store.sessions.list({ ...options, after: page?.at(-1) })
              byOffset.push(...(await store.sessions.list({ ...options, offset: byCursor.length })))
              byCursor.push(...next)
              page = next
            }
            expect(byCursor).toStrictEqual(list)
            expect(byOffset).toStrictEqual(list)
          }
          for (const source of [...SOURCES, 'absent'])
            expect(await store.sessions.count({ source })).toBe(naive(sessions, { source }).length)
          expect(await store.sessions.count()).toBe(sessions.length)
        },
      ),
      { numRuns: 20 },
    )
  })

  describe('options', () => {
    beforeEach(async () => {
      await create('a', { source: 'new', started_at: 5000 })
      await create('b', { source: 'other', started_at: 6000 })
      await create('c', { source: 'new', started_at: 7000, parent_session_id: 'a' })
      await create('d', { source: 'New', started_at: 8000 })
    })
    const old = kind.existing.sessions > 0 ? ['old'] : []

    test('filters are literal', async () => {
      const excludeSources = old
      expect(await listed({ excludeSources })).toEqual(['d', 'c', 'b', 'a'])
      expect(await listed({ source: 'new' })).toEqual(['c', 'a'])
      expect(await listed({ source: 'ne%' })).toEqual([])
      expect(await listed({ source: '' })).toEqual([])
      expect(await listed({ sources: ['new', 'New', 'new', 'absent'] })).toEqual(['d', 'c', 'a'])
      expect(await listed({ sources: [''] })).toEqual([])
      expect(await listed({ sources: [] })).toEqual([])
      expect(await listed({ sources: [], show: 'roots', orderBy: 'lastActive' })).toEqual([])
      expect(await listed({ sources: undefined, source: undefined, excludeSources })).toHaveLength(4)
      expect(await listed({ excludeSources: [] })).toHaveLength(4 + kind.existing.sessions)
      expect(await listed({ excludeSources: ['new', 'absent', ...old] })).toEqual(['d', 'b'])
      expect(await listed({ sources: ['new', 'other'], excludeSources: ['new'] })).toEqual(['b'])
      expect(await listed({ source: 'new', excludeSources: ['new'] })).toEqual([])
      expect(await listed({ show: 'roots', excludeSources })).toEqual(['d', 'b', 'a'])
      const many = Array.from({ length: 40_000 }, (_, index) => `absent ${index}`)
      expect(await listed({ excludeSources: [...many, ...old] })).toHaveLength(4)
    })

    test('an empty source, which other programs may write, is a value', async () => {
      await rawRun(store, "insert into sessions (id, source, started_at) values ('e', '', 5500)")
      expect(await listed({ source: '' })).toEqual(['e'])
      expect(await listed({ sources: ['', 'other'] })).toEqual(['b', 'e'])
      expect(await listed({ excludeSources: ['', ...old] })).toEqual(['d', 'c', 'b', 'a'])
      expect(await store.sessions.count({ source: '' })).toBe(1)
    })

    test('what is no option is refused', async () => {
      for (const [name, options] of refused)
        await expect(store.sessions.list(options), name).rejects.toThrow(TypeError)
    })

    test('after goes on behind a session, also when it is gone', async () => {
      const [, second] = await store.sessions.list({ excludeSources: old })
      expect(second?.id).toBe('c')
      expect(await listed({ after: second, excludeSources: old })).toEqual(['b', 'a'])
      expect(await listed({ after: second, excludeSources: old, offset: 1 })).toEqual(['a'])
      expect(await listed({ after: second, source: 'new' })).toEqual(['a'])
      await store.sessions.delete('c')
      await create('new one', { started_at: 9000 })
      expect(await listed({ after: second, excludeSources: old })).toEqual(['b', 'a'])
    })

    test('without previews there are none', async () => {
      await store.messages.append('a', { role: 'user', content: 'hello' })
      const [withPreview] = await store.sessions.list({ source: 'new', orderBy: 'lastActive', limit: 1 })
      const [without] = await store.sessions.list({
        source: 'new',
        orderBy: 'lastActive',
        limit: 1,
        preview: false,
      })
      expect(withPreview?.preview).toBe('hello')
      expect(without).toStrictEqual({ ...withPreview, preview: '' })
    })

    test('a page can be asked for far behind the end', async () => {
      expect(await listed({ offset: 1000 })).toEqual([])
      expect(await listed({ offset: Number.MAX_SAFE_INTEGER, limit: Number.MAX_SAFE_INTEGER })).toEqual([])
    })

    test('an open transaction lists its own', async () => {
      await store.transaction(async (tx) => {
        await tx.sessions.create({ id: 'inside', source: 'new', started_at: 9000 })
        await tx.messages.append('a', { role: 'user', content: 'x', timestamp: 9001 })
        const list = await tx.sessions.list({ source: 'new', orderBy: 'lastActive' })
        expect(list.map(({ id }) => id)).toEqual(['a', 'inside', 'c'])
      })
    })
  })

  test('the order by activity is computed before the page is cut', async () => {
    await create('old', { started_at: 100 })
    await create('new', { started_at: 200 })
    await store.messages.append('old', { role: 'user', content: 'x', timestamp: 300 })
    expect(await listed({ source: 'new', orderBy: 'lastActive', limit: 1 })).toEqual(['old'])
    expect(await listed({ source: 'new', orderBy: 'started', limit: 1 })).toEqual(['new'])
  })

  test('broken JSON in one session stops neither the list nor its pages', async () => {
    for (const id of ['a', 'b', 'c']) await create(id, { model_config: { fine: id } })
    await rawRun(store, "update sessions set model_config = '{\"t\": NaN' where id = 'b'")
    const [first] = await store.sessions.list({ source: 'new', limit: 1 })
    const rest = await store.sessions.list({ source: 'new', after: first })
    expect([first, ...rest].map((session) => session?.model_config)).toEqual([
      { fine: 'c' },
      null,
      { fine: 'a' },
    ])
    expect(eventsOf(store, 'broken-json')).toMatchObject([{ table: 'sessions', id: 'b' }])
  })

  describe('previews', () => {
    const previewOf = async (...contents: NonNullable<unknown>[]) => {
      await create('s')
      for (const content of contents) await store.messages.append('s', { role: 'user', content })
      return (await store.sessions.list({ source: 'new' }))[0]?.preview
    }

    test('pass over pictures without words', async () => {
      const picture = [{ type: 'image_url', image_url: { url: 'data:,' } }]
      expect(await previewOf(picture, [], [{ type: 'text', text: ' ' }], 'what is this?')).toBe(
        'what is this?',
      )
    })

    test('join the words of a message, and tell an object by its JSON', async () => {
      const parts = [{ type: 'text', text: 'one\n' }, { type: 'image' }, { type: 'text', text: 'two' }]
      expect(await previewOf(parts)).toBe('one two')
      await create('t', { started_at: 6000 })
      await store.messages.append('t', { role: 'user', content: { a: 1 } })
      expect((await store.sessions.list({ source: 'new' }))[0]?.preview).toBe('{"a":1}')
    })

    test('read what Hermes writes for structured content', async () => {
      await create('s')
      for (const json of ['[{"type": "image"}]', '[{"type": "text", "text": "from Hermes"}]'])
        await rawRun(
          store,
          "insert into messages (session_id, role, content, timestamp) values ('s', 'user', ?, 1)",
          `\0json:${json}`,
        )
      expect((await store.sessions.list({ source: 'new' }))[0]?.preview).toBe('from Hermes')
    })

    test('take every kind of line break for a space', async () => {
      expect(await previewOf('a\u0085b\u2028c\u2029d\r\ne\rf\vg\fh')).toBe('a b c d e f g h')
    })

    test('read BLOBs, and pass over NULL', async () => {
      await create('s')
      await rawRun(
        store,
        `insert into messages (session_id, role, content, timestamp)
         values ('s', 'user', null, 1), ('s', 'user', cast(' héllo' as blob), 1)`,
      )
      expect((await store.sessions.list({ source: 'new' }))[0]?.preview).toBe('héllo')
    })
  })

  describe('what other programs write', () => {
    beforeEach(async () => {
      await create('a', { started_at: 5000 })
      await create('b', { started_at: 6000 })
      await store.messages.append('a', { role: 'user', content: 'x', timestamp: 5500 })
      await store.messages.append('a', { role: 'user', content: 'y', timestamp: 5600 })
    })

    /** Ids with their last activity, in the order of the list. */
    const active = async (options: ListSessionsOptions = { source: 'new' }) =>
      (await store.sessions.list({ orderBy: 'lastActive', ...options })).map(({ id, last_active }) => [
        id,
        last_active,
      ])

    test.each<[string, sql: string, expected: [string, number][]]>([
      [
        'a new message',
        "insert into messages (session_id, role, content, timestamp) values ('a', 'user', 'z', 7000.5)",
        [
          ['a', 7000.5],
          ['b', 6000],
        ],
      ],
      [
        'a message older than the others',
        "insert into messages (session_id, role, timestamp) values ('b', 'user', 10)",
        [
          ['a', 5600],
          ['b', 10],
        ],
      ],
      [
        'a message with another time',
        "update messages set timestamp = 7000 where content = 'x'",
        [
          ['a', 7000],
          ['b', 6000],
        ],
      ],
      [
        'a message without its text',
        "update messages set content = null where content = 'y'",
        [
          ['b', 6000],
          ['a', 5600],
        ],
      ],
      [
        'a message less',
        "delete from messages where content = 'y'",
        [
          ['b', 6000],
          ['a', 5500],
        ],
      ],
      [
        'no messages left',
        "delete from messages where session_id = 'a'",
        [
          ['b', 6000],
          ['a', 5000],
        ],
      ],
      [
        'a message moved to another session',
        "update messages set session_id = 'b' where content = 'y'",
        [
          ['b', 5600],
          ['a', 5500],
        ],
      ],
      [
        'another start of a session without messages',
        "update sessions set started_at = 4000 where id = 'b'",
        [
          ['a', 5600],
          ['b', 4000],
        ],
      ],
      [
        'another start of a session with messages',
        "update sessions set started_at = 9000 where id = 'a'",
        [
          ['b', 6000],
          ['a', 5600],
        ],
      ],
      [
        'another title',
        "update sessions set title = 'x', ended_at = 9000 where id = 'a'",
        [
          ['b', 6000],
          ['a', 5600],
        ],
      ],
      [
        'a new session',
        "insert into sessions (id, source, started_at) values ('c', 'new', 5800)",
        [
          ['b', 6000],
          ['c', 5800],
          ['a', 5600],
        ],
      ],
      [
        'a session that was there already',
        "insert or ignore into sessions (id, source, started_at) values ('a', 'cron', 1)",
        [
          ['b', 6000],
          ['a', 5600],
        ],
      ],
      [
        'a session in the place of another',
        "insert or replace into sessions (id, source, started_at) values ('b', 'new', 5550)",
        [
          ['a', 5600],
          ['b', 5550],
        ],
      ],
      [
        'another id',
        "update sessions set id = 'c' where id = 'b'",
        [
          ['c', 6000],
          ['a', 5600],
        ],
      ],
      ['a session less', "delete from sessions where id = 'b'", [['a', 5600]]],
    ])('%s', async (_, statement, expected) => {
      await rawRun(store, statement)
      expect(await active()).toEqual(expected)
      if (!kind.additions) return
      expect(
        await rawRows(
          store,
          `select session_id as id, last_active from hs_session_activity where source = 'new'
           order by last_active desc, session_id desc`,
        ),
      ).toEqual(expected.map(([id, last_active]) => ({ id, last_active })))
    })

    test('another source, another parent', async () => {
      await rawRun(store, "update sessions set source = 'cron' where id = 'a'")
      expect(await active()).toEqual([['b', 6000]])
      expect(await active({ source: 'cron' })).toEqual([['a', 5600]])
      await rawRun(store, "update sessions set parent_session_id = 'a' where id = 'b'")
      for (const orderBy of ['started', 'lastActive'] as const) {
        expect(await listed({ show: 'roots', source: 'new', orderBy })).toEqual([])
        expect(await listed({ source: 'new', orderBy })).toEqual(['b'])
      }
      await rawRun(store, "update sessions set parent_session_id = null where id = 'b'")
      for (const orderBy of ['started', 'lastActive'] as const)
        expect(await listed({ show: 'roots', source: 'new', orderBy })).toEqual(['b'])
    })

    test.runIf(kind.file)(
      'a session in the place of another, by a program without recursive triggers',
      async () => {
        const db = new Database(store.info.path)
        // SQLite's default, so Python's: REPLACE then deletes without running the delete triggers.
        db.pragma('recursive_triggers = off')
        db.exec("insert or replace into sessions (id, source, started_at) values ('b', 'cron', 5550)")
        db.close()
        expect(await active()).toEqual([['a', 5600]])
        expect(await active({ source: 'cron' })).toEqual([['b', 5550]])
        await store.sessions.delete('b')
        expect(await active({ source: 'cron' })).toEqual([])
      },
    )

    test('a session that came after its messages', async () => {
      // Foreign keys off: Hermes on an old SQLite.
      if (!kind.file) return
      const db = new Database(store.info.path)
      db.pragma('foreign_keys = off')
      db.exec(`
        insert into messages (session_id, role, timestamp) values ('late', 'user', 8000);
        insert into sessions (id, source, started_at) values ('late', 'new', 7000)`)
      db.close()
      expect((await active())[0]).toEqual(['late', 8000])
    })

    test('nothing that happens to a session by hand leaves the list wrong', async () => {
      const op = fc.record({
        kind: fc.constantFrom(
          'insert',
          'message',
          'retime',
          'move',
          'unsay',
          'source',
          'parent',
          'start',
          'delete',
        ),
        id: fc.constantFrom('p', 'q', 'r', 's'),
        other: fc.constantFrom('p', 'q', 'r', 's'),
        source: fc.constantFrom('new', 'cron'),
        time,
      })
      await fc.assert(
        fc.asyncProperty(fc.array(op, { maxLength: 20, size: 'max' }), async (ops) => {
          await fill(store, [])
          let known: Known[] = []
          const find = (id: string) => known.find((session) => session.id === id)
          for (const { kind, id, other, source, time } of ops) {
            const session = find(id)
            const target = find(other)
            if (kind === 'insert') {
              if (session) continue
              await rawRun(
                store,
                'insert into sessions (id, source, started_at) values (?, ?, ?)',
                id,
                source,
                time,
              )
              known.push({ id, source, parent: null, started_at: time, messages: [] })
            }
            if (!session) continue
            if (kind === 'message') {
              await rawRun(
                store,
                "insert into messages (session_id, role, content, timestamp) values (?, 'user', 'hello', ?)",
                id,
                time,
              )
              session.messages.push({ role: 'user', content: 'hello', timestamp: time })
            } else if (kind === 'retime') {
              await rawRun(store, 'update messages set timestamp = ? where session_id = ?', time, id)
              for (const message of session.messages) message.timestamp = time
            } else if (kind === 'move') {
              if (!target || target === session) continue
              await rawRun(store, 'update messages set session_id = ? where session_id = ?', other, id)
              target.messages.push(...session.messages.splice(0))
            } else if (kind === 'unsay') {
              await rawRun(store, 'delete from messages where session_id = ?', id)
              session.messages = []
            } else if (kind === 'source') {
              await rawRun(store, 'update sessions set source = ? where id = ?', source, id)
              session.source = source
            } else if (kind === 'parent') {
              await rawRun(
                store,
                'update sessions set parent_session_id = ? where id = ?',
                target?.id ?? null,
                id,
              )
              session.parent = target?.id ?? null
            } else if (kind === 'start') {
              await rawRun(store, 'update sessions set started_at = ? where id = ?', time, id)
              session.started_at = time
            } else if (kind === 'delete') {
              await store.sessions.delete(id)
              known = known.filter((session) => session.id !== id)
              for (const child of known) if (child.parent === id) child.parent = null
            }
          }
          for (const orderBy of ['started', 'lastActive'] as const)
            for (const show of ['roots', 'all'] as const)
              expect(
                summarised(await store.sessions.list({ orderBy, show })).map(
                  ({ message_count: _, ...s }) => s,
                ),
              ).toEqual(expected(naive(known, { orderBy, show })).map(({ message_count: _, ...s }) => s))
        }),
        { numRuns: 15 },
      )
    })
  })

  describe('a message stamped in the future', () => {
    const year = 365 * 86_400

    const pause = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms))

    test('does not keep a session on top: its activity stays what it was, whenever it is read', async () => {
      const now = Date.now() / 1000
      await create('s')
      await store.messages.append('s', { role: 'user', content: 'x', timestamp: now + year })
      const read = async () => (await store.sessions.list({ source: 'new' }))[0]!.last_active
      const first = await read()
      expect(first).toBeLessThan(Date.now() / 1000 + 61)
      await pause(50)
      expect(await read()).toBe(first)
      // Without additions nothing says when it was written.
      if (kind.additions) expect(first).toBeGreaterThan(now - 1)
    })

    test.runIf(kind.additions)(
      'does not outrank what is written later by a clock that is ahead',
      async () => {
        const later = Date.now() / 1000 + year
        await create('z')
        await create('a')
        await store.messages.append('z', { role: 'user', content: 'x', timestamp: later + year })
        // SQLite's clock ticks in milliseconds.
        await pause(20)
        await store.messages.append('a', { role: 'user', content: 'x', timestamp: later })
        expect(await listed({ source: 'new', orderBy: 'lastActive' })).toEqual(['a', 'z'])
      },
    )

    test('does not move the session in the order of starts', async () => {
      await create('s', { started_at: 1 })
      await create('t', { started_at: 2 })
      await store.messages.append('s', { role: 'user', content: 'x', timestamp: 9e9 })
      expect(await listed({ source: 'new' })).toEqual(['t', 's'])
    })
  })
})

describe('a page is found by an index', () => {
  const cases: [string, { show: 'roots' | 'all'; sources: string[] | undefined }][] = [
    ['every session', { show: 'all', sources: undefined }],
    ['roots', { show: 'roots', sources: undefined }],
    ['a common source', { show: 'all', sources: ['cli'] }],
    ['a rare source', { show: 'roots', sources: ['rare'] }],
    ['an absent source', { show: 'all', sources: ['absent'] }],
  ]

  const sourcesSql = () => {
    let sql = ''
    const connection = {
      all(query: { sql: string }) {
        sql = query.sql
        return []
      },
    }
    readSources(connection as never)
    return sql
  }

  /** The query of a page as list() makes it, in the middle of the list. */
  function pageQuery(
    orderBy: SessionOrder,
    { show, sources = ['cli', 'cron', 'rare'] }: (typeof cases)[0][1],
    middle: number,
  ) {
    const query = listedPages[orderBy]
    const ranges = sources.flatMap((source) =>
      show === 'roots'
        ? [[source, 1]]
        : [
            [source, 1],
            [source, 0],
          ],
    )
    return {
      sql: query.sql,
      values: query.values({
        ranges: JSON.stringify(ranges),
        time: middle,
        id: '',
        within: 20,
        limit: 20,
        offset: 0,
      }),
    }
  }

  /** Sessions n0, n1, …: one of them rare, every third a child, every tenth with a message. */
  async function openWith(count: number, path = newPath()) {
    const store = await openForTest({ path })
    await rawRun(
      store,
      `insert into sessions (id, source, parent_session_id, started_at)
       with recursive n(i) as (select 0 union all select i + 1 from n where i + 1 < ?)
       select 'n' || i, case when i = 6 then 'rare' when i % 4 = 0 then 'cron' else 'cli' end,
         case when i % 3 = 1 then 'n' || (i - 1) end, i from n`,
      count,
    )
    await rawRun(
      store,
      `insert into messages (session_id, role, content, timestamp)
       select id, 'user', 'x', started_at + 0.5 from sessions where started_at % 10 = 0`,
    )
    return store
  }

  test('also when somebody has run ANALYZE', async () => {
    const store = await openWith(2000)
    for (const analyzed of [false, true]) {
      if (analyzed) await rawRun(store, 'analyze')
      for (const orderBy of ['started', 'lastActive'] as const)
        for (const [name, options] of cases) {
          const { sql, values } = pageQuery(orderBy, options, 1000)
          const { rows } = await store.db.executeQuery<{ detail: string }>(
            CompiledQuery.raw(`explain query plan ${sql}`, values) as CompiledQuery<{ detail: string }>,
          )
          const plan = rows.map(({ detail }) => detail)
          const index = orderBy === 'started' ? 'hs_sessions_started_order' : 'hs_session_activity_order'
          expect(plan, name).toContainEqual(expect.stringMatching(new RegExp(`^SEARCH .*${index} .*<`)))
          expect(
            plan.filter((line) => line.startsWith('SCAN') && !line.includes('range')),
            name,
          ).toEqual([])
        }
      const { rows } = await store.db.executeQuery<{ detail: string }>(
        CompiledQuery.raw(`explain query plan ${sourcesSql()}`) as CompiledQuery<{ detail: string }>,
      )
      expect(rows.filter(({ detail }) => /^SCAN (?!found)/.test(detail))).toEqual([])
    }
  })

  // better-sqlite3 cannot count the steps of SQLite's virtual machine; Python can, on the same file and SQL.
  test.runIf(pythonSqlite)('in as many steps among 20,000 sessions as among 1,000', async () => {
    const steps = async (count: number) => {
      const store = await openWith(count)
      const queries = (['started', 'lastActive'] as const).flatMap((orderBy) =>
        cases.map(([, options]) => pageQuery(orderBy, options, count / 2)),
      )
      const python = spawnSync('python3', ['-c', COUNT_STEPS, store.info.path], {
        input: JSON.stringify([...queries, { sql: sourcesSql(), values: [] }]),
        encoding: 'utf8',
      })
      expect(python.stderr).toBe('')
      return JSON.parse(python.stdout) as { rows: number; steps: number }[]
    }
    const few = await steps(1000)
    const many = await steps(20_000)
    expect(few.map(({ rows }) => rows)).toEqual([20, 20, 20, 1, 0, 20, 20, 20, 1, 0, 3])
    expect(many.map(({ rows }) => rows)).toEqual(few.map(({ rows }) => rows))
    for (const [index, { steps }] of many.entries()) {
      expect(steps).toBeLessThan(few[index]!.steps * 1.1 + 10)
      // Two ranges for each of three sources, twenty rows each.
      expect(steps).toBeLessThan(6000)
    }
  })

  const COUNT_STEPS = `
import json, sqlite3, sys
db = sqlite3.connect(sys.argv[1])
db.execute("create temp view listed_sessions as select * from sessions")
db.execute("create temp view listed_activity as select * from hs_session_activity")
answer = []
for query in json.load(sys.stdin):
    steps = 0
    def step():
        global steps
        steps += 1
    db.set_progress_handler(step, 1)
    rows = db.execute(query['sql'], query['values']).fetchall()
    db.set_progress_handler(None, 1)
    answer.append({'rows': len(rows), 'steps': steps})
print(json.dumps(answer))
`

  test('and the rest of the work is done for its sessions alone', async () => {
    const store = await openWith(2000)
    // What list() has to read for a row must not depend on sessions that are not on the page: if it were read
    // for them, this one would raise an event.
    await rawRun(store, "update sessions set model_config = '{broken' where id = 'n3'")
    await store.sessions.list({ limit: 20 })
    await store.sessions.list({ limit: 20, orderBy: 'lastActive' })
    expect(eventsOf(store, 'broken-json')).toEqual([])
    expect(
      await rawRow(store, "select count(*) as count from sessions where model_config = '{broken'"),
    ).toEqual({
      count: 1,
    })
  })
})
