import { join } from 'node:path'
import Database from 'better-sqlite3'
import fc from 'fast-check'
import { describe, expect, onTestFinished, test } from 'vitest'
import { type ExportFormat, openStateStore } from '../../src/index.ts'
import { FORMATS } from '../../src/transfer/formats.ts'
import { anyRows, type Cell, type Cells, messageCells, sessionCells } from '../support/any-rows.ts'
import { fileKinds, newFolder } from '../support/stores.ts'
import { contents } from '../support/transfer.ts'

const JSON_COLUMNS = new Set(['model_config', 'tool_calls', 'reasoning_details', 'codex_reasoning_items'])

interface Column {
  name: string
  type: string
  dflt_value: string | null
}

const columnsOf = (db: Database.Database, table: string) =>
  db.prepare<[string], Column>('select name, type, dflt_value from pragma_table_info(?)').all(table)

/** Bytes in columns of text stay bytes, or become text that may not be UTF-8. */
function insert(db: Database.Database, table: string, rows: readonly Cells[], asText: boolean): void {
  const columns = columnsOf(db, table)
  const values = columns.map(({ type }) => (type === 'TEXT' && asText ? 'cast(? as text)' : '?'))
  const names = columns.map(({ name }) => name)
  const statement = db.prepare(`insert into ${table} (${names}) values (${values})`)
  for (const row of rows) statement.run(names.map((name) => row[name]))
}

/** The parts of JSON text, each text in it read: white space and escapes are not kept. */
function tokens(source: string): unknown {
  try {
    JSON.parse(source)
  } catch {
    return source
  }
  const parts = source.match(/"(?:[^"\\]|\\.)*"|[[\]{}:,]|[^\s"[\]{}:,]+/g) ?? []
  return parts.map((part) => (part.startsWith('"') ? { text: JSON.parse(part) } : part))
}

/** What content says, wherever its JSON is: text as such, lists and objects as tokens. */
function contentMeans(content: string | null, structured: string | null): unknown {
  const source = structured ?? (content?.startsWith('\0json:') ? content.slice('\0json:'.length) : null)
  if (source === null) return content
  try {
    const value: unknown = JSON.parse(source)
    if (typeof value === 'string') return value
    return typeof value === 'object' && value !== null ? tokens(source) : content
  } catch {
    return content
  }
}

const read = (cell: Cell): string | null => (cell === null ? null : String(cell))

/** What the rows of a file mean, without the ids of messages: what an import must keep of them. */
function meaning(path: string, additions: boolean): unknown[] {
  const db = new Database(path, { readonly: true })
  try {
    const mean = ({ name, type, dflt_value }: Column, cell: Cell): unknown => {
      // A count that nobody has written is none, and costs have twelve digits.
      if (cell === null) return dflt_value === '0' ? 0 : null
      if (name.endsWith('_cost_usd')) return Number(Number(cell).toPrecision(12))
      if (JSON_COLUMNS.has(name)) return tokens(String(cell))
      return type === 'TEXT' ? String(cell) : cell
    }
    const rowsOf = (table: string, order: string) => {
      const columns = columnsOf(db, table)
      return db
        .prepare<[], Cells>(`select * from ${table} order by ${order}`)
        .all()
        .map((row) => ({
          row,
          means: columns.map((column) => [column.name, mean(column, row[column.name]!)] as const),
        }))
    }
    const beside = (table: string, column: string, id: Cell) =>
      additions
        ? (db.prepare<[Cell], Cell>(`select ${column} from ${table} where message_id = ?`).pluck().get(id) ??
          null)
        : null
    const messages = rowsOf('messages', 'session_id, id').map(({ row, means }) => ({
      ...Object.fromEntries(means),
      id: null,
      content: contentMeans(read(row.content!), read(beside('hs_structured_content', 'content', row.id!))),
      client_id: beside('hs_client_ids', 'client_id', row.id!),
    }))
    return [...rowsOf('sessions', 'id').map(({ means }) => Object.fromEntries(means)), ...messages]
  } finally {
    db.close()
  }
}

function empty(db: Database.Database): void {
  db.exec('delete from messages; delete from sessions')
}

/** Another program's connection to a file. */
function connect(path: string): Database.Database {
  const db = new Database(path)
  db.pragma('foreign_keys = off')
  db.pragma('synchronous = off')
  onTestFinished(() => void db.close())
  return db
}

const formats = ['hermes', ...Object.keys(FORMATS)] as ExportFormat[]

const lines = (records: readonly object[]) => records.map((record) => JSON.stringify(record))

describe.each(fileKinds.filter(({ existing }) => existing.sessions === 0))(
  'in $name',
  ({ open, additions }) => {
    test('every column of a session and of a message is among those that are tried', async () => {
      const db = connect((await open()).info.path)
      const names = (table: string) => columnsOf(db, table).map(({ name }) => name)
      expect(names('sessions').sort()).toEqual(Object.keys(sessionCells).sort())
      expect(names('messages').sort()).toEqual(Object.keys(messageCells).sort())
    })

    test('what a file holds goes out, comes in elsewhere, and goes out the same', async () => {
      const from = await open()
      const to = await open()
      const folder = newFolder()
      const [source, target] = [connect(from.info.path), connect(to.info.path)]
      let run = 0
      await fc.assert(
        fc.asyncProperty(anyRows, fc.boolean(), async (rows, asText) => {
          empty(source)
          empty(target)
          insert(source, 'sessions', rows.sessions, asText)
          insert(source, 'messages', rows.messages, asText)
          if (additions) {
            insert(source, 'hs_structured_content', rows.structured, asText)
            insert(source, 'hs_client_ids', rows.clientIds, asText)
          }
          const bundle = join(folder, `${run++}.jsonl`)
          expect(await from.transfer.exportFile(bundle)).toMatchObject({
            sessions: rows.sessions.length,
            messages: rows.messages.length,
          })
          const report = await to.transfer.importFile(bundle)
          expect(report.sessions.filter(({ status }) => status === 'refused')).toEqual([])
          expect(report).toMatchObject({
            imported: rows.sessions.length,
            messages: rows.messages.length,
            not_carried: {},
          })
          expect(lines(await contents(to))).toEqual(lines(await contents(from)))
          expect(meaning(to.info.path, additions)).toEqual(meaning(from.info.path, additions))
        }),
        { numRuns: 150 },
      )
      const { integrity, indexes } = await to.maintenance.check({ full: true })
      expect(integrity).toEqual([])
      expect(indexes.filter(({ problem }) => problem !== null)).toEqual([])
    }, 120_000)

    test('what a file holds goes out in every format, and comes in', async () => {
      const from = await open()
      const folder = newFolder()
      const source = connect(from.info.path)
      let run = 0
      await fc.assert(
        fc.asyncProperty(anyRows, fc.constantFrom(...formats), async (rows, format) => {
          empty(source)
          insert(source, 'sessions', rows.sessions, false)
          insert(source, 'messages', rows.messages, false)
          const path = join(folder, `${run++}.jsonl`)
          expect(await from.transfer.exportFile(path, { format })).toMatchObject({
            sessions: rows.sessions.length,
          })
          const to = await openStateStore({ path: ':memory:', worker: false, onEvent: () => {} })
          try {
            const { sessions } = await to.transfer.importFile(path)
            if (format === 'hermes') expect(lines(await contents(to))).toEqual(lines(await contents(from)))
            // Of the others, a reader refuses numbers that would not come back.
            const refused = sessions.filter(({ status }) => status !== 'imported')
            expect(refused.filter(({ reason }) => !reason?.includes('beyond 2^53'))).toEqual([])
            expect(sessions).toHaveLength(rows.sessions.length)
          } finally {
            await to.close()
          }
        }),
        { numRuns: 200 },
      )
    }, 120_000)
  },
)
