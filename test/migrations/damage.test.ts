import { readFileSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import { MigrationNeededError, openStateStore } from '../../src/index.ts'
import { change, STRUCTURE, ZERO_WORDS } from '../support/flawed-files.ts'
import { VERSIONS, writeHermesFile } from '../support/hermes-file.ts'
import {
  expectComplete,
  expectIndexFollows,
  expectMended,
  expectUntouchedByOpening,
  found,
} from '../support/mended-files.ts'
import { expectSound } from '../support/processes.ts'
import { eventsOf, newPath, openForTest, rawRows } from '../support/stores.ts'

describe('a file of this package that somebody damaged:', () => {
  const parts = [
    { type: 'text', text: 'Two seals' },
    { type: 'image_url', image_url: { url: 'data:,' } },
  ]
  const ACTIVITY = ['column hs_session_activity.', 'index hs_session_activity_order']

  async function adopted(): Promise<string> {
    const path = newPath()
    writeHermesFile(path, 6)
    const store = await openForTest({ path })
    await store.messages.append('gamma', { role: 'user', content: parts, timestamp: 3001 })
    await store.close()
    return path
  }

  test.each<[damage: string, mended: string[], damage: string, migrations?: string[]]>([
    [
      'a trigger of the word index dropped, and a message changed since',
      ['word index (it lacks a trigger)'],
      "DROP TRIGGER messages_fts_update; UPDATE messages SET content = 'Count no herd' WHERE id = 1",
    ],
    [
      'the word index dropped',
      ['word index (it is missing)'],
      `DROP TRIGGER messages_fts_insert; DROP TRIGGER messages_fts_delete; DROP TRIGGER messages_fts_update;
       DROP TABLE messages_fts`,
    ],
    ['the table of the word index dropped', ['word index (it is missing)'], 'DROP TABLE messages_fts'],
    ['the structure of the word index overwritten', ['corrupt structure record'], STRUCTURE.unreadable],
    ['an index of Hermes dropped', ['index idx_sessions_started'], 'DROP INDEX idx_sessions_started'],
    [
      'the order of messages dropped',
      ['index idx_messages_session_id'],
      'DROP INDEX idx_messages_session_id',
    ],
    [
      'an index of the activity dropped',
      ['index hs_session_activity_order'],
      'DROP INDEX hs_session_activity_order',
      ['009_session_activity'],
    ],
    [
      'an index of the sessions dropped',
      ['index hs_sessions_started_order'],
      'DROP INDEX hs_sessions_started_order',
      ['009_session_activity'],
    ],
    [
      'a trigger of the activity dropped, and a message moved since',
      ['trigger hs_session_activity_message_update'],
      'DROP TRIGGER hs_session_activity_message_update; UPDATE messages SET timestamp = 2500 WHERE id = 5',
      ['009_session_activity'],
    ],
    ['the activity dropped', ACTIVITY, 'DROP TABLE hs_session_activity', ['009_session_activity']],
    [
      'the activity emptied, and its triggers dropped',
      ['trigger hs_session_activity_'],
      `DELETE FROM hs_session_activity;
       DROP TRIGGER hs_session_activity_message_insert; DROP TRIGGER hs_session_activity_message_update;
       DROP TRIGGER hs_session_activity_message_delete; DROP TRIGGER hs_session_activity_session_insert;
       DROP TRIGGER hs_session_activity_session_update; DROP TRIGGER hs_session_activity_session_delete`,
      ['009_session_activity'],
    ],
    [
      'a trigger of the structured content dropped',
      ['trigger hs_structured_content_delete'],
      'DROP TRIGGER hs_structured_content_delete',
    ],
    ['its number lost', ['schema_version ([])'], 'DELETE FROM schema_version'],
    ['its number twice', ['schema_version ([6,6])'], 'INSERT INTO schema_version VALUES (6)'],
  ])('%s', async (_, mended, damage, migrations = []) => {
    const path = await adopted()
    change(path, damage)
    const before = readFileSync(path)
    await expect(openStateStore({ path, migrate: false })).rejects.toThrow(MigrationNeededError)
    const reader = await openForTest({ path, readonly: true })
    expect(await reader.messages.list('gamma')).toMatchObject([{ content: parts }])
    expect(await found(reader, 'forty walrus')).toEqual([3])
    await reader.close()
    expect(readFileSync(path).equals(before)).toBe(true)

    const store = await openForTest({ path })
    expect(store.info.migrations).toEqual(migrations)
    expectMended(store, mended)
    expect(eventsOf(store, 'mended')).toMatchObject([{ path, mended: store.info.mended }])
    expect(await store.messages.list('gamma')).toMatchObject([{ content: parts }])
    expect(await found(store, 'forty walrus')).toEqual([3])
    expect(await found(store, 'seals')).toEqual([6])
    await store.messages.append('gamma', { role: 'user', content: parts })
    await store.close()
    await expectComplete(path)
    await expectUntouchedByOpening(path)
    expectIndexFollows(path)
  })

  test.each([
    ['its structure filled with zeros', STRUCTURE.zeros],
    ['its words filled with zeros', ZERO_WORDS],
    ['its table idx dropped', 'DROP TABLE messages_fts_idx'],
  ])('a word index with %s stops no search and no write, and is mended in the end', async (_, damage) => {
    const path = await adopted()
    change(path, damage)
    const store = await openForTest({ path })
    expect(await found(store, 'walrus')).toEqual([1, 3])
    const id = await store.messages.append('gamma', { role: 'user', content: 'A walrus, again' })
    expect(await found(store, 'walrus')).toEqual([1, 3, id])
    expect(await store.sessions.delete('beta')).toBe(true)
    await store.close()
    const again = await openForTest({ path })
    expect(await found(again, 'walrus')).toEqual([1, 3, id])
    await again.close()
    await expectComplete(path)
    expectIndexFollows(path)
  })

  test('the structured content dropped: the words of it stay', async () => {
    const path = await adopted()
    change(path, 'DROP TABLE hs_structured_content')
    const store = await openForTest({ path })

    expectMended(store, ['column hs_structured_content.'])
    expect(await store.messages.list('gamma')).toMatchObject([{ content: 'Two seals' }])
    const id = await store.messages.append('gamma', { role: 'user', content: parts })
    expect((await store.messages.list('gamma')).at(-1)).toMatchObject({ id, content: parts })
    await store.close()
    await expectComplete(path)
  })

  test('an addition is mended without the option too', async () => {
    const path = await adopted()
    change(path, 'DROP TABLE hs_session_activity')
    const store = await openForTest({ path, additions: false })
    expectMended(store, ACTIVITY)
    await store.close()
    await expectComplete(path)
  })
})

describe('counters that differ from the messages', () => {
  test.each([
    ['of a file that is migrated', 3, ''],
    ['of a file that is mended', 6, 'DROP INDEX idx_messages_session;'],
    ['of a file that gets the additions', 6, ''],
  ])('%s are named in an event and left alone', async (_, version, flaw) => {
    const path = newPath()
    writeHermesFile(path, version)
    change(
      path,
      `${flaw} UPDATE sessions SET message_count = 99 WHERE id = 'alpha';
       UPDATE sessions SET message_count = NULL WHERE id = 'beta'`,
    )
    const counters = 'select id, message_count, tool_call_count from sessions order by id'
    const store = await openForTest({ path })
    expect(eventsOf(store, 'counters-drifted')).toMatchObject([{ level: 'warning', path, sessions: 2 }])
    expect(await rawRows(store, counters)).toEqual([
      { id: 'alpha', message_count: 99, tool_call_count: 1 },
      { id: 'beta', message_count: null, tool_call_count: 0 },
      { id: 'gamma', message_count: 0, tool_call_count: 0 },
    ])
    for (const id of ['alpha', 'beta']) await store.sessions.recount(id)
    await store.close()
    expectSound(path)
  })

  test.each(VERSIONS)('are not named where a file of schema %i counts right', async (version) => {
    const path = newPath()
    writeHermesFile(path, version)
    expect(eventsOf(await openForTest({ path }), 'counters-drifted')).toEqual([])
  })
})

test('what a later release of this package has made is left as it is', async () => {
  const path = newPath()
  writeHermesFile(path, 6)
  await (await openForTest({ path })).close()
  change(
    path,
    `INSERT INTO kysely_migration VALUES ('999_of_next_year', '2099');
     DROP TRIGGER messages_fts_update;
     CREATE TRIGGER messages_fts_update AFTER UPDATE OF content ON messages BEGIN
       INSERT INTO messages_fts(messages_fts, rowid, content) VALUES ('delete', old.id, old.content);
       INSERT INTO messages_fts(rowid, content) VALUES (new.id, new.content);
     END`,
  )
  const before = readFileSync(path)
  const store = await openForTest({ path })
  expect(store.info).toMatchObject({ mended: [], migrations: [] })
  await store.close()
  expect(readFileSync(path).equals(before)).toBe(true)
})
