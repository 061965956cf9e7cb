/** One fresh process of the benchmark: times its cases in interleaved rounds and prints them as JSON. */
import { Worker } from 'node:worker_threads'
import Database from 'better-sqlite3'
import { openStateStore } from '../../src/index.ts'
import { additionsCase, type Case, lineageCases, listCases, sizeCases, smallCases } from './cases.ts'
import { median } from './median.ts'
import { searchCases } from './search-cases.ts'

export interface Measured {
  name: string
  /** Microseconds a call, medians over the rounds. */
  ours: number
  raw: number
  target?: number
}

export interface Pruned {
  seconds: number
  raw_seconds: number
  deleted: number
  longest_lock_ms: number
}

const [group, rounds, ours, rawPath] = process.argv.slice(2) as [string, string, string, string]
// Searched in this thread, as the other side is: what another one adds to a call is in docs/search.md.
const store = await openStateStore({ path: ours, worker: false })
if (group === 'prune') console.log(JSON.stringify({ ...(await prune()), raw_seconds: rawPrune(rawPath) }))
else if (group === 'sizes') {
  const smaller = await openStateStore({ path: rawPath })
  await print(sizeCases(store, smaller))
  await smaller.close()
} else if (group === 'additions') {
  const without = await openStateStore({ path: rawPath, additions: false })
  await print([additionsCase(store, without)])
  await without.close()
} else {
  const raw = new Database(rawPath)
  raw.pragma('synchronous = full')
  raw.pragma('foreign_keys = on')
  const cases =
    group === 'small'
      ? smallCases(store, raw)
      : group === 'lineage'
        ? lineageCases(store, raw)
        : group === 'search'
          ? searchCases(store, raw)
          : listCases(store, raw, Number(group))
  await print(cases)
  raw.close()
}
await store.close()

async function print(cases: Case[]): Promise<void> {
  const measured: Measured[] = []
  for (const item of cases) measured.push(await measure(item, Number(rounds)))
  console.log(JSON.stringify(measured))
}

/** Times every call by itself, the two sides in turn: what else the machine does meets both alike. */
async function measure(
  { name, calls, warmUp = 0, ours, raw, target }: Case,
  rounds: number,
): Promise<Measured> {
  const times: { ours: number[]; raw: number[] } = { ours: [], raw: [] }
  for (let call = 0; call < warmUp; call++) await ours()
  // Two rounds warm up.
  for (let call = -2 * calls; call < rounds * calls; call++)
    for (const side of call % 2 ? (['ours', 'raw'] as const) : (['raw', 'ours'] as const)) {
      const started = performance.now()
      if (side === 'ours') await ours()
      else {
        const result = raw()
        // Some groups have a store on both sides; better-sqlite3 need not wait.
        if (result instanceof Promise) await result
      }
      if (call >= 0) times[side].push((performance.now() - started) * 1_000)
    }
  return { name, ours: median(times.ours), raw: median(times.raw), target }
}

/** Prunes everything, while a thread of another connection looks every millisecond whether it could write. */
async function prune(): Promise<Omit<Pruned, 'raw_seconds'>> {
  const other = new Worker(
    `const { parentPort, workerData } = require('node:worker_threads')
     const db = require('better-sqlite3')(workerData, { timeout: 0 })
     let longest = 0
     let free = performance.now()
     let stop = false
     parentPort.on('message', () => { stop = true })
     function look() {
       const now = performance.now()
       try { db.exec('begin immediate; commit'); free = now } catch { longest = Math.max(longest, now - free) }
       if (stop) { db.close(); parentPort.postMessage(longest); parentPort.close() }
       else setTimeout(look, 1)
     }
     parentPort.postMessage(0)
     look()`,
    { eval: true, workerData: store.info.path },
  )
  await new Promise((resolve) => other.once('message', resolve))
  const started = performance.now()
  const { deleted } = await store.sessions.prune({ olderThanDays: 1 })
  const seconds = (performance.now() - started) / 1_000
  const longest = new Promise<number>((resolve) => other.once('message', resolve))
  other.postMessage('stop')
  return { seconds, deleted, longest_lock_ms: await longest }
}

/** The same statements in transactions of the same size, without pauses for others. Seconds. */
function rawPrune(path: string): number {
  const db = new Database(path)
  db.pragma('synchronous = full')
  const started = performance.now()
  const ids = db.prepare('select id from sessions where ended_at is not null').pluck().all()
  const messages = db.prepare(`
    delete from messages where id in (select id from messages where session_id = ? order by id limit 250)
    returning tool_calls`)
  const orphan = db.prepare('update sessions set parent_session_id = null where parent_session_id = ?')
  const row = db.prepare('delete from sessions where id = ?')
  let left = 0
  for (const id of ids) {
    if (!db.inTransaction) db.exec('begin immediate')
    left += messages.all([id]).length
    orphan.run([id])
    row.run([id])
    if (left < 1_000) continue
    left = 0
    db.exec('commit')
  }
  if (db.inTransaction) db.exec('commit')
  db.close()
  return (performance.now() - started) / 1_000
}
