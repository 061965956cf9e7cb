import { statSync } from 'node:fs'
import Database from 'better-sqlite3'
import { expect, it } from 'vitest'
import { acknowledgedBy } from '../../scripts/soak/acknowledged.ts'
import { openStateStore } from '../../src/index.ts'
import { expectSound, start } from '../support/processes.ts'
import { newPath, openForTest } from '../support/stores.ts'

async function writeStore(path: string): Promise<void> {
  const store = await openStateStore({ path })
  await store.sessions.create({ id: 's', source: 'cli' })
  await store.close()
}

it('killed while another process has the file open: that one goes on, and nothing acknowledged is lost', async () => {
  const path = newPath()
  await writeStore(path)
  const store = await openForTest({ path })
  const acknowledged: number[] = []
  for (let round = 0; round < 3; round++) {
    const child = await start('worker.mjs', path, 'appends', `round${round}`)
    child.send('go')
    const enough = 5 + Math.floor(Math.random() * 50)
    while (acknowledgedBy(child).length < enough)
      acknowledged.push(await store.messages.append('s', { role: 'user', content: 'ours' }))
    await child.kill()
    acknowledged.push(...acknowledgedBy(child).map(({ id }) => id))
    acknowledged.push(await store.messages.append('s', { role: 'user', content: 'after the kill' }))
    const there = new Set((await store.messages.list('s')).map(({ id }) => id))
    expect(acknowledged.filter((id) => !there.has(id))).toEqual([])
    expectSound(path)
  }
  expect(new Set(acknowledged).size).toBe(acknowledged.length)
})

it('killed in a transaction on a rollback-journal file: opening it plays the journal back', async () => {
  const path = newPath()
  await writeStore(path)
  const db = new Database(path)
  db.pragma('journal_mode = delete')
  db.exec("insert into messages (session_id, role, content, timestamp) values ('s', 'user', 'kept', 1000)")
  db.exec("update sessions set message_count = 1 where id = 's'")
  db.close()
  const sizeBefore = statSync(path).size
  const child = await start('hot-journal.mjs', path)
  await child.ask('go', 'writing')
  await child.kill()
  expect(statSync(`${path}-journal`).size).toBeGreaterThan(0)
  expect(statSync(path).size).toBeGreaterThan(sizeBefore)

  const store = await openForTest({ path })
  expect((await store.messages.list('s')).map(({ content }) => content)).toEqual(['kept'])
  expect(store.info.journalMode).toBe('wal')
  await store.close()
  expectSound(path)
})
