import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { micromark } from 'micromark'
import { gfm, gfmHtml } from 'micromark-extension-gfm'
import { describe, expect, test } from 'vitest'
import { copyFixture, type Fixture, fixtures } from '../../scripts/fixtures/stored.ts'
import type { FormatName, SessionRecord } from '../../src/index.ts'
import { addCounts, type Counts } from '../../src/transfer/counts.ts'
import { toChat } from '../../src/transfer/export-format.ts'
import { FORMATS } from '../../src/transfer/formats.ts'
import { expectCarried } from '../support/formats.ts'
import { newFolder, newPath, openForTest } from '../support/stores.ts'
import { contents, sizes } from '../support/transfer.ts'

const readable = fixtures().filter(({ stored }) => stored !== undefined)
const named = readable.map((fixture) => [fixture.name, fixture] as const)
const formats = Object.keys(FORMATS) as FormatName[]

const memory = () => openForTest({ path: ':memory:' })

/** A store with what a fixture holds. */
async function imported(fixture: Fixture) {
  const path = newPath()
  copyFixture(fixture, path)
  const store = await memory()
  return { store, report: await store.transfer.importFile(path) }
}

/** How many messages each session has, and how many of the file have been taken back or summarised away. */
function counted({ stored }: Fixture): { live: Record<string, number>; inactive: number } {
  const live: Record<string, number> = {}
  let inactive = 0
  for (const { id, messages } of stored!.sessions) {
    const away = messages.filter(({ active, compacted }) => active === 0 || compacted === 1).length
    live[id] = messages.length - away
    inactive += away
  }
  return { live, inactive }
}

/** The conversation of a session, as a format gets it: without what is no call. */
function conversationOf({ title, model, source, system_prompt, model_config, messages }: SessionRecord) {
  return {
    title: title ?? undefined,
    model: model ?? undefined,
    source,
    system_prompt: system_prompt ?? undefined,
    tools: model_config?.tools,
    messages: messages.map(({ id: _, raw: _raw, ...message }) => ({
      ...message,
      tool_calls: message.tool_calls?.filter((call) => typeof call.function?.name === 'string'),
    })),
  }
}

describe.skipIf(readable.length === 0)('what Hermes wrote (skipped without ../shared/fixtures)', () => {
  test.for(named)('%s is imported whole', async ([_, fixture]) => {
    const { live, inactive } = counted(fixture)
    const { store, report } = await imported(fixture)
    expect(report).toMatchObject({
      imported: Object.keys(live).length,
      messages: Object.values(live).reduce((sum, count) => sum + count, 0),
    })
    expect(report.not_carried['messages.inactive'] ?? 0).toBe(inactive)
    expect(await sizes(store)).toEqual(live)
    const { integrity, rows } = await store.maintenance.check({ full: true })
    expect(integrity).toEqual([])
    expect(rows).toMatchObject({ foreignKeys: { total: 0 }, lineageCycles: { total: 0 } })
  })

  test.for(named)('%s goes out as a bundle, in and out again, and is the same', async ([_, fixture]) => {
    const { store } = await imported(fixture)
    const bundle = join(newFolder(), 'all.jsonl.gz')
    await store.transfer.exportFile(bundle)
    const other = await memory()
    const report = await other.transfer.importFile(bundle)
    expect(report.sessions.filter((session) => Object.keys(session).join() !== 'id,status')).toEqual([])
    expect(report.not_carried).toEqual({})
    expect(await contents(other)).toEqual(await contents(store))
  })

  test.for(named)('%s goes out as Hermes writes it, and is the same', async ([_, fixture]) => {
    const { store } = await imported(fixture)
    const lines = join(newFolder(), 'hermes.jsonl')
    const { sessions, not_carried } = await store.transfer.exportFile(lines, { format: 'hermes' })
    expect(sessions).toBe(fixture.stored!.sessions.length)
    expect(not_carried).toEqual({})
    const other = await memory()
    expect(await other.transfer.importFile(lines)).toMatchObject({ imported: sessions, not_carried: {} })
    expect(await contents(other)).toEqual(await contents(store))
  })

  test.for(named)(
    '%s goes out in each format, and comes back equal in what that carries',
    async ([_, fixture]) => {
      const { store } = await imported(fixture)
      const sessions: SessionRecord[] = []
      for (const { id } of fixture.stored!.sessions) sessions.push(await store.transfer.exportSession(id))
      for (const format of formats) {
        const lost: Counts = {}
        for (const session of sessions) {
          const converted = toChat(session, format)
          addCounts(lost, converted.not_carried)
          expectCarried(format, conversationOf(session), converted)
        }
        const path = join(newFolder(), 'all.jsonl')
        expect((await store.transfer.exportFile(path, { format })).not_carried, format).toEqual(lost)
      }
    },
  )

  test.for(named)(
    '%s goes out as Markdown, with a heading for each message but results',
    async ([_, fixture]) => {
      const { store } = await imported(fixture)
      const path = join(newFolder(), 'all.md')
      await store.transfer.exportFile(path, { format: 'markdown' })
      let messages = 0
      for await (const record of store.transfer.exportAll())
        if ('messages' in record && typeof record.messages !== 'number')
          messages += record.messages.filter(({ role, inactive }) => role !== 'tool' && !inactive).length
      const html = micromark(readFileSync(path, 'utf8'), { extensions: [gfm()], htmlExtensions: [gfmHtml()] })
      expect(html.match(/^<h1>/gm) ?? []).toHaveLength(fixture.stored!.sessions.length)
      expect(html.match(/^<h2>/gm) ?? []).toHaveLength(messages)
    },
  )
})
