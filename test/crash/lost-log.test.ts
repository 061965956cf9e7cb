import { spawnSync } from 'node:child_process'
import { copyFileSync, readFileSync, renameSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { beforeEach, describe, expect, it } from 'vitest'
import { FileReplacedError, openStateStore, type StateStore } from '../../src/index.ts'
import { expectSound, start, startSql, until } from '../support/processes.ts'
import { eventsOf, newFolder, newPath, openForTest } from '../support/stores.ts'

const user = (content: string) => ({ role: 'user', content })

let path: string
let store: StateStore

beforeEach(async () => {
  path = newPath()
  // Closed once: the tables are in the file, what follows is only in the log.
  await (await openForTest({ path })).close()
  store = await openForTest({ path })
  await store.sessions.create({ id: 's', source: 'cli' })
  for (let n = 1; n <= 5; n++) await store.messages.append('s', user(`before ${n}`))
})

/** What another process sees in the file. */
async function contentsElsewhere(): Promise<string[]> {
  const other = await startSql(path)
  const rows: { content: string }[] = JSON.parse(await other.ask('select content from messages order by id'))
  await other.kill()
  return rows.map(({ content }) => content)
}

const BEFORE = ['before 1', 'before 2', 'before 3', 'before 4', 'before 5']

describe('a file that was', () => {
  it('renamed refuses writes, and takes them again when it is back', async () => {
    renameSync(path, `${path}.away`)
    const append = store.messages.append('s', user('lost?'))
    await expect(append).rejects.toThrow(FileReplacedError)
    await expect(append).rejects.toThrow(/was deleted or renamed while it was open\. Nothing was written/)
    expect(await store.messages.count('s')).toBe(5)

    renameSync(`${path}.away`, path)
    await store.messages.append('s', user('after'))
    expect(await contentsElsewhere()).toEqual([...BEFORE, 'after'])
  })

  it('replaced by another refuses writes, and closing leaves the new one as it is', async () => {
    const other = newPath()
    await (await openStateStore({ path: other })).close()
    renameSync(other, path)
    const bytes = readFileSync(path)
    const transaction = store.transaction(async (tx) => tx.sessions.create({ id: 't', source: 'cli' }))
    await expect(transaction).rejects.toThrow(/was replaced by another file while it was open/)
    await expect(store.messages.append('s', user('lost?'))).rejects.toMatchObject({
      code: 'FILE_REPLACED',
      gone: false,
      path,
    })
    await store.close()
    expect(readFileSync(path).equals(bytes)).toBe(true)
  })

  it('deleted right after an append says so without another write', async () => {
    await store.messages.append('s', user('last'))
    for (const suffix of ['', '-wal', '-shm']) rmSync(path + suffix)
    await until(() => eventsOf(store, 'file-replaced').length > 0)
    expect(eventsOf(store, 'file-replaced')).toMatchObject([{ path, gone: true }])
  })
})

describe('a write-ahead log that was', () => {
  it('deleted takes nothing with it', async () => {
    await store.titles.set('s', 'A title')
    rmSync(`${path}-wal`)
    await store.messages.append('s', user('after'))
    expect(await contentsElsewhere()).toEqual([...BEFORE, 'after'])
    expect(eventsOf(store, 'log-lost')).toMatchObject([{ acknowledged: 0, appended: [] }])
    expect(await store.titles.get('s')).toBe('A title')
    expect(await store.search.messages('before')).toHaveLength(5)
    await store.close()
    expectSound(path)
  })

  it('deleted after the last append is noticed without another write', async () => {
    await store.messages.append('s', user('last'))
    rmSync(`${path}-wal`)
    rmSync(`${path}-shm`)
    await until(() => eventsOf(store, 'log-lost').length > 0)
    expect(await contentsElsewhere()).toEqual([...BEFORE, 'last'])
  })

  it('deleted is noticed when the store is closed', async () => {
    rmSync(`${path}-wal`)
    rmSync(`${path}-shm`)
    await store.close()
    expectSound(path)
    expect(await contentsElsewhere()).toEqual(BEFORE)
  })

  it.each(['closed', 'killed'])(
    'replaced by that of others (%s): what was acknowledged is stored again, behind what they wrote',
    async (end) => {
      await store.sessions.create({ id: 'child', source: 'cli', parent_session_id: 's' })
      await store.messages.append('child', {
        role: 'assistant',
        content: [{ type: 'text', text: '你好 🚀' }],
        client_id: 'sent once',
        tool_calls: [{ id: 'c', type: 'function', function: { name: 'run', arguments: '{}' } }],
      })
      for (const suffix of ['-wal', '-shm']) rmSync(path + suffix)
      // Synchronously: the store must not look at its file meanwhile.
      const other = spawnSync(
        process.execPath,
        [join(import.meta.dirname, '../support/children/takes-over.mjs'), path, end],
        { encoding: 'utf8' },
      )
      expect(other.stderr).toBe('')
      const id = await store.messages.append('s', user('after'))

      expect(await store.messages.count('theirs')).toBe(30)
      expect((await store.messages.list('s')).map(({ content }) => content)).toEqual([...BEFORE, 'after'])
      expect(await store.messages.list('child')).toMatchObject([{ content: [{ text: '你好 🚀' }] }])
      expect(await store.sessions.get('child')).toMatchObject({
        parent_session_id: 's',
        message_count: 1,
        tool_call_count: 1,
      })
      expect(await store.sessions.get('s')).toMatchObject({ message_count: 6 })
      const [event] = eventsOf(store, 'log-lost')
      expect(event).toMatchObject({ acknowledged: 6 })
      expect(event?.appended.map(({ from }) => from)).toEqual([1, 2, 3, 4, 5, 6])
      const again = await store.messages.append('child', { role: 'assistant', client_id: 'sent once' })
      expect(again).toBe(event?.appended.at(-1)?.to)
      expect(id).toBeGreaterThan(event?.appended.at(-1)?.to ?? Number.POSITIVE_INFINITY)
      expect((await store.search.messages('你好')).map(({ session_id }) => session_id)).toEqual(['child'])
      await store.close()
      expectSound(path)
    },
  )

  it('unlinked by a process that took itself for the last one, because fs had dropped our locks', async () => {
    const copy = newFolder()
    for (const suffix of ['', '-wal', '-shm']) copyFileSync(path + suffix, join(copy, `copy${suffix}`))
    const other = await startSql(path)
    await other.ask(
      "insert into messages (session_id, role, content, timestamp) values ('s', 'user', 'theirs', 2)",
    )
    await other.ask("update sessions set message_count = message_count + 1 where id = 's'")
    other.send('close')
    await other.ended
    for (const content of ['after 1', 'after 2', 'after 3']) await store.messages.append('s', user(content))
    expect(await contentsElsewhere()).toEqual([...BEFORE, 'theirs', 'after 1', 'after 2', 'after 3'])
    await store.close()
    expectSound(path)
    expect(await contentsElsewhere()).toEqual([...BEFORE, 'theirs', 'after 1', 'after 2', 'after 3'])
  })

  it('lost while another process holds the lock: the write waits, then all of it lands', async () => {
    rmSync(`${path}-wal`)
    rmSync(`${path}-shm`)
    const other = await startSql(path)
    await other.ask("insert into sessions (id, source, started_at) values ('theirs', 'cli', 1)")
    await other.ask('begin immediate')
    let landed = false
    const append = store.messages.append('s', user('after')).then(() => {
      landed = true
    })
    const reads: number[] = []
    for (let n = 0; n < 20; n++) reads.push(await store.messages.count('s'))
    expect(landed).toBe(false)
    await other.ask('commit')
    await append
    expect(await contentsElsewhere()).toEqual([...BEFORE, 'after'])
  })

  it('deleted in the tick in which the process exits takes nothing with it', async () => {
    await store.close()
    const child = await start('loses-log.mjs', path)
    child.send('go')
    expect(await child.ended).toEqual({ code: 0, signal: null })
    expect(child.stderr).toBe('')
    expect(await contentsElsewhere()).toEqual([...BEFORE, 'acknowledged', 'queued'])
  })

  it('replaced by another process before the process exits, which has searched, takes nothing with it', async () => {
    await store.close()
    const child = await start('loses-searched-log.mjs', path)
    child.send('go')
    expect(await child.hear('found')).toBe('5')
    expect(await child.ended).toEqual({ code: 0, signal: null })
    expect(child.stderr).toBe('')
    expect((await contentsElsewhere()).sort()).toEqual([...BEFORE, 'acknowledged', 'other', 'queued'].sort())
  })
})
