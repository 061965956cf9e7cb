import type Database from 'better-sqlite3'
import type { FixedQuery } from '../../src/database/fixed-query.ts'
import { listedPages } from '../../src/database/session-pages.ts'
import type { SessionSummary, StateStore } from '../../src/index.ts'
import { previewOf, summaryOf } from '../../src/sessions/list.ts'
import { englishMessage, message } from './data.ts'
import { rawAppend } from './raw-append.ts'

/** One operation, by the store and by better-sqlite3 with the same SQL. */
export interface Case {
  name: string
  /** Calls a round. */
  calls: number
  /** Calls of ours before anything is timed, where the rounds are too few for JavaScript to be compiled. */
  warmUp?: number
  ours: () => Promise<unknown>
  raw: () => unknown
  /** The most the ratio ours / raw may be. */
  target?: number
}

/** Appends, batches and point reads, on two files of the same content. */
export function smallCases(store: StateStore, raw: Database.Database): Case[] {
  const append = rawAppend(raw)
  const session = raw.prepare('select * from sessions where id = ?')
  const messages = raw.prepare(`
    select messages.*, structured.content as structured from messages
    left join hs_structured_content as structured on structured.message_id = messages.id
    where messages.session_id = ? and messages.id > ? and messages.id < ? order by messages.id limit cast(? as integer)`)
  const many = (length: number) => Array.from({ length }, () => message())
  const read = () => messages.all(['read', 0, Number.MAX_SAFE_INTEGER, Number.MAX_SAFE_INTEGER])

  return [
    {
      name: 'append',
      calls: 400,
      ours: () => store.messages.append('bench', message()),
      raw: () => append([message()]),
      target: 1.15,
    },
    {
      name: '8 appends at once / one each',
      calls: 20,
      ours: () => Promise.all(many(8).map((item) => store.messages.append('bench', item))),
      raw: () => {
        for (const item of many(8)) append([item])
      },
      target: 0.5,
    },
    {
      name: 'batch of 100',
      calls: 12,
      ours: () => store.messages.appendMany('bench', many(100)),
      raw: () => append(many(100)),
      target: 1.05,
    },
    {
      name: 'get session',
      calls: 2_000,
      ours: () => store.sessions.get('read'),
      raw: () => session.get(['read']),
      target: 1.2,
    },
    { name: '200 messages', calls: 40, ours: () => store.messages.list('read'), raw: read, target: 1.1 },
    {
      name: 'conversation of 200',
      calls: 40,
      ours: () => store.messages.conversation('read'),
      raw: read,
      target: 1.1,
    },
  ]
}

/** What the additions, the indexes above all, cost an append of English text: `raw` is a store without them. */
export function additionsCase(store: StateStore, without: StateStore): Case {
  let text = 0
  const append = (to: StateStore) => to.messages.append('bench', englishMessage(text++ >> 1))
  return {
    name: 'append in English: additions / none',
    calls: 400,
    ours: () => append(store),
    raw: () => append(without),
    target: 1.25,
  }
}

/** Lists and look-ups in a file of many sessions. */
export function listCases(store: StateStore, raw: Database.Database, sessions: number): Case[] {
  const run = <Args extends object>(query: FixedQuery<Args, unknown>) => {
    // On the tables themselves: the store reads views over them.
    const text = query.sql
      .replaceAll(/"(?:all|listed)_sessions"/g, '"sessions"')
      .replaceAll('"listed_activity"', '"hs_session_activity"')
      .replaceAll('"live_messages"', '"messages"')
    const statement = raw.prepare<unknown[], { id: string }>(text)
    return (args: Args) => statement.all(query.values(args))
  }
  const [byStart, byActivity, summary, preview] = [
    run(listedPages.started),
    run(listedPages.lastActive),
    run(summaryOf),
    run(previewOf),
  ]
  const page = (find: typeof byStart, ranges: [string, number][]) => {
    const args = {
      ranges: JSON.stringify(ranges),
      time: Number.POSITIVE_INFINITY,
      id: '',
      within: 20,
      limit: 20,
      offset: 0,
    }
    return () => find(args).map(({ id }) => [summary({ id }), preview({ id, after: 0 })])
  }
  const list = (options: Parameters<StateStore['sessions']['list']>[0]) => (): Promise<SessionSummary[]> =>
    store.sessions.list(options)
  const id = raw.prepare('select id from sessions where id >= ? and id < ? limit 2')
  const title = raw.prepare('select * from sessions where title = ?')
  const middle = String(Math.floor(sessions / 2)).padStart(7, '0')
  const calls = 12
  return [
    {
      name: 'list roots',
      calls,
      ours: list({ show: 'roots' }),
      raw: page(byStart, [
        ['cli', 1],
        ['telegram', 1],
        ['rare', 1],
      ]),
    },
    {
      name: 'list by source',
      calls,
      ours: list({ source: 'telegram' }),
      raw: page(byStart, [
        ['telegram', 1],
        ['telegram', 0],
      ]),
    },
    {
      name: 'list rare source',
      calls,
      ours: list({ source: 'rare' }),
      raw: page(byStart, [
        ['rare', 1],
        ['rare', 0],
      ]),
    },
    {
      name: 'list by last activity',
      calls,
      ours: list({ orderBy: 'lastActive' }),
      raw: page(
        byActivity,
        ['cli', 'telegram', 'rare'].flatMap(
          (source) =>
            [
              [source, 1],
              [source, 0],
            ] as [string, number][],
        ),
      ),
    },
    {
      name: 'look up an id prefix',
      calls: 1_000,
      ours: () => store.sessions.resolveId(`s${middle}`),
      raw: () => id.all([`s${middle}`, `s${middle}\u{10ffff}`]),
    },
    {
      name: 'look up a title',
      calls: 1_000,
      ours: () => store.titles.getSession(`title ${middle}`),
      raw: () => title.get([`title ${middle}`]),
    },
  ]
}

/** The lists of a large file against those of a small one. */
export function sizeCases(large: StateStore, small: StateStore): Case[] {
  const lists: [string, Parameters<StateStore['sessions']['list']>[0]][] = [
    ['list roots', { show: 'roots' }],
    ['list by source', { source: 'telegram' }],
    ['list rare source', { source: 'rare' }],
    ['list absent source', { source: 'absent' }],
    ['list by last activity', { orderBy: 'lastActive' }],
  ]
  return lists.map(([name, options]) => ({
    name,
    calls: 30,
    ours: () => large.sessions.list(options),
    raw: () => small.sessions.list(options),
    target: 1.5,
  }))
}

/** A chain of 10,000 sessions and a tree of 100,000, against a recursive query without protection from circles. */
export function lineageCases(store: StateStore, raw: Database.Database): Case[] {
  const up = raw.prepare(`
    with recursive line(id, parent_session_id) as (
      select id, parent_session_id from sessions where id = ?
      union all
      select sessions.id, sessions.parent_session_id from line
      join sessions on sessions.id = line.parent_session_id)
    select id, parent_session_id from line`)
  const down = raw.prepare(`
    with recursive tree(id, parent_session_id) as (
      select id, null from sessions where id = ?
      union all
      select sessions.id, sessions.parent_session_id from tree
      join sessions on sessions.parent_session_id = tree.id)
    select id, parent_session_id from tree`)
  return [
    {
      name: 'ancestors, 10,000 deep',
      calls: 1,
      ours: () => store.lineage.ancestors('chain-9999'),
      raw: () => up.all(['chain-9999']),
      target: 2,
    },
    {
      name: 'descendants, 100,000',
      calls: 1,
      ours: () => store.lineage.descendants('tree'),
      raw: () => down.all(['tree']),
      target: 2,
    },
  ]
}
