import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import type { ExportFormat, StateStore } from '../../src/index.ts'
import { FORMATS } from '../../src/transfer/formats.ts'
import { fileKinds, newFolder, openForTest, rawRun } from '../support/stores.ts'
import { contents, withoutIds } from '../support/transfer.ts'

/** A session as another program may have stored it, all of it JSON. */
async function fill(store: StateStore): Promise<void> {
  await rawRun(
    store,
    `insert into sessions (id, source, started_at, message_count, model_config)
     values ('odd', 'odd', 1, 2, '{"tools": [{"maximum": 9223372036854775807}]}')`,
  )
  await rawRun(
    store,
    `insert into messages (session_id, role, content, tool_calls, reasoning_details, timestamp)
     values ('odd', 'user', char(0) || 'json:"half \\ud83d"', null, '"in a word"', 1),
       ('odd', 'assistant', char(0) || 'json:[{"n": 1.0}]', ?, null, 2)`,
    '[7, {"id": "a"}, {"id": "b", "function": {"name": "look", "arguments": "{}"}}]',
  )
}

async function exported(store: StateStore, format: ExportFormat) {
  const path = join(newFolder(), 'odd.jsonl')
  const { not_carried } = await store.transfer.exportFile(path, { format, sessionIds: ['odd'] })
  return { path, not_carried }
}

describe.each(fileKinds)('what others stored in $name', ({ open }) => {
  test.each(['bundle', 'hermes'] as const)('goes out as a %s, and comes back the same', async (format) => {
    const store = await open()
    await fill(store)
    const { path, not_carried } = await exported(store, format)
    expect(not_carried).toEqual({})
    const other = await openForTest({ path: ':memory:' })
    expect(await other.transfer.importFile(path)).toMatchObject({ imported: 1, not_carried: {} })
    expect(await contents(other)).toEqual(await contents(store, 'odd'))
    expect(withoutIds(await other.transfer.exportSession('odd'))).toMatchObject({
      raw: { model_config: '{"tools": [{"maximum": 9223372036854775807}]}' },
      messages: [
        { content: 'half \ud83d', reasoning_details: 'in a word', raw: { content: '"half \\ud83d"' } },
        { content: [{ n: 1 }], raw: { content: '[{"n": 1.0}]', tool_calls: expect.any(String) } },
      ],
    })
  })

  test.each(Object.keys(FORMATS) as ExportFormat[])(
    'goes out as %s without what is no call, which is counted',
    async (format) => {
      const store = await open()
      await fill(store)
      const { path, not_carried } = await exported(store, format)
      expect(not_carried).toMatchObject({ raw: 1, 'messages.raw': 2 })
      expect(not_carried['messages.tool_calls']).toBe(2)
      const text = readFileSync(path, 'utf8')
      expect(text).toContain('look')
      expect(text).not.toContain('[7')
    },
  )
})
