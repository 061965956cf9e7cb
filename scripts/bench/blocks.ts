/**
 * One fresh process: the longest time that the event loop stands still during calls on a large file, and while another
 * connection holds the write lock. With the built package, whose searches run in a thread.
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { Worker } from 'node:worker_threads'
import { searchWords } from './search-data.ts'

export interface Block {
  name: string
  /** How long the loop stood still, and how long the call took, in milliseconds. */
  longest_ms: number
  took_ms: number
  target_ms: number
}

const [path, built] = process.argv.slice(2) as [string, string]
const { openStateStore }: typeof import('../../src/index.ts') = await import(built)
const blocks: Block[] = []
const { common, rare, chinese } = searchWords()

const store = await openStateStore({ path })
// The thread is started by the first search.
await store.search.messages(rare)
const search = store.search.messages.bind(store.search)
await block('search: a word of 0.7 %', 25, () => search(rare))
await block('search: a word of half, exact', 25, () => search(common, { exact: true }))
await block('search: a word of half, 1,000 hits', 25, () => search(common, { limit: 1_000 }))
await block('search: scan', 25, () => search('rare-needle-that-is-not-there', { scan: true }))
await block('search: 2 Chinese characters', 25, () => search(chinese))
await block('search: sessions', 25, () => store.search.sessions(common))
await block('list of 200 sessions', 25, () => store.sessions.list({ limit: 200 }))
await block('count of messages', 25, () => store.messages.count())
await block('usage by model', 25, () => store.usage.byModel())
await block('export of 50,000 messages', 25, async () => {
  let messages = 0
  for await (const record of store.transfer.exportAll()) {
    if ('messages' in record && typeof record.messages !== 'number') messages += record.messages.length
    if (messages > 50_000) break
  }
})
await store.close()

const folder = mkdtempSync(join(tmpdir(), 'hermes-state-lock-'))
const locked = await openStateStore({ path: join(folder, 'state.db') })
await locked.sessions.create({ id: 's', source: 'cli' })
const holder = new Worker(
  `const { parentPort, workerData } = require('node:worker_threads')
   const db = require('better-sqlite3')(workerData)
   db.exec('begin immediate')
   parentPort.postMessage('held')
   setTimeout(() => { db.exec('commit'); db.close() }, 3_000)`,
  { eval: true, workerData: locked.info.path },
)
await new Promise((resolve) => holder.once('message', resolve))
await block('append while the lock is held for 3 s', 50, () =>
  locked.messages.append('s', { role: 'user', content: 'It waits.' }),
)
await locked.close()
rmSync(folder, { recursive: true })
console.log(JSON.stringify(blocks))

/** Runs a call and looks every millisecond how long the loop had to wait. */
async function block(name: string, target_ms: number, call: () => Promise<unknown>): Promise<void> {
  await delay(20)
  let longest_ms = 0
  let last = performance.now()
  const timer = setInterval(() => {
    const now = performance.now()
    longest_ms = Math.max(longest_ms, now - last - 1)
    last = now
  }, 1)
  const started = performance.now()
  await call()
  const took_ms = performance.now() - started
  // The last stretch counts, too.
  await delay(2)
  clearInterval(timer)
  blocks.push({ name, longest_ms, took_ms, target_ms })
}
