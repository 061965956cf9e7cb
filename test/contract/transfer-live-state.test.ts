import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { newerFile } from '../support/newer-file.ts'
import { newFolder, newPath, openForTest } from '../support/stores.ts'
import { contents, session } from '../support/transfer.ts'

/** What a session of a later Hermes has that is only of the moment: who is served where, activity, pins, read marks. */
const LIVE = {
  session_key: 'live-key',
  chat_id: 'live-chat',
  chat_type: 'live-type',
  thread_id: 'live-thread',
  display_name: 'live-name',
  origin_json: '{"live-origin": 1}',
  expiry_finalized: 1,
  last_activity_at: 1_770_000_000.5,
  last_activity_description: 'live-activity',
  last_activity_provenance: 'live-provenance',
  handoff_state: 'live-handoff',
  handoff_platform: 'live-platform',
  handoff_error: 'live-handoff-error',
  compression_failure_cooldown_until: 1_770_000_001.5,
  compression_failure_error: 'live-compression',
  compression_fallback_streak: 2,
  compression_ineffective_count: 3,
  pinned: 1,
  last_read_at: 1_770_000_002.5,
}

const typeOf = (value: string | number) => (typeof value === 'string' ? 'TEXT' : 'REAL')

/** Such columns filled in every session, and tables of leases, locks, routing, deliveries and topics. */
const LIVE_SQL = `
  ${Object.entries(LIVE)
    .map(([name, value]) => `alter table sessions add column ${name} ${typeOf(value)};`)
    .join('\n')}
  update sessions set ${Object.entries(LIVE)
    .map(([name, value]) => `${name} = '${value}'`)
    .join(', ')};
  create table compression_locks (session_id TEXT PRIMARY KEY, holder TEXT NOT NULL, acquired_at REAL NOT NULL,
    expires_at REAL NOT NULL);
  insert into compression_locks values ('root', 'live-holder', 1, 9e9);
  create table session_turn_leases (conversation_id TEXT PRIMARY KEY, holder TEXT NOT NULL, acquired_at REAL NOT NULL,
    expires_at REAL NOT NULL);
  insert into session_turn_leases values ('root', 'live-lease', 1, 9e9);
  create table gateway_routing (scope TEXT NOT NULL DEFAULT '', session_key TEXT NOT NULL, entry_json TEXT NOT NULL,
    updated_at REAL NOT NULL, PRIMARY KEY (scope, session_key));
  insert into gateway_routing values ('', 'live-key', '{"session_id": "root", "live-route": 1}', 1);
  create table gateway_hygiene_state (session_key TEXT PRIMARY KEY, failure_streak INTEGER NOT NULL DEFAULT 0);
  insert into gateway_hygiene_state values ('live-hygiene', 4);
  create table async_delegations (delegation_id TEXT PRIMARY KEY, origin_session TEXT NOT NULL, state TEXT NOT NULL,
    dispatched_at REAL NOT NULL, updated_at REAL NOT NULL, owner_pid INTEGER, delivery_claim TEXT);
  insert into async_delegations values ('live-delegation', 'root', 'running', 1, 1, 4711, 'live-claim');
  create table telegram_dm_topic_bindings (chat_id TEXT, thread_id TEXT, session_id TEXT REFERENCES sessions(id));
  insert into telegram_dm_topic_bindings values ('live-chat', 'live-topic', 'chat');
  insert into state_meta values ('last_auto_prune', 'live-prune');`

test('what a later state.db has that is only of the moment begins anew', async () => {
  const store = await openForTest({ path: newPath() })
  const report = await store.transfer.importFile(newerFile(26, LIVE_SQL))
  expect(report).toMatchObject({ imported: 5, messages: 9 })
  // All of it is counted, with what else schema 6 has no place for.
  expect(report.not_carried).toEqual({
    ...Object.fromEntries(Object.keys(LIVE).map((name) => [name, 5])),
    archived: 1,
    hidden: 1,
    'messages.inactive': 2,
    'messages.reasoning_content': 1,
    async_delegations: 1,
    compression_locks: 1,
    gateway_hygiene_state: 1,
    gateway_routing: 1,
    session_model_usage: 2,
    session_turn_leases: 1,
    telegram_dm_topic_bindings: 1,
  })

  const without = await openForTest({ path: newPath() })
  await without.transfer.importFile(newerFile(26))
  expect(await contents(store)).toEqual(await contents(without))
  expect((await store.maintenance.check({ full: true })).ok).toBe(true)
  // Pinned, archived and hidden sessions are sessions like others.
  expect((await store.sessions.list({ preview: false })).map(({ id }) => id).sort()).toEqual([
    'away',
    'chat',
    'root',
    'secret',
    'tip',
  ])
  expect((await store.sessions.list({ orderBy: 'lastActive', limit: 1 }))[0]).toMatchObject({
    id: 'chat',
    last_active: 3004,
  })
  await store.maintenance.checkpoint()
  expect(readFileSync(store.info.path).includes('live-')).toBe(false)
})

test('what was taken back or summarised away is not counted among the messages that are stored', async () => {
  const store = await openForTest({ path: ':memory:' })
  const call = { id: 'c', function: { name: 'look', arguments: '{}' } }
  const message = { role: 'assistant', tool_calls: [call], timestamp: 1 }
  const counted = { message_count: 9, tool_call_count: 8 }
  await store.transfer.importSessions([
    session('whole', { ...counted, messages: [message] }),
    session('undone', { ...counted, messages: [message, { ...message, inactive: 'undone' }] }),
    session('later', { ...counted, messages: [message], more: true }),
    { type: 'messages', session_id: 'later', messages: [{ ...message, inactive: 'compacted' }, message] },
  ])
  expect(await store.sessions.get('whole')).toMatchObject(counted)
  expect(await store.sessions.get('undone')).toMatchObject({ message_count: 1, tool_call_count: 1 })
  expect(await store.sessions.get('later')).toMatchObject({ message_count: 2, tool_call_count: 2 })
})

test('of an export of Hermes, each such field is counted, and nothing of it is stored', async () => {
  const path = join(newFolder(), 'sessions.jsonl')
  const lines = ['a', 'b'].map((id) => JSON.stringify(session(id, LIVE)))
  // Of a session that has none, nothing is counted.
  const none = Object.fromEntries(
    Object.entries(LIVE).map(([name, value]) => [name, typeof value === 'string' ? null : 0]),
  )
  lines.push(JSON.stringify(session('c', none)))
  writeFileSync(path, lines.join('\n'))
  const store = await openForTest({ path: newPath() })
  const report = await store.transfer.importFile(path)
  expect(report).toMatchObject({ imported: 3, messages: 0 })
  expect(report.not_carried).toEqual(Object.fromEntries(Object.keys(LIVE).map((name) => [name, 2])))
  await store.maintenance.checkpoint()
  expect(readFileSync(store.info.path).includes('live-')).toBe(false)
})
