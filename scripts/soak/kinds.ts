import { readdirSync, readFileSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import Database from 'better-sqlite3'
import { openStateStore, type StateStore } from '../../src/index.ts'
import { faultsOf } from '../../test/support/soundness.ts'
import { storedIn } from './acknowledged.ts'

/** A kind of work that a process is killed in. */
export interface Kind {
  /** As the child `worker.mjs` knows it. */
  name: string
  /** Makes the file that each round begins with a copy of. Its messages of session `s` must survive too. */
  write(path: string): Promise<void>
  /** A round's kill comes within so many milliseconds. */
  within_ms: number
  /** What is wrong with the file beyond what every kind is checked for. */
  check?(store: StateStore): Promise<string[]>
}

const OLD_MESSAGES = 5_000

export const kinds: readonly Kind[] = [
  { name: 'appends', write: writeStore, within_ms: 300 },
  { name: 'batches', write: writeStore, within_ms: 600, check: wholeBatches },
  { name: 'prune', write: writeOldSessions, within_ms: 600 },
  { name: 'migration', write: writeVersion1, within_ms: 200, check: wholeMigration },
  { name: 'rebuild', write: writeFilledStore, within_ms: 600 },
  { name: 'backup', write: writeFilledStore, within_ms: 600, check: wholeBackups },
]

async function writeStore(path: string): Promise<void> {
  const store = await openStateStore({ path })
  await store.sessions.create({ id: 's', source: 'cli' })
  await store.close()
}

async function writeFilledStore(path: string): Promise<void> {
  const store = await openStateStore({ path })
  await store.sessions.create({ id: 's', source: 'cli' })
  await store.messages.appendMany(
    's',
    Array.from({ length: OLD_MESSAGES }, (_, n) => ({ role: 'user', content: `walrus ${n + 1}, 海象` })),
  )
  await store.close()
}

/** A store with so many sessions to prune that it takes its time. */
async function writeOldSessions(path: string): Promise<void> {
  await writeStore(path)
  const store = await openStateStore({ path })
  const messages = Array.from({ length: 50 }, (_, n) => ({
    role: 'user',
    content: `heron ${n}, 海象`,
    timestamp: 1000 + n,
  }))
  for (let n = 0; n < 400; n++) {
    const id = await store.sessions.create({ source: 'cron', started_at: 1000 })
    await store.messages.appendMany(id, messages)
    await store.sessions.end(id, 'done')
  }
  await store.close()
}

/** A file of the first Hermes schema, large enough that bringing it up to date takes its time. */
async function writeVersion1(path: string): Promise<void> {
  const schema = readFileSync(join(import.meta.dirname, '../../test/golden/schema-001_initial.sql'), 'utf8')
  const db = new Database(path)
  db.pragma('journal_mode = wal')
  db.exec(schema)
  db.exec(`
    insert into schema_version (version) values (1);
    insert into sessions (id, source, started_at, message_count) values ('s', 'cli', 1000, ${OLD_MESSAGES});
    with recursive n(n) as (select 1 union all select n + 1 from n where n < ${OLD_MESSAGES})
    insert into messages (session_id, role, content, timestamp) select 's', 'user', 'walrus ' || n, 1000 + n from n;
  `)
  db.close()
}

async function wholeBatches(store: StateStore): Promise<string[]> {
  const sizes = new Map<string, number>()
  for await (const { content } of store.messages.iterate('s')) {
    const batch = String(content).split('-')[0] ?? ''
    sizes.set(batch, (sizes.get(batch) ?? 0) + 1)
  }
  return Array.from(sizes).flatMap(([batch, size]) =>
    size === 500 ? [] : [`batch ${batch} has ${size} messages of 500`],
  )
}

/** Each copy that has its name is whole, however its maker ended. */
async function wholeBackups(store: StateStore): Promise<string[]> {
  const { path } = store.info
  const copies = readdirSync(dirname(path)).filter((name) => name.startsWith(`${basename(path)}.copy`))
  return copies
    .filter((name) => !name.includes('.partial'))
    .flatMap((name) => {
      const copy = join(dirname(path), name)
      const faults = faultsOf(copy)
      if (storedIn(copy).length < OLD_MESSAGES) faults.push('messages are missing')
      return faults.map((fault) => `a backup: ${fault}`)
    })
}

async function wholeMigration(store: StateStore): Promise<string[]> {
  const { migrations, schemaVersion } = store.info
  const faults: string[] = []
  if (schemaVersion !== 6) faults.push(`schema ${schemaVersion}`)
  // Either the killed process had run all of them, or none.
  if (migrations.length > 0 && !migrations.includes('002_finish_reason'))
    faults.push(`migrated in part: only ${migrations.join(', ')} were left`)
  const hits = await store.search.messages('walrus 777')
  if (hits.length !== 1 || hits[0]?.id !== 777) faults.push('an old message is not found')
  return faults
}
