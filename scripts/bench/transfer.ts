/** One fresh process: exports a file and imports it into an empty store, and prints how long and how much that took. */
import { readFileSync, writeFileSync } from 'node:fs'
import Database from 'better-sqlite3'
import { openStateStore } from '../../src/index.ts'
import { bigramsOf } from '../../src/search/bigrams.ts'

export interface Transferred {
  export_s: number
  import_s: number
  /** The most memory that the process had, in MB. */
  peak_mb: number
}

const [side, from, to, file] = process.argv.slice(2) as [string, string, string, string]
const started = performance.now()
await (side === 'ours' ? exportOurs() : exportArray())
const exported = performance.now()
await (side === 'ours' ? importOurs() : importArray())
const transferred: Transferred = {
  export_s: (exported - started) / 1_000,
  import_s: (performance.now() - exported) / 1_000,
  peak_mb: process.resourceUsage().maxRSS / 1_024,
}
console.log(JSON.stringify(transferred))

async function exportOurs(): Promise<void> {
  await using store = await openStateStore({ path: from, worker: false })
  await store.transfer.exportFile(file)
}

async function importOurs(): Promise<void> {
  await using store = await openStateStore({ path: to, worker: false })
  const { imported, sessions } = await store.transfer.importFile(file)
  if (imported !== sessions.length) throw new Error('Some sessions were not imported.')
}

interface Row {
  [column: string]: string | number | null
}

/** By hand: all sessions in an array, and that as one JSON text. */
async function exportArray(): Promise<void> {
  const raw = new Database(from, { readonly: true })
  const messages = raw.prepare<unknown[], Row>(`
    select messages.*, structured.content as structured from messages
    left join hs_structured_content as structured on structured.message_id = messages.id
    where messages.session_id = ? order by messages.id`)
  const sessions = raw.prepare<unknown[], Row>('select * from sessions order by id').all()
  const whole = sessions.map((session) => ({ ...session, messages: messages.all([session.id]) }))
  writeFileSync(file, JSON.stringify(whole))
  raw.close()
}

/** By hand: a transaction for each session, a statement for each row. */
async function importArray(): Promise<void> {
  const raw = new Database(to)
  raw.pragma('synchronous = full')
  raw.pragma('foreign_keys = on')
  const advance = raw.prepare('update hs_bigrams_state set watermark = ? where watermark = ? - 1')
  const pairs = raw.prepare('insert into hs_bigrams (rowid, text) values (cast(? as integer), ?)')
  const inserts = new Map<string, Database.Statement<unknown[]>>()
  const insert = (table: string, { id, ...row }: Row): number => {
    const values = table === 'sessions' ? { id, ...row } : row
    const columns = Object.keys(values)
    let statement = inserts.get(table)
    if (!statement) {
      statement = raw.prepare(
        `insert into ${table} (${columns.join(', ')}) values (${columns.map(() => '?').join(', ')})`,
      )
      inserts.set(table, statement)
    }
    return Number(statement.run(Object.values(values)).lastInsertRowid)
  }
  const sessions: (Row & { messages: Row[] })[] = JSON.parse(readFileSync(file, 'utf8'))
  for (const { messages, ...session } of sessions)
    raw.transaction(() => {
      insert('sessions', session)
      for (const { structured: _, ...message } of messages) {
        const id = insert('messages', message)
        advance.run([id, id])
        pairs.run([id, bigramsOf([String(message.content)])])
      }
    })()
  raw.close()
}
