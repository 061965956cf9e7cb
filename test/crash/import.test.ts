import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { openStateStore } from '../../src/index.ts'
import { expectSound, start } from '../support/processes.ts'
import { newFolder, newPath, openForTest } from '../support/stores.ts'
import { contents, session } from '../support/transfer.ts'

const CALL = { id: 'c', type: 'function', function: { name: 'look', arguments: '{}' } }

/** Messages of every kind: some call twice, some have structured content, some a client id. */
const messages = (count: number) =>
  Array.from({ length: count }, (_, n) => ({
    role: n % 3 === 0 ? 'assistant' : 'user',
    content: n % 5 === 0 ? [{ type: 'text', text: `part ${n}` }, { type: 'image' }] : `message ${n}`,
    tool_calls: n % 3 === 0 ? [CALL, CALL] : undefined,
    client_id: n % 4 === 0 ? `client ${n}` : undefined,
    timestamp: 1000 + n,
  }))

/** 60 sessions that go 12 in a transaction, of 40 messages each, and a large one that has a transaction of its own. */
const sessions = [
  ...Array.from({ length: 60 }, (_, n) =>
    session(`s${String(n).padStart(2, '0')}`, {
      title: `Title ${n}`,
      parent_session_id: n % 3 === 0 ? null : `s${String(n - 1).padStart(2, '0')}`,
      messages: messages(40),
    }),
  ),
  session('t', { messages: messages(900) }),
]

/** Where it is killed, one after the other on one file, and how many sessions are there then. */
const kills: [moment: 'checking' | 'writing' | 'statement' | 'commit', nth: number, sessions: number][] = [
  ['checking', 1, 0],
  ['checking', 30, 0],
  ['statement', 1, 0],
  ['statement', 150, 0],
  ['commit', 1, 0],
  ['writing', 1, 12],
  ['commit', 2, 12],
  ['writing', 3, 36],
  ['statement', 100, 36],
  ['writing', 5, 60],
  ['statement', 60, 60],
  ['commit', 6, 60],
]

it('killed while it imports: every session is whole or not there, and importing again does the rest', async () => {
  const source = await openForTest({ path: ':memory:' })
  await source.transfer.importSessions(sessions)
  const whole = await contents(source)
  expect(whole).toHaveLength(61)
  const bundle = join(newFolder(), 'all.jsonl.gz')
  await source.transfer.exportFile(bundle)

  const path = newPath()
  const temporary = newFolder()
  await (await openStateStore({ path })).close()
  for (const [moment, nth, there] of kills) {
    const child = await start('importer.mjs', path, bundle, temporary, moment, `${nth}`)
    child.send('go')
    expect(await child.ended, `${moment} ${nth}`).toEqual({ code: null, signal: 'SIGKILL' })
    // On Windows, a file that is open cannot be removed before it is written.
    if (process.platform !== 'win32') expect(readdirSync(temporary)).toEqual([])
    expectSound(path)
    const store = await openStateStore({ path, worker: false })
    expect(await contents(store), `${moment} ${nth}`).toEqual(whole.slice(0, there))
    expect((await store.maintenance.check({ full: true })).ok).toBe(true)
    await store.close()
  }

  const store = await openForTest({ path })
  const report = await store.transfer.importFile(bundle)
  expect(report).toMatchObject({ imported: 1, messages: 900 })
  expect(report.sessions.filter(({ status }) => status === 'present')).toHaveLength(60)
  expect(await contents(store)).toEqual(whole)
  expect((await store.search.messages('part', { limit: 1000 })).length).toBe(60 * 8 + 180)
  await store.close()
  expectSound(path)
}, 120_000)
