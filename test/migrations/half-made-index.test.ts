import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { MigrationNeededError, openStateStore } from '../../src/index.ts'
import { change, STRUCTURE } from '../support/flawed-files.ts'
import { hermesRows } from '../support/hermes-file.ts'
import { abandon, expectFinished, LAST_ID, type LargeKind, largeFile, MANY } from '../support/large-file.ts'
import { expectComplete, found, storedRows } from '../support/mended-files.ts'
import { sql, start } from '../support/processes.ts'
import { openForTest } from '../support/stores.ts'

const MENDED = ['word index (it was half made)']

const KINDS: [LargeKind][] = [['with its word index'], ['with a word index of its first messages']]

test.each(KINDS)('opening a large file %s can be given up; it is read and searched', async (kind) => {
  const path = largeFile(kind)
  await abandon(path)
  const before = readFileSync(path)
  const store = await openForTest({ path, readonly: true })
  expect(store.info).toMatchObject({ wordIndexProblem: 'is being made anew', additions: true, mended: [] })
  expect(await storedRows(store)).toEqual(hermesRows(6))
  expect(await found(store, 'walrus')).toEqual([1, 3])
  expect(await store.search.messages(`narwhal ${MANY}`)).toMatchObject([{ id: LAST_ID, route: 'substring' }])
  await store.close()
  const opening = openStateStore({ path, migrate: false })
  await expect(opening).rejects.toThrow(MigrationNeededError)
  await expect(opening).rejects.toThrow(/the rest of its word index/)
  expect(readFileSync(path).equals(before)).toBe(true)
})

test.each(KINDS)('what was given up in a file %s is finished, with what was written since', async (kind) => {
  const path = largeFile(kind)
  await abandon(path)
  change(
    path,
    `UPDATE messages SET content = 'since then' WHERE id IN (10, 20000);
     DELETE FROM messages WHERE id IN (11, 20001);
     INSERT INTO messages (session_id, role, content, timestamp) VALUES ('many', 'user', 'since then', 9000);
     UPDATE sessions SET message_count = message_count - 1 WHERE id = 'many'`,
  )
  const store = await openForTest({ path })
  expect(store.info).toMatchObject({ wordIndexProblem: null, migrations: [], mended: MENDED })
  expect(await found(store, 'since then')).toEqual([10, 20_000, LAST_ID + 1])
  await store.close()
  await expectFinished(path)
})

test('what processes have died of is finished by the next', async () => {
  const counter = await start('stops-at.mjs', largeFile('without its word index'))
  const steps = Number(await counter.ask('go', 'steps'))
  const path = largeFile('without its word index')
  let last = 0
  for (const step of [steps - 70, 30, 30]) {
    const child = await start('stops-at.mjs', path, String(step))
    child.send('go')
    expect(await child.ended).toMatchObject({ signal: 'SIGKILL' })
    expect(sql(path, 'pragma integrity_check')).toEqual([{ integrity_check: 'ok' }])
    const [progress] = sql<{ done: number }>(path, 'select done from hs_words_progress')
    expect(progress!.done).toBeGreaterThan(last)
    last = progress!.done
    const reader = await openForTest({ path, readonly: true })
    expect(await found(reader, `narwhal ${MANY}`)).toEqual([LAST_ID])
    await reader.close()
  }
  const store = await openForTest({ path })
  expect(store.info).toMatchObject({ migrations: [], mended: MENDED })
  await store.close()
  await expectFinished(path)
})

test.each([
  ['lost its table', 'DROP TABLE hs_words'],
  ['was damaged', STRUCTURE.unreadable.replace('messages_fts', 'hs_words')],
  ['lost a trigger, and a message', 'DROP TRIGGER hs_words_delete; DELETE FROM messages WHERE id = 10'],
  ['lost its progress', 'DROP TABLE hs_words_progress'],
  ['forgot its progress', 'DELETE FROM hs_words_progress'],
  ['saw a message move ahead of it', 'UPDATE messages SET id = 90000 WHERE id = 10'],
  [
    'saw a message move behind it',
    'DELETE FROM messages WHERE id = 10; UPDATE messages SET id = 10 WHERE id = 20000',
  ],
])('a half-made index that %s is made none the less', async (_, damage) => {
  const path = largeFile('without its word index')
  await abandon(path)
  change(path, damage)
  const store = await openForTest({ path })
  expect(await found(store, 'walrus')).toEqual([1, 3])
  const id = await store.messages.append('many', { role: 'user', content: 'A walrus, again' })
  expect(await found(store, 'walrus')).toEqual([1, 3, id])
  await store.sessions.recount('many')
  await store.close()
  await expectComplete(path)
})
