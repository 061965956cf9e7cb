import { copyFileSync, readFileSync, rmSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import Database from 'better-sqlite3'
import { expect, it } from 'vitest'
import { openStateStore } from '../../src/index.ts'
import { type Child, expectSound, sql, start, until } from '../support/processes.ts'
import { newFolder, newPath, openForTest } from '../support/stores.ts'

async function writeStore(path: string): Promise<void> {
  const store = await openStateStore({ path })
  await store.sessions.create({ id: 's', source: 'cli' })
  await store.close()
}

const storedIds = (child: Child) =>
  child.lines.flatMap((line) => (line.startsWith('stored ') ? [Number(line.slice('stored '.length))] : []))

const walSize = (path: string) => statSync(`${path}-wal`, { throwIfNoEntry: false })?.size ?? 0

it('killed in a stream of appends: every acknowledged one is there', async () => {
  const path = newPath()
  await writeStore(path)
  const acknowledged: number[] = []
  for (let round = 0; round < 5; round++) {
    const child = await start('stream.mjs', path, String(round))
    child.send('go')
    const enough = 5 + Math.floor(Math.random() * 150)
    await until(() => storedIds(child).length >= enough)
    await delay(Math.random() * 5)
    await child.kill()
    const ids = storedIds(child)
    expect(ids.length).toBeGreaterThanOrEqual(enough)
    acknowledged.push(...ids)

    const store = await openForTest({ path })
    const messages = await store.messages.list('s')
    const there = new Set(messages.map(({ id }) => id))
    expect(acknowledged.filter((id) => !there.has(id))).toEqual([])
    expect(new Set(acknowledged).size).toBe(acknowledged.length)
    // Those under way may have landed too: at most one of each lane and round.
    expect(messages.length - acknowledged.length).toBeLessThanOrEqual(5 * (round + 1))
    expect((await store.sessions.get('s'))?.message_count).toBe(messages.length)
    await store.close()
    expectSound(path)
  }
})

it('killed while another process has the file open: that one goes on, and nothing acknowledged is lost', async () => {
  const path = newPath()
  await writeStore(path)
  const store = await openForTest({ path })
  const acknowledged: number[] = []
  for (let round = 0; round < 3; round++) {
    const child = await start('stream.mjs', path, String(round))
    child.send('go')
    const enough = 5 + Math.floor(Math.random() * 50)
    while (storedIds(child).length < enough)
      acknowledged.push(await store.messages.append('s', { role: 'user', content: 'ours' }))
    await child.kill()
    acknowledged.push(...storedIds(child))
    acknowledged.push(await store.messages.append('s', { role: 'user', content: 'after the kill' }))
    const there = new Set((await store.messages.list('s')).map(({ id }) => id))
    expect(acknowledged.filter((id) => !there.has(id))).toEqual([])
    expectSound(path)
  }
  expect(new Set(acknowledged).size).toBe(acknowledged.length)
})

it('killed in appendMany: all of it is there, or nothing', async () => {
  const path = newPath()
  await writeStore(path)
  const count = 2_000
  let interrupted = 0
  let expected = 0
  // By how far the log has grown: before the first page, in the middle, and after the end.
  for (const [round, grown] of [0, 1, 2_000_000, 4_000_000, Number.POSITIVE_INFINITY].entries()) {
    const child = await start('bulk.mjs', path, String(round), String(count))
    const before = walSize(path)
    await child.ask('go', 'storing')
    await until(() => walSize(path) - before >= grown || child.lines.includes('stored'))
    await child.kill()
    const stored = child.lines.includes('stored')
    const [row] = sql<{ n: number }>(
      path,
      'select count(*) as n from messages where content like ?',
      `round${round} %`,
    )
    expect(row?.n === 0 || row?.n === count).toBe(true)
    if (stored) expect(row?.n).toBe(count)
    else interrupted++
    expected += row?.n ?? 0

    const store = await openForTest({ path })
    expect(await store.messages.count('s')).toBe(expected)
    expect((await store.sessions.get('s'))?.message_count).toBe(expected)
    await store.close()
    expectSound(path)
  }
  expect(interrupted).toBeGreaterThanOrEqual(2)
  expect(expected).toBeGreaterThanOrEqual(count)
})

/** A file of the first Hermes schema, large enough that bringing it up to date takes its time. */
function writeVersion1(path: string): void {
  const schema = readFileSync(join(import.meta.dirname, '../golden/schema-001_initial.sql'), 'utf8')
  const db = new Database(path)
  db.pragma('journal_mode = wal')
  db.exec(schema)
  db.exec(`
    insert into schema_version (version) values (1);
    insert into sessions (id, source, started_at, message_count) values ('old', 'cli', 1000, 10000);
    with recursive n(n) as (select 1 union all select n + 1 from n where n < 10000)
    insert into messages (session_id, role, content, timestamp) select 'old', 'user', 'walrus ' || n, 1000 + n from n;
  `)
  db.close()
}

it('killed while a file of schema 1 is opened and migrated: the next one finds it whole and completes it', async () => {
  const folder = newFolder()
  const original = join(folder, 'original.db')
  writeVersion1(original)

  const copy = join(folder, 'whole.db')
  copyFileSync(original, copy)
  const measured = await start('opener.mjs')
  measured.send('go')
  await measured.ask(copy, 'opening')
  const started = performance.now()
  const { migrations } = JSON.parse(await measured.hear('opened'))
  const duration_ms = performance.now() - started
  await measured.kill()
  expect(migrations).toContain('006_reasoning')

  let interrupted = 0
  const rounds = 6
  for (let round = 0; round < rounds; round++) {
    const path = join(folder, `round-${round}.db`)
    copyFileSync(original, path)
    const child = await start('opener.mjs')
    child.send('go')
    await child.ask(path, 'opening')
    // Spread over the time that opening takes.
    await delay((duration_ms * round) / rounds)
    await child.kill()
    const opened = child.lines.some((line) => line.startsWith('opened'))
    if (!opened) interrupted++

    const [version] = sql<{ version: number }>(path, 'select version from schema_version')
    expect([1, 6]).toContain(version?.version)
    const store = await openForTest({ path })
    expect(store.info).toMatchObject({ schemaVersion: 6, additions: true, journalMode: 'wal' })
    expect(store.info.migrations).toEqual(version?.version === 1 ? migrations : [])
    expect(await store.messages.count('old')).toBe(10_000)
    expect((await store.search.messages('walrus 777')).map(({ id }) => id)).toEqual([777])
    await store.messages.append('old', { role: 'user', content: 'new', timestamp: 2000 })
    await store.close()
    expectSound(path)
    rmSync(path)
  }
  expect(interrupted).toBeGreaterThanOrEqual(1)
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
