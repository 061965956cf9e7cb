import { beforeEach, describe, expect, it } from 'vitest'
import type { StateStore, ToolCall } from '../../src/index.ts'
import { type Child, expectSound, pythonSqlite, sql, start } from '../support/processes.ts'
import { newPath, openForTest, rawRow } from '../support/stores.ts'

const call: ToolCall = { id: 'c1', type: 'function', function: { name: 'look', arguments: '{}' } }

describe.skipIf(!pythonSqlite)(
  `a Python program on the same file (${pythonSqlite ? `SQLite ${pythonSqlite}` : 'skipped: there is no python3 with sqlite3'})`,
  () => {
    let path: string
    let store: StateStore
    let python: Child
    const ask = async (...call: unknown[]) => JSON.parse(await python.ask(JSON.stringify(call)))
    const contents = async (session: string) =>
      (await store.messages.list(session)).map(({ content }) => content)
    const activity = (session: string) =>
      rawRow<{ last_active: number }>(
        store,
        'select last_active from hs_session_activity where session_id = ?',
        session,
      )

    beforeEach(async () => {
      path = newPath()
      store = await openForTest({ path })
      await store.sessions.create({ id: 'ours', source: 'cli', started_at: 1000 })
      python = await start('hermes_writer.py', path)
    })

    const expectSoundOnBothSides = async () => {
      expect(await ask('check')).toBe('ok')
      expectSound(path)
    }

    it('reads what was appended, structured content as words', async () => {
      await store.messages.append('ours', { role: 'user', content: 'a walrus' })
      await store.messages.append('ours', {
        role: 'user',
        content: [{ type: 'text', text: 'what is' }, { type: 'image_url' }, { type: 'text', text: 'on it' }],
      })
      expect(await ask('texts', 'ours')).toEqual(['a walrus', 'what is\non it'])
      expect(await ask('found', 'walrus')).toEqual([1])
      await expectSoundOnBothSides()
    })

    it('reads a message with half a character as valid UTF-8', async () => {
      await store.messages.append('ours', { role: 'user', content: 'bad \ud800 text' })
      await store.messages.append('ours', { role: 'user', content: [{ type: 'text', text: 'half \udc00' }] })
      expect(await ask('texts', 'ours')).toEqual(['bad \ufffd text', 'half \ufffd'])
      expect(sql(path, 'select hex(content) as bytes from messages where id = 1')).toEqual([
        { bytes: '62616420EFBFBD2074657874' },
      ])
      await expectSoundOnBothSides()
    })

    it('appends: our store sees its rows, counters and times, and finds its text', async () => {
      const before = Date.now() / 1000 - 1
      await ask('ensure_session', 'theirs', 'telegram')
      await ask('ensure_session', 'theirs', 'ignored')
      expect(await ask('append', 'theirs', 'user', 'the pelican 在码头')).toBe(1)
      expect(await ask('append', 'theirs', 'assistant', null, [call, call])).toBe(2)
      expect(await ask('append', 'ours', 'user', 'another pelican')).toBe(3)

      expect(await store.sessions.get('theirs')).toMatchObject({
        source: 'telegram',
        message_count: 2,
        tool_call_count: 2,
      })
      expect(await contents('theirs')).toEqual(['the pelican 在码头', null])
      expect((await store.messages.get(2))?.tool_calls).toEqual([call, call])
      expect((await store.search.messages('pelican')).map(({ id }) => id).toSorted()).toEqual([1, 3])
      expect((await store.search.messages('码头')).map(({ id }) => id)).toEqual([1])
      expect((await activity('ours')).last_active).toBeGreaterThan(before)
      const sessions = await store.sessions.list({ orderBy: 'lastActive' })
      expect(sessions.map(({ id }) => id)).toEqual(['ours', 'theirs'])
      expect(sessions.map(({ preview }) => preview)).toEqual(['another pelican', 'the pelican 在码头'])
      await expectSoundOnBothSides()
    })

    it('rewrites a structured message: our JSON of it goes, and its new text is found', async () => {
      const id = await store.messages.append('ours', {
        role: 'user',
        content: [{ type: 'text', text: 'an otter' }],
      })
      const kept = await store.messages.append('ours', {
        role: 'user',
        content: [{ type: 'text', text: 'stays' }],
      })
      await ask('rewrite', id, 'a beaver')
      expect(await contents('ours')).toEqual(['a beaver', [{ type: 'text', text: 'stays' }]])
      expect(sql(path, 'select message_id from hs_structured_content')).toEqual([{ message_id: kept }])
      expect(await store.search.messages('otter')).toEqual([])
      expect((await store.search.messages('beaver')).map((hit) => hit.id)).toEqual([id])
      await expectSoundOnBothSides()
    })

    it('deletes a structured message: nothing of it is left, and activity goes back', async () => {
      await store.messages.append('ours', { role: 'user', content: 'kept', timestamp: 2000 })
      const id = await store.messages.append('ours', {
        role: 'user',
        content: [{ type: 'text', text: 'an otter' }],
        timestamp: 3000,
      })
      expect((await activity('ours')).last_active).toBe(3000)
      await ask('delete', id)
      expect(await contents('ours')).toEqual(['kept'])
      expect(sql(path, 'select * from hs_structured_content')).toEqual([])
      expect((await activity('ours')).last_active).toBe(2000)
      expect(await store.search.messages('otter')).toEqual([])
      // Never given out again.
      expect(await ask('append', 'ours', 'user', 'next')).toBe(id + 1)
      await expectSoundOnBothSides()
    })

    it('appends at the same time as we do: nothing is lost on either side', async () => {
      const theirs = ask('append_many', 'ours', 'theirs', 100)
      const ours: number[] = []
      for (let n = 0; n < 20; n++)
        ours.push(
          ...(await Promise.all(
            Array.from({ length: 5 }, (_, m) =>
              store.messages.append('ours', { role: 'user', content: `ours ${5 * n + m}` }),
            ),
          )),
        )
      const ids: number[] = [...ours, ...(await theirs)]
      expect(new Set(ids).size).toBe(200)
      const messages = await store.messages.list('ours')
      expect(messages.map(({ id }) => id)).toEqual(ids.toSorted((a, b) => a - b))
      for (const name of ['ours', 'theirs'])
        expect(messages.flatMap(({ content }) => (`${content}`.startsWith(name) ? [content] : []))).toEqual(
          Array.from({ length: 100 }, (_, n) => `${name} ${n}`),
        )
      expect((await store.sessions.get('ours'))?.message_count).toBe(200)
      await expectSoundOnBothSides()
    })
  },
)
