import { readFileSync } from 'node:fs'
import Database from 'better-sqlite3'
import { describe, expect, test } from 'vitest'
import { copyFixture, type Fixture, fixtures, unlike } from '../../scripts/fixtures/stored.ts'
import {
  CannotOpenError,
  DamagedFileError,
  inspectStateFile,
  NotAStateFileError,
  type OpenOptions,
  openStateStore,
} from '../../src/index.ts'
import { eventsOf, newPath, openForTest } from '../support/stores.ts'

const all = fixtures()
const readable = all.filter(({ stored }) => stored !== undefined)
const refused: Record<string, new (...args: never[]) => Error> = {
  'hard/text-file': NotAStateFileError,
  'hard/truncated': DamagedFileError,
}
const named = (list: Fixture[]) => list.map((fixture) => [fixture.name, fixture] as const)
const isNewer = (name: string) => Number([...name.matchAll(/v(\d+)/g)].at(-1)?.[1]) > 6

/** Files of later schemas that are written, too: the issue of a broken word index is the file's own. */
const written = readable.filter(({ name }) => !isNewer(name) || name !== 'migrated/v6-to-v26')

function copied(fixture: Fixture): string {
  const path = newPath()
  copyFixture(fixture, path)
  return path
}

describe.skipIf(all.length === 0)('files that Hermes wrote (skipped without ../shared/fixtures)', () => {
  test.for(named(readable))('%s is read as its JSON says', async ([name, fixture]) => {
    const path = copied(fixture)
    const before = readFileSync(path)
    const store = await openForTest({ path })
    const untitled = eventsOf(store, 'duplicate-title').map(({ session_id }) => session_id)

    expect(await unlike(store, fixture.stored!, untitled)).toEqual([])
    expect(store.info.readonly).toBe(isNewer(name))
    if (!isNewer(name)) return
    await store.close()
    expect(readFileSync(path).equals(before)).toBe(true)
  })

  test.for(named(readable))('%s is read so without writing it', async ([_, fixture]) => {
    const path = copied(fixture)
    const before = readFileSync(path)
    const store = await openForTest({ path, readonly: true })
    expect(await unlike(store, fixture.stored!, [])).toEqual([])
    await store.close()
    expect(readFileSync(path).equals(before)).toBe(true)
  })

  test.for(named(all.filter(({ name }) => name in refused)))(
    '%s is refused with its bytes unchanged',
    async ([name, fixture]) => {
      const path = copied(fixture)
      const before = readFileSync(path)
      for (const options of [{}, { readonly: true }, { newerSchema: 'write' }] satisfies OpenOptions[]) {
        const opening = openStateStore({ path, ...options })
        await expect(opening).rejects.toThrow(refused[name]!)
        await expect(opening).rejects.toThrow(path)
      }
      expect(readFileSync(path).equals(before)).toBe(true)
    },
  )

  test('a file of 0 bytes becomes a store, and says so', async () => {
    const path = copied(all.find(({ name }) => name === 'hard/zero-byte')!)
    await expect(openStateStore({ path, readonly: true })).rejects.toThrow(CannotOpenError)
    const store = await openForTest({ path })
    expect(eventsOf(store, 'empty-file')).toMatchObject([{ level: 'warning', path }])
    expect(await store.sessions.count()).toBe(0)
  })

  test.for(named(written))(
    '%s keeps its word index right through append, update and delete of every message',
    async ([name, fixture]) => {
      const path = copied(fixture)
      const store = await openForTest({ path, newerSchema: 'write' })
      expect(store.info.readonly).toBe(false)
      checkIndex(path)

      const [session] = fixture.stored!.sessions
      const appended = await store.messages.append(session!.id, { role: 'user', content: 'A walrus, again' })
      await store.messages.appendMany(session!.id, [
        { role: 'assistant', content: [{ type: 'text', text: 'seal' }], tool_calls: [CALL] },
        { role: 'tool', content: 'forty', tool_name: 'count', tool_call_id: 'c' },
      ])
      expect((await store.search.messages('walrus', { limit: 100 })).map(({ id }) => id)).toContain(appended)
      checkIndex(path)

      await store.sessions.end(session!.id, 'done')
      await store.titles.set(session!.id, 'A walrus')
      await store.usage.add(session!.id, { input_tokens: 3, model: 'm' })
      expect(await store.sessions.get(session!.id)).toMatchObject({ title: 'A walrus' })

      const db = new Database(path)
      const count = db.prepare('select count(*) from messages').pluck()
      expect(db.prepare("update messages set content = 'seal ' || id").run().changes).toBe(count.get())
      checkIndex(path)
      expect((await store.search.messages('seal', { limit: 1000 })).length).toBeGreaterThan(50)
      expect(db.prepare('delete from messages').run().changes).toBeGreaterThan(50)
      db.close()
      checkIndex(path)
      expect(await store.search.messages('seal')).toEqual([])
      if (isNewer(name)) expect(store.info.schemaVersion).toBeGreaterThan(6)
    },
  )

  test.for(named(readable))('%s is found by its words', async ([name, fixture]) => {
    const store = await openForTest({ path: copied(fixture) })
    const withWord = fixture
      .stored!.sessions.flatMap(({ messages }) => messages)
      .filter(({ active, compacted }) => active !== 0 || compacted === 1)
      .filter(({ content }) => /\bdocker\b/i.test(String(content)))
      .map(({ id }) => id)
    const hits = await store.search.messages('docker', { limit: 100 })
    expect(withWord.length).toBeGreaterThan(4)
    expect(new Set(hits.map(({ route }) => route))).toEqual(
      new Set([name === 'migrated/v6-to-v26' ? 'substring' : 'words']),
    )
    expect(hits.map(({ id }) => id)).toEqual(expect.arrayContaining(withWord))
  })

  test.for(named(readable))('%s is known before it is opened', async ([name, fixture]) => {
    const report = await inspectStateFile(copied(fixture))
    expect(report.kind).toBe(isNewer(name) ? 'newer' : 'hermes')
  })
})

const CALL = { id: 'c', type: 'function', function: { name: 'count', arguments: '{}' } }

/** Compares the word index, and that of trigrams where there is one, with the messages; throws where they differ. */
function checkIndex(path: string): void {
  const db = new Database(path)
  try {
    db.exec("insert into messages_fts(messages_fts, rank) values ('integrity-check', 1)")
    if (db.prepare("select 1 from sqlite_schema where name = 'messages_fts_trigram'").get())
      db.exec("insert into messages_fts_trigram(messages_fts_trigram, rank) values ('integrity-check', 1)")
  } finally {
    db.close()
  }
}
