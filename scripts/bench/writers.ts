import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { rmSync } from 'node:fs'
import { join } from 'node:path'
import Database from 'better-sqlite3'
import { makeEmpty } from './data.ts'
import { median } from './median.ts'
import type { Order, Written } from './writer.ts'

/** What processes that append to one file did together in a round, or the medians of that over rounds. */
export interface Figures {
  appends_a_second: number
  /** From when an append was due until it was acknowledged, over all processes. */
  p50_ms: number
  p99_ms: number
  max_ms: number
  longest_block_ms: number
  /** Appends of the process that did least, for each one of the process that did most. */
  fairness: number
  /** Appends that were refused, or acknowledged and not in the file: of all rounds together. */
  failures: number
}

/** The figures of the two sides. */
export interface Writers {
  processes: number
  /** At set times, or one append after the other. */
  mode: 'paced' | 'saturated'
  ours: Figures
  raw: Figures
}

const PROCESSES = [2, 8, 16]

/** What the paced writers do together, as a share of what a single one by SQL does alone without a pause. */
const PACE = 0.4

/** How long after all are ready they begin, in milliseconds: each knows it by then. */
const START_AFTER_MS = 100

/**
 * Lets processes append to one file, by the store and by SQL in turn, each round on a new file.
 *
 * @param program `writer.ts`, bundled.
 * @param folder Where the files are made.
 */
export async function benchWriters(
  program: string,
  folder: string,
  { rounds, seconds }: { rounds: number; seconds: number },
): Promise<Writers[]> {
  const children = Array.from({ length: Math.max(...PROCESSES) }, () => fork(program))
  const died = new Promise<never>((_, reject) => {
    for (const child of children)
      child.once('exit', (code) => reject(new Error(`A writer ended by itself, with ${code}.`)))
  })
  const ask = async <Answer>(child: ChildProcess, message: Order | number): Promise<Answer> => {
    child.send(message)
    const [answer] = (await Promise.race([once(child, 'message'), died])) as [Answer]
    return answer
  }
  const round = async (side: Order['side'], times: Order['times'][]): Promise<Figures> => {
    const path = join(folder, 'writers.db')
    await makeEmpty(path, true)
    const writers = children.slice(0, times.length)
    await Promise.all(writers.map((child, n) => ask(child, { side, path, times: times[n]!, seconds })))
    const start = Date.now() + START_AFTER_MS
    const written = await Promise.all(writers.map((child) => ask<Written>(child, start)))
    const figures = together(written, storedIn(path), seconds)
    for (const end of ['', '-wal', '-shm']) rmSync(path + end, { force: true })
    return figures
  }

  try {
    // Until JavaScript is compiled.
    for (const side of ['ours', 'raw'] as const) await round(side, saturated(children.length))
    const alone: number[] = []
    for (let n = 0; n < 3; n++) alone.push((await round('raw', saturated(1))).appends_a_second)
    // The best: whatever else the machine does makes it less.
    const pace = Math.max(...alone) * PACE
    const all: Writers[] = []
    for (const mode of ['paced', 'saturated'] as const)
      for (const processes of PROCESSES) {
        const figures: Record<Order['side'], Figures[]> = { ours: [], raw: [] }
        for (let n = 0; n < rounds; n++) {
          const times = mode === 'paced' ? paced(processes, pace, seconds) : saturated(processes)
          for (const side of n % 2 ? (['ours', 'raw'] as const) : (['raw', 'ours'] as const))
            figures[side].push(await round(side, times))
        }
        all.push({ processes, mode, ours: medians(figures.ours), raw: medians(figures.raw) })
      }
    return all
  } finally {
    for (const child of children) if (child.connected) child.disconnect()
  }
}

function saturated(processes: number): null[] {
  return Array.from({ length: processes }, () => null)
}

/** One append of each process in every interval of the same length, at a random moment of it. */
function paced(processes: number, together_a_second: number, seconds: number): number[][] {
  const interval_ms = (processes / together_a_second) * 1_000
  const appends = Math.floor((seconds * 1_000) / interval_ms)
  return Array.from({ length: processes }, () =>
    Array.from({ length: appends }, (_, n) => (n + Math.random()) * interval_ms),
  )
}

function storedIn(path: string): number {
  const db = new Database(path, { readonly: true })
  const stored = Number(db.prepare('select count(*) from messages').pluck().get())
  db.close()
  return stored
}

function together(written: readonly Written[], stored: number, seconds: number): Figures {
  const latencies = written.flatMap(({ latencies_ms }) => latencies_ms).sort((a, b) => a - b)
  const at = (share: number) => latencies[Math.floor((latencies.length - 1) * share)] ?? Number.NaN
  const done = written.map(({ latencies_ms }) => latencies_ms.length)
  const refused = written.flatMap(({ refusals }) => refusals)
  if (refused.length > 0) console.error(`${refused.length} appends were refused: ${refused[0]}`)
  if (stored !== latencies.length)
    console.error(`${latencies.length} appends were acknowledged, and ${stored} messages are in the file.`)
  return {
    appends_a_second: latencies.length / seconds,
    p50_ms: at(0.5),
    p99_ms: at(0.99),
    max_ms: at(1),
    longest_block_ms: Math.max(...written.map(({ longest_block_ms }) => longest_block_ms)),
    fairness: Math.min(...done) / Math.max(...done),
    failures: refused.length + Math.abs(latencies.length - stored),
  }
}

function medians(rounds: readonly Figures[]): Figures {
  const of = (name: keyof Figures) => median(rounds.map((round) => round[name]))
  return {
    appends_a_second: of('appends_a_second'),
    p50_ms: of('p50_ms'),
    p99_ms: of('p99_ms'),
    max_ms: of('max_ms'),
    longest_block_ms: of('longest_block_ms'),
    fairness: of('fairness'),
    failures: rounds.reduce((sum, { failures }) => sum + failures, 0),
  }
}
