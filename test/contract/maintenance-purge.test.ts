import { existsSync, readFileSync } from 'node:fs'
import Database from 'better-sqlite3'
import { expect, test } from 'vitest'
import {
  ReadonlyStoreError,
  type StateStore,
  TextRemainsError,
  TransactionMisuseError,
  UnsupportedSchemaError,
} from '../../src/index.ts'
import { change, expectIndexesSound } from '../support/index-damage.ts'
import { newerFile } from '../support/newer-file.ts'
import { fileKinds, newPath, openForTest } from '../support/stores.ts'

const SECRETS = ['geheimnis', 'zebrafink', 'Sesamoeffner', 'vaultword', 'purged-session', '極秘', '密文']

async function fill(store: StateStore): Promise<void> {
  await store.sessions.create({ id: 'kept', source: 'cli' })
  await store.sessions.create({ id: 'purged-session-1', source: 'cli', system_prompt: 'geheimnis prompt' })
  await store.sessions.create({ id: 'child', source: 'cli', parent_session_id: 'purged-session-1' })
  await store.titles.set('purged-session-1', 'Sesamoeffner plan')
  for (let n = 0; n < 60; n++) {
    await store.messages.append('kept', { role: 'user', content: `walrus ${n} 海象在这里` })
    await store.messages.append('purged-session-1', {
      role: 'assistant',
      content: [{ type: 'text', text: `zebrafink${n} ${'geheimnis '.repeat(300)} 極秘密文` }],
      tool_calls: [{ id: `c${n}`, function: { name: 'run', arguments: '{"key":"vaultword"}' } }],
    })
  }
}

/** Which of the words the bytes of the file and its log hold. */
function found(path: string): string[] {
  const bytes = [path, `${path}-wal`].filter((file) => existsSync(file)).map((file) => readFileSync(file))
  return SECRETS.filter((word) => bytes.some((part) => part.includes(word)))
}

test.each(fileKinds)('$name holds nothing of a purged session', async (kind) => {
  const store = await kind.open()
  const { path } = store.info
  await fill(store)
  const kept = await store.messages.list('kept')
  const hits = await store.search.messages('walrus', { limit: 100 })
  expect(found(path)).toEqual(SECRETS)
  expect(await store.maintenance.purge('purged-session-1')).toBe(true)
  expect(found(path)).toEqual([])
  expect(await store.sessions.exists('purged-session-1')).toBe(false)
  expect((await store.sessions.get('child'))?.parent_session_id).toBeNull()
  expect(await store.messages.list('kept')).toEqual(kept)
  expect((await store.search.messages('walrus', { limit: 100 })).map(({ id }) => id)).toEqual(
    hits.map(({ id }) => id),
  )
  expect(await store.search.messages('海象', { limit: 100 })).toHaveLength(
    kept.length + (kind.existing.messages > 0 ? 1 : 0),
  )
  expect(await store.search.messages('zebrafink7')).toEqual([])
  expect((await store.maintenance.check({ full: true })).ok).toBe(true)
  expectIndexesSound(path)
})

test('what was deleted before is cleaned too; an id that nobody had is false', async () => {
  const store = await openForTest({ path: newPath() })
  await fill(store)
  await store.sessions.delete('purged-session-1')
  expect(found(store.info.path)).not.toEqual([])
  expect(await store.maintenance.purge('purged-session-1')).toBe(false)
  expect(found(store.info.path)).toEqual([])
  expect(await store.maintenance.purge('nobody')).toBe(false)
  await expect(store.maintenance.purge('')).rejects.toBeInstanceOf(TypeError)
})

test('says so where a reader keeps the text, and goes on when it is called again', async () => {
  const store = await openForTest({ path: newPath(), busyTimeout: 100 })
  const { path } = store.info
  await fill(store)
  const reader = new Database(path, { readonly: true })
  reader.exec('begin')
  reader.prepare('select count(*) from messages').get()
  const error = await store.maintenance.purge('purged-session-1').catch((error: unknown) => error)
  expect(error).toBeInstanceOf(TextRemainsError)
  expect(error).toMatchObject({ code: 'TEXT_REMAINS', session_id: 'purged-session-1' })
  expect(await store.sessions.exists('purged-session-1')).toBe(false)
  expect(found(path)).not.toEqual([])
  reader.close()
  expect(await store.maintenance.purge('purged-session-1')).toBe(false)
  expect(found(path)).toEqual([])
})

test('in a large file too', async () => {
  const store = await openForTest({ path: newPath() })
  await fill(store)
  change(
    store.info.path,
    `insert into messages (session_id, role, content, timestamp)
     with recursive n(i) as (select 1 union all select i + 1 from n where i < 21000)
     select 'kept', 'user', 'seal ' || i, i from n`,
  )
  expect(await store.maintenance.purge('purged-session-1')).toBe(true)
  expect(found(store.info.path)).toEqual([])
  expect(await store.search.messages('20999')).toMatchObject([{ route: 'words' }])
  expectIndexesSound(store.info.path)
})

test('works in memory, and is refused where nothing may be deleted or an index is not ours', async () => {
  const memory = await openForTest({ path: ':memory:' })
  await fill(memory)
  expect(await memory.maintenance.purge('purged-session-1')).toBe(true)
  const store = await openForTest({ path: newPath() })
  await fill(store)
  await store.transaction(async () => {
    await expect(store.maintenance.purge('kept')).rejects.toBeInstanceOf(TransactionMisuseError)
  })
  await store.close()
  const reader = await openForTest({ path: store.info.path, readonly: true })
  await expect(reader.maintenance.purge('kept')).rejects.toBeInstanceOf(ReadonlyStoreError)
  const newer = await openForTest({ path: newerFile(11), newerSchema: 'write' })
  await expect(newer.maintenance.purge('kept')).rejects.toBeInstanceOf(UnsupportedSchemaError)
  expect(await reader.sessions.exists('kept')).toBe(true)
})
