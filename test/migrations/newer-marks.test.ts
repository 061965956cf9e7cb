import { describe, expect, test } from 'vitest'
import type { ListSessionsOptions, StateStore } from '../../src/index.ts'
import { writeHermesFile } from '../support/hermes-file.ts'
import { changeFile, has, NEWER, type NewerSchema, newerFile } from '../support/newer-file.ts'
import { eventsOf, newPath, openForTest } from '../support/stores.ts'

const ids = <Id>(rows: { id: Id }[]) => rows.map(({ id }) => id)

const openNewer = (schema: NewerSchema, sql?: string) => openForTest({ path: newerFile(schema, sql) })

describe.each(NEWER.filter((schema) => has(schema, 'flags')))('marked messages in schema %i', (schema) => {
  test('are left out, or included and marked', async () => {
    const store = await openNewer(schema)
    const all = { includeInactive: true }

    expect(ids(await store.messages.list('chat'))).toEqual([7, 9])
    expect(ids(await store.messages.list('chat', { latest: 2 }))).toEqual([7, 9])
    expect(ids(await store.messages.list('chat', { before: 9, limit: 1 }))).toEqual([7])
    expect((await store.messages.list('chat', all)).map(({ id, inactive }) => [id, inactive])).toEqual([
      [6, 'compacted'],
      [7, undefined],
      [8, 'undone'],
      [9, undefined],
    ])
    expect(ids(await store.messages.list('chat', { ...all, after: 6, limit: 2 }))).toEqual([7, 8])
    expect(await iterated(store, 'chat')).toEqual([7, 9])
    expect(await iterated(store, 'chat', all)).toEqual([6, 7, 8, 9])
    expect((await store.messages.conversation('chat')).map(({ content }) => content)).toEqual([
      'otter summary',
      'right otter question',
    ])
    expect(await store.messages.conversation('chat', all)).toHaveLength(4)
    expect(await store.messages.count('chat')).toBe(2)
    expect(await store.messages.count('chat', all)).toBe(4)
    const inFile = has(schema, 'hidden') ? 11 : 10
    expect(await store.messages.count()).toBe(inFile - 2)
    expect(await store.messages.count(undefined, all)).toBe(inFile)
    expect((await store.messages.get(6))?.inactive).toBe('compacted')
    expect((await store.messages.get(8))?.inactive).toBe('undone')
    expect(await store.messages.get(9)).not.toHaveProperty('inactive')
    const [chat] = await store.sessions.list({ source: 'telegram' })
    expect(chat?.preview).toBe('right otter question')
  })

  test.each([
    ['words', ''],
    ['substring', "INSERT INTO state_meta VALUES ('fts_stale', '1')"],
  ])(
    'are found by %s where they were summarised away, and not where they were taken back',
    async (route, sql) => {
      const store = await openNewer(schema, sql)
      const hits = await store.search.messages('otter')
      expect(ids(hits).sort()).toEqual([6, 7, 9])
      expect(new Set(hits.map((hit) => hit.route))).toEqual(new Set([route]))
      const [last] = await store.search.messages('right', { context: 2 })
      expect(ids(last!.context)).toEqual([6, 7, 9])
      const [summary] = await store.search.messages('summary')
      expect(ids(summary!.context)).toEqual([6, 7, 9])
    },
  )
})

test('a mark that an upgrade left NULL means nothing', async () => {
  const store = await openNewer(
    11,
    `ALTER TABLE messages ADD COLUMN active INTEGER;
     ALTER TABLE messages ADD COLUMN compacted INTEGER;
     ALTER TABLE sessions ADD COLUMN archived INTEGER;
     UPDATE messages SET active = 0 WHERE id = 8;
     UPDATE messages SET active = 1 WHERE id = 9;
     UPDATE schema_version SET version = 14`,
  )
  expect(ids(await store.messages.list('chat'))).toEqual([6, 7, 9])
  expect(await store.messages.count('chat')).toBe(3)
  expect((await store.messages.get(6))?.inactive).toBeUndefined()
  expect(ids(await store.search.messages('otter')).sort()).toEqual([6, 7, 9])
  expect(ids(await store.sessions.list())).toEqual(['chat', 'tip', 'root'])
  expect(await store.sessions.count()).toBe(3)
})

test('a message is summarised away by that mark alone', async () => {
  const store = await openNewer(16, 'UPDATE messages SET compacted = 1 WHERE id = 9')
  expect(ids(await store.messages.list('chat'))).toEqual([7])
  expect(await store.messages.count('chat')).toBe(1)
  expect((await store.messages.get(9))?.inactive).toBe('compacted')
  expect(ids(await store.search.messages('otter')).sort()).toEqual([6, 7, 9])
})

describe.each([16, 25, 26] as const)('archived and hidden sessions in schema %i', (schema) => {
  const hidden = has(schema, 'hidden')
  const without = (list: string[]) => list.filter((id) => hidden || id !== 'secret')
  const cases: [ListSessionsOptions, string[], string[]][] = [
    [{}, ['chat', 'tip', 'root'], ['chat', 'away', 'tip', 'secret', 'root']],
    [{ orderBy: 'lastActive' }, ['chat', 'root', 'tip'], ['chat', 'away', 'secret', 'root', 'tip']],
    [{ show: 'roots' }, ['chat', 'root'], ['chat', 'away', 'secret', 'root']],
    [{ show: 'roots', orderBy: 'lastActive' }, ['chat', 'root'], ['chat', 'away', 'secret', 'root']],
    [{ source: 'cli' }, ['tip', 'root'], ['away', 'tip', 'root']],
    [{ source: 'cli', orderBy: 'lastActive' }, ['root', 'tip'], ['away', 'root', 'tip']],
    [{ excludeSources: ['cli'] }, ['chat'], ['chat', 'secret']],
  ]

  test.each(cases)('are left out of a list %j, or included', async (options, listed, all) => {
    const store = await openNewer(schema)
    for (const [includeArchived, expected] of [
      [false, listed],
      [true, without(all)],
    ] as const) {
      const chosen = { ...options, includeArchived }
      expect(ids(await store.sessions.list(chosen))).toEqual(expected)
      expect(await paged(store, chosen)).toEqual(expected)
      expect(ids(await store.sessions.list({ ...chosen, offset: 1 }))).toEqual(expected.slice(1))
    }
  })

  test('are counted only when asked for, and found by their id', async () => {
    const store = await openNewer(schema)
    expect(await store.sessions.count()).toBe(3)
    expect(await store.sessions.count({ includeArchived: true })).toBe(hidden ? 5 : 4)
    expect(await store.sessions.count({ source: 'cli' })).toBe(2)
    expect(await store.sessions.count({ source: 'cli', includeArchived: true })).toBe(3)
    expect((await store.sessions.get('away'))?.started_at).toBe(2200)
    expect(await store.sessions.exists('away')).toBe(true)
    expect(ids(await store.messages.list('away'))).toEqual([10])
    const [away] = await store.sessions.list({ source: 'cli', includeArchived: true })
    expect(away).toMatchObject({ id: 'away', preview: 'archived beaver', last_active: 2600 })
    if (hidden) expect((await store.sessions.get('secret'))?.id).toBe('secret')
  })
})

describe('a file of schema 6 with columns of later ones', () => {
  const upgraded = async () => {
    const path = newPath()
    writeHermesFile(path, 6)
    changeFile(
      path,
      `ALTER TABLE messages ADD COLUMN active INTEGER;
       ALTER TABLE messages ADD COLUMN compacted INTEGER NOT NULL DEFAULT 0;
       ALTER TABLE sessions ADD COLUMN archived INTEGER NOT NULL DEFAULT 0;
       UPDATE messages SET active = 0, compacted = 1 WHERE id = 1;
       UPDATE messages SET active = 0 WHERE id = 3;
       UPDATE sessions SET archived = 1 WHERE id = 'gamma'`,
    )
    return openForTest({ path })
  }

  test('is adopted and written', async () => {
    const store = await upgraded()
    expect(store.info).toMatchObject({ readonly: false, schemaVersion: 6, additions: true })
    expect(eventsOf(store, 'opened-readonly')).toEqual([])
    const id = await store.messages.append('alpha', {
      role: 'user',
      content: [{ type: 'text', text: 'walrus' }],
    })
    expect(ids(await store.messages.list('alpha'))).toEqual([2, id])
    expect(await store.messages.replaceAll('beta', [{ role: 'user', content: 'x' }])).toHaveLength(1)
  })

  test('has what is marked in it left out', async () => {
    const store = await upgraded()
    expect(ids(await store.messages.list('alpha'))).toEqual([2])
    expect(
      (await store.messages.list('alpha', { includeInactive: true })).map(({ inactive }) => inactive),
    ).toEqual(['compacted', undefined, 'undone'])
    expect(await store.messages.count('alpha')).toBe(1)
    expect(ids(await store.search.messages('walrus'))).toEqual([1])
    for (const orderBy of ['started', 'lastActive'] as const) {
      expect(ids(await store.sessions.list({ orderBy }))).toEqual(['beta', 'alpha'])
      expect(ids(await store.sessions.list({ orderBy, includeArchived: true }))).toEqual([
        'gamma',
        'beta',
        'alpha',
      ])
    }
    expect((await store.sessions.list({ source: 'cli' })).map(({ preview }) => preview)).toEqual([''])
    expect(await store.sessions.count()).toBe(2)
    expect(await store.sessions.count({ includeArchived: true })).toBe(3)
  })
})

async function iterated(store: StateStore, id: string, options?: { includeInactive: boolean }) {
  const found: number[] = []
  for await (const message of store.messages.iterate(id, options)) found.push(message.id)
  return found
}

async function paged(store: StateStore, options: ListSessionsOptions): Promise<string[]> {
  const found: string[] = []
  for (let page = await store.sessions.list({ ...options, limit: 1 }); page.length > 0; ) {
    found.push(...ids(page))
    page = await store.sessions.list({ ...options, limit: 1, after: page[0] })
  }
  return found
}
