import { readdirSync } from 'node:fs'
import { dirname } from 'node:path'
import { expect, test } from 'vitest'
import { DamagedFileError, ReadonlyStoreError, TransactionMisuseError } from '../../src/index.ts'
import { change, expectIndexesSound, overwriteRoot, query } from '../support/index-damage.ts'
import { newPath, openForTest } from '../support/stores.ts'

async function filled(path: string) {
  const store = await openForTest({ path })
  for (const id of ['a', 'b']) {
    await store.sessions.create({ id, source: 'cli' })
    await store.messages.append(id, { role: 'user', content: [{ type: 'text', text: `walrus ${id}` }] })
  }
  return store
}

test('recounts, deletes orphans of the additions, keeps messages, and has a backup of what was', async () => {
  const path = newPath()
  const store = await filled(path)
  change(
    path,
    `pragma foreign_keys = off;
     update sessions set message_count = 7 where id = 'a';
     insert into hs_structured_content (message_id, content) values (999, '[]');
     insert into hs_client_ids (message_id, session_id, client_id) values (9001, 'gone', 'c');
     insert into hs_session_activity (session_id, source, last_active, is_root) values ('gone', 'cli', 1, 1);
     insert into messages (session_id, role, content, timestamp) values ('lost', 'user', 'otter', 1)`,
  )
  const parts: string[] = []
  const result = await store.maintenance.repair({ onProgress: ({ part }) => parts.push(part) })
  expect(parts).toEqual(['integrity', 'backup', 'indexes', 'counters', 'additions'])
  expect(result).toMatchObject({ recounted: 1, orphanedMessages: 1 })
  expect(result.deleted).toEqual({ structuredContent: 1, clientIds: 1, activity: 1 })
  expect(query(path, "select message_count from sessions where id = 'a'")).toEqual([1])
  expect(query(path, "select 1 from hs_session_activity where session_id = 'gone'")).toEqual([])
  expect(query(path, "select content from messages where session_id = 'lost'")).toEqual(['otter'])
  expect(query(result.backup ?? '', "select message_count from sessions where id = 'a'")).toEqual([7])
  const { rows } = await store.maintenance.check()
  expect(rows).toMatchObject({
    counters: { total: 0 },
    orphans: { structuredContent: 0, clientIds: 0, activity: 0 },
  })
  expectIndexesSound(path)
})

test('makes no backup where none is asked for, or in memory', async () => {
  const path = newPath()
  const store = await filled(path)
  expect(await store.maintenance.repair({ backup: false })).toEqual({
    backup: null,
    recounted: 0,
    deleted: { structuredContent: 0, clientIds: 0, activity: 0 },
    orphanedMessages: 0,
  })
  expect((await (await filled(':memory:')).maintenance.repair()).backup).toBeNull()
})

test('refuses a damaged file, and changes nothing', async () => {
  const path = newPath()
  await (await filled(path)).close()
  overwriteRoot(path, 'idx_messages_session')
  const store = await openForTest({ path })
  const parts: string[] = []
  await expect(
    store.maintenance.repair({ onProgress: ({ part }) => parts.push(part) }),
  ).rejects.toBeInstanceOf(DamagedFileError)
  expect(parts).toEqual(['integrity'])
})

test('gives up when it is told to', async () => {
  const store = await filled(newPath())
  const stop = new AbortController()
  const reason = new Error('enough')
  const made = store.maintenance.repair({
    signal: stop.signal,
    onProgress: ({ part }) => part === 'backup' && stop.abort(reason),
  })
  await expect(made).rejects.toBe(reason)
  expect((await store.maintenance.check()).ok).toBe(true)
})

test('is refused inside a transaction and on a store that only reads', async () => {
  const store = await filled(newPath())
  await store.transaction(async () => {
    await expect(store.maintenance.repair()).rejects.toBeInstanceOf(TransactionMisuseError)
  })
  await store.close()
  const reader = await openForTest({ path: store.info.path, readonly: true })
  await expect(reader.maintenance.repair()).rejects.toBeInstanceOf(ReadonlyStoreError)
  expect(readdirSync(dirname(store.info.path)).filter((name) => name.includes('repair'))).toEqual([])
})
