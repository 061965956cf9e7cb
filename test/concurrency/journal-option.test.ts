import { expect, it } from 'vitest'
import { CannotOpenError, OptionConflictError, openStateStore, StateStoreBusyError } from '../../src/index.ts'
import { sql, startSql } from '../support/processes.ts'
import { eventsOf, newPath, openForTest } from '../support/stores.ts'

const user = (content: string) => ({ role: 'user', content })

it("with journalMode 'delete', a new file is made without a write-ahead log, and is said to be so without a warning", async () => {
  const path = newPath()
  const store = await openForTest({ path, journalMode: 'delete' })
  expect(store.info.journalMode).toBe('delete')
  await store.sessions.create({ id: 's', source: 'cli' })
  await store.messages.append('s', user('kept'))
  await store.close()
  expect(sql(path, 'pragma journal_mode')).toEqual([{ journal_mode: 'delete' }])
  const again = await openForTest({ path, journalMode: 'delete' })
  expect((await again.messages.list('s')).map(({ content }) => content)).toEqual(['kept'])
  expect(eventsOf(again, 'journal-mode')).toEqual([])
})

it("with journalMode 'delete', a file in WAL mode is changed, and keeps what is in its log", async () => {
  const path = newPath()
  const first = await openForTest({ path })
  await first.sessions.create({ id: 's', source: 'cli' })
  await first.close()
  const store = await openForTest({ path, journalMode: 'delete' })
  expect(store.info.journalMode).toBe('delete')
  expect(await store.sessions.exists('s')).toBe(true)
})

it("with journalMode 'delete', a file that another process has open in WAL mode is refused", async () => {
  const path = newPath()
  await (await openForTest({ path })).close()
  const other = await startSql(path)
  await other.ask('select count(*) from messages')
  await expect(openStateStore({ path, journalMode: 'delete', busyTimeout: 50 })).rejects.toThrow(
    StateStoreBusyError,
  )
  await other.kill()
  expect(sql(path, 'pragma journal_mode')).toEqual([{ journal_mode: 'wal' }])
})

it("with journalMode 'wal', what cannot have a write-ahead log is refused", async () => {
  await expect(openStateStore({ path: ':memory:', journalMode: 'wal' })).rejects.toThrow(
    new CannotOpenError(
      "SQLite keeps ':memory:' in journal mode 'memory' and not in 'wal': leave journalMode out to use it as it is. Its messages were not touched.",
    ),
  )
  const store = await openForTest({ path: newPath(), journalMode: 'wal' })
  expect(store.info.journalMode).toBe('wal')
})

it('another store of the file in the same process must agree', async () => {
  const path = newPath()
  await openForTest({ path })
  await openForTest({ path, journalMode: 'wal' })
  await expect(openStateStore({ path, journalMode: 'delete' })).rejects.toThrow(OptionConflictError)
})

it('is one of two words', async () => {
  // @ts-expect-error
  await expect(openStateStore({ path: newPath(), journalMode: 'truncate' })).rejects.toThrow(
    new TypeError("journalMode must be 'wal' or 'delete'."),
  )
})
