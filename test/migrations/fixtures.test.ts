import { copyFileSync, existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { VERSIONS } from '../support/hermes-file.ts'
import { eventsOf, newPath, openForTest } from '../support/stores.ts'

const folder = join(import.meta.dirname, '../../../shared/fixtures')

type Cell = string | number | null | { $blob_hex: string } | { $text_hex: string }
type Row = Record<string, Cell>
interface Fixture {
  sessions: (Row & { id: string; messages: (Row & { id: number })[] })[]
}

const JSON_COLUMNS = ['model_config', 'tool_calls', 'reasoning_details', 'codex_reasoning_items']

describe.skipIf(!existsSync(folder))('files that Hermes wrote (skipped without ../shared/fixtures)', () => {
  test.each(VERSIONS)('every session and message of schema %i is read as it was stored', async (version) => {
    const name = join(folder, `state-v${version}`)
    const { sessions } = JSON.parse(readFileSync(`${name}.json`, 'utf8')) as Fixture
    const path = newPath()
    copyFileSync(`${name}.db`, path)
    const store = await openForTest({ path })

    expect(store.info).toMatchObject({ schemaVersion: 6, additions: true })
    expect(await store.sessions.count()).toBe(sessions.length)
    expect(await store.messages.count()).toBe(sessions.flatMap(({ messages }) => messages).length)
    for (const { messages, ...row } of sessions) {
      const session = await store.sessions.get(row.id)
      expect(pick(session, row)).toEqual(read(row))
      const stored = await store.messages.list(row.id)
      expect(stored.map(({ id }) => id)).toEqual(messages.map(({ id }) => id))
      expect(stored.map((message, index) => pick(message, messages[index]!))).toEqual(messages.map(read))
    }
    expect(eventsOf(store, 'broken-json')).toEqual([])
    expect(eventsOf(store, 'duplicate-title')).toEqual([])

    // Migrating kept the word index: every message with the word is found, and no other.
    const withWord = sessions
      .flatMap(({ messages }) => messages)
      .filter(({ content }) => /\bdocker\b/i.test(String(content)))
      .map(({ id }) => id)
    const hits = await store.search.messages('docker', { limit: 100 })
    expect(withWord.length).toBeGreaterThan(4)
    expect(hits.map(({ id }) => id).sort((a, b) => a - b)).toEqual(withWord)
  })
})

/** The columns that the file has. */
function pick(value: object | null, row: Row): Record<string, unknown> {
  const record = { ...value } as Record<string, unknown>
  return Object.fromEntries(Object.keys(row).map((column) => [column, record[column]]))
}

/** A row of the JSON as the store reads it: JSON columns parsed, bytes as the text they mean. */
function read(row: Row): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(row).map(([column, cell]) => {
      const value = text(cell)
      return [column, JSON_COLUMNS.includes(column) && value !== null ? JSON.parse(String(value)) : value]
    }),
  )
}

function text(cell: Cell): string | number | null {
  if (cell === null || typeof cell !== 'object') return cell
  return Buffer.from('$blob_hex' in cell ? cell.$blob_hex : cell.$text_hex, 'hex').toString('utf8')
}
