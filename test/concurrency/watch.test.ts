import { expect, it } from 'vitest'
import type { Message, StateStore } from '../../src/index.ts'
import { expectSound, pythonSqlite, sql, start, startTogether } from '../support/processes.ts'
import { newPath, openForTest } from '../support/stores.ts'

async function openShared(): Promise<{ path: string; store: StateStore }> {
  const path = newPath()
  const store = await openForTest({ path })
  await store.sessions.create({ id: 's', source: 'cli' })
  return { path, store }
}

/** The ids of a watch until there are so many. */
async function idsOf(watch: AsyncIterable<Message>, count: number): Promise<number[]> {
  const ids: number[] = []
  if (count > 0)
    for await (const { id } of watch) {
      ids.push(id)
      if (ids.length === count) break
    }
  return ids
}

const idsOfFile = (path: string) =>
  sql<{ id: number }>(path, 'select id from messages order by id').map(({ id }) => id)

it('2 watchers see what 3 processes and this one append: each message once, in order', async () => {
  const { path, store } = await openShared()
  const watcher = await start('watcher.mjs', path, '0', '320')
  watcher.send('go')
  const seen = idsOf(store.watch(), 320)
  const writers = await startTogether(
    ['ada', 'ben', 'cleo'].map((name) => ['appender.mjs', path, name, '100']),
  )
  for (let n = 0; n < 20; n++) await store.messages.append('s', { role: 'user', content: `own ${n}` })
  for (const writer of writers) await writer.hear('done')

  const ids = idsOfFile(path)
  expect(ids).toHaveLength(320)
  expect(await seen).toEqual(ids)
  // It has not closed its store, and a watch that was left does not hold it.
  expect(await watcher.ended).toEqual({ code: 0, signal: null })
  expect(watcher.lines.filter((line) => line.startsWith('saw '))).toEqual(ids.map((id) => `saw ${id}`))
  expectSound(path)
})

it('a watch that goes on after the last message it had misses none and repeats none', async () => {
  const { path, store } = await openShared()
  const writers = await startTogether(['ada', 'ben'].map((name) => ['appender.mjs', path, name, '100']))
  const seen: number[] = []
  while (seen.length < 200) {
    // Left and taken up again all the time, once in a store that was opened anew.
    const watching = seen.length === 50 ? await openForTest({ path }) : store
    seen.push(...(await idsOf(watching.watch({ after: seen.at(-1) ?? 0 }), 10)))
  }
  for (const writer of writers) await writer.hear('done')
  expect(seen).toEqual(idsOfFile(path))
})

it('a watcher that was killed goes on where it was', async () => {
  const { path, store } = await openShared()
  const killed = await start('watcher.mjs', path, '0', '1000')
  killed.send('go')
  const [writer] = await startTogether([['appender.mjs', path, 'ada', '100']])
  let last = 0
  while (last < 20) last = Number(await killed.hear('saw'))
  await killed.kill()
  await writer?.hear('done')

  const saw = killed.lines.filter((line) => line.startsWith('saw ')).map((line) => Number(line.slice(4)))
  const rest = await idsOf(store.watch({ after: saw.at(-1) }), 100 - saw.length)
  expect([...saw, ...rest]).toEqual(idsOfFile(path))
})

it.skipIf(!pythonSqlite)(
  `sees what Python writes (${pythonSqlite ? `SQLite ${pythonSqlite}` : 'skipped: there is no python3 with sqlite3'})`,
  async () => {
    const { path, store } = await openShared()
    const python = await start('hermes_writer.py', path)
    const seen = idsOf(store.watch({ sessionId: 's' }), 20)
    for (let n = 0; n < 20; n++) {
      await python.ask(JSON.stringify(['append', 's', 'user', `python ${n}`]))
      // Once in a while both write in the same moment.
      if (n % 5 === 0) await store.messages.append('s', { role: 'user', content: `own ${n}` })
    }
    expect(await seen).toEqual(idsOfFile(path).slice(0, 20))
  },
)

it('sees what is committed in rollback-journal mode, where reads wait for writers', async () => {
  const { path, store } = await openShared()
  await store.close()
  const [mode] = sql<{ journal_mode: string }>(path, 'pragma journal_mode = delete')
  expect(mode).toEqual({ journal_mode: 'delete' })
  const reader = await openForTest({ path })
  const other = await start('sql.mjs', path)
  other.send('go')
  const seen = idsOf(reader.watch(), 2)
  const insert = "insert into messages (session_id, role, content, timestamp) values ('s', 'user', 'x', 1)"
  await other.ask('begin exclusive')
  await other.ask(insert)
  await other.ask(insert)
  await other.ask('commit')
  expect(await seen).toEqual([1, 2])
})
