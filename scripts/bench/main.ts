/**
 * npm run bench [-- --small] [-- --only GROUP] [-- --json FILE]: times the store against better-sqlite3 with the
 * same SQL, call by call in turn, each group of cases in fresh processes; medians. A ratio of 1.00 is as fast as by
 * hand. By hand means a statement a row: where the store has a better way, that shows. Then processes that write
 * one file together, by the store and by hand in turn.
 */
import { execFileSync } from 'node:child_process'
import {
  closeSync,
  cpSync,
  existsSync,
  fsyncSync,
  mkdtempSync,
  openSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import Database from 'better-sqlite3'
import { build } from 'esbuild'
import type { Block } from './blocks.ts'
import { makeEmpty, makeLineage, makeOld, makeSessions, makeSmall } from './data.ts'
import { median } from './median.ts'
import { searchFile } from './search-data.ts'
import type { Transferred } from './transfer.ts'
import type { Measured, Pruned } from './worker.ts'
import { benchWriters, type Writers } from './writers.ts'
import { writersTable, writersTargets } from './writers-table.ts'

const GROUPS = [
  'small',
  'additions',
  'sessions',
  'lineage',
  'search',
  'prune',
  'transfer',
  'blocks',
  'writers',
]
const { values: flags } = parseArgs({
  options: { small: { type: 'boolean' }, only: { type: 'string' }, json: { type: 'string' } },
})
if (flags.only !== undefined && !GROUPS.includes(flags.only))
  throw new TypeError(`--only must be one of ${GROUPS.join(', ')}.`)
const PROCESSES = flags.small ? 1 : 3
const ROUNDS = flags.small ? 5 : 11
const SIZES = flags.small ? [1_000, 10_000] : [1_000, 100_000]
const SEARCHED = flags.small ? 50_000 : 1_000_000
const OLD = flags.small ? 100 : 1_000
const TOGETHER = flags.small ? { rounds: 3, seconds: 1 } : { rounds: 5, seconds: 3 }

interface Row extends Measured {
  ratio: number
  met: boolean | undefined
}

// As an application would run it: tsx has every function call a helper when it is made.
const programs = fileURLToPath(new URL('../../.cache/bench/', import.meta.url))
await build({
  entryPoints: ['worker.ts', 'writer.ts', 'transfer.ts', 'blocks.ts'].map((name) =>
    fileURLToPath(new URL(name, import.meta.url)),
  ),
  outdir: programs,
  bundle: true,
  platform: 'node',
  format: 'esm',
  target: 'node20',
  packages: 'external',
})
const builtPackage = fileURLToPath(new URL('../../dist/src/index.js', import.meta.url))
const folder = mkdtempSync(join(tmpdir(), 'hermes-state-bench-'))
const rows: Row[] = []
const others: {
  longest_lock_ms?: number
  index_bytes?: { words: number; bigrams: number }
  writers?: Writers[]
  blocks?: Block[]
} = {}
let missed = false
try {
  if (flags.only !== 'writers') console.log(heading('microseconds a call'))
  if (wanted('small')) await group('small', makeSmall)
  if (wanted('additions')) {
    const additions = [join(folder, 'additions.db'), join(folder, 'none.db')]
    for (const [index, path] of additions.entries()) await makeEmpty(path, index === 0)
    measure('additions', additions)
  }
  if (wanted('sessions')) {
    const [few, many] = SIZES as [number, number]
    await group(String(few), (path) => makeSessions(path, few), `, ${few.toLocaleString('en')} sessions`)
    await group(String(many), (path) => makeSessions(path, many), `, ${many.toLocaleString('en')}`)
    // The store on both files in one process: `raw` is the time in the smaller one.
    measure(
      'sizes',
      [many, few].map((size) => join(folder, `${size}-ours.db`)),
      `: ${many.toLocaleString('en')} / ${few.toLocaleString('en')}`,
    )
  }
  if (wanted('lineage')) await group('lineage', makeLineage)
  if (wanted('search')) {
    const searched = await searchFile(SEARCHED)
    measure('search', [searched, searched], `, ${SEARCHED.toLocaleString('en')}`)
    others.index_bytes = indexBytes(searched)
    const { words, bigrams } = others.index_bytes
    console.log(`indexes of ${SEARCHED.toLocaleString('en')} messages: ${words} bytes a message for words,`)
    console.log(`${bigrams} for scripts without spaces (a tenth of them has a Chinese sentence)`)
  }
  if (wanted('prune')) others.longest_lock_ms = await prune()
  if (wanted('transfer')) await transfer()
  if (wanted('blocks')) {
    others.blocks = runProgram<Block[]>('blocks', [await searchFile(SEARCHED), builtPackage])
    console.log(
      `\nlongest block of the event loop on ${SEARCHED.toLocaleString('en')} messages, milliseconds`,
    )
    for (const { name, longest_ms, took_ms, target_ms } of others.blocks) {
      const met = longest_ms <= target_ms
      const cells = [longest_ms.toFixed(1), `in ${took_ms.toFixed(0)}`, `${target_ms}  ${verdict(met)}`]
      console.log(name.padEnd(44) + cells.map((cell) => cell.padStart(11)).join(''))
      missed ||= !met
    }
  }
  if (wanted('writers')) {
    others.writers = await benchWriters(`${programs}writer.js`, folder, TOGETHER)
    console.log(writersTable(others.writers))
    for (const { text, met } of writersTargets(others.writers)) {
      // Rounds of a second are too short to judge by.
      console.log(flags.small ? text : `${text}: ${verdict(met)}`)
      missed ||= !flags.small && !met
    }
  }
  if (flags.json) writeFileSync(flags.json, JSON.stringify({ rows, ...others }, null, 2))
  if (missed || rows.some(({ met }) => met === false)) process.exitCode = 1
} finally {
  rmSync(folder, { recursive: true })
}

function wanted(group: string): boolean {
  return flags.only === undefined || flags.only === group
}

/** Prunes a copy of one file in each process. Returns how long others found it locked at most, in milliseconds. */
async function prune(): Promise<number> {
  const old = join(folder, 'old.db')
  if (!existsSync(old)) await makeOld(old, OLD)
  const pruned = Array.from({ length: PROCESSES }, () => {
    const [ours, raw] = [join(folder, 'prune-ours.db'), join(folder, 'prune-raw.db')]
    for (const copy of [ours, raw]) copyFile(old, copy)
    return run<Pruned>('prune', [ours, raw])
  })
  const of = (name: keyof Pruned) => median(pruned.map((result) => result[name]))
  // Ours leaves other processes a third of the time.
  report({
    name: `prune ${(OLD * 100).toLocaleString('en')} messages`,
    ours: of('seconds') * 1e6,
    raw: of('raw_seconds') * 1e6,
  })
  const lock = of('longest_lock_ms')
  console.log(`its longest lock: ${lock.toFixed(0)} ms, at most 150: ${verdict(lock <= 150)}`)
  missed ||= lock > 150
  return lock
}

/** Exports a file and imports that into an empty store, by the store and by way of an array of all there is. */
async function transfer(): Promise<void> {
  const [from, empty, into, file] = ['old.db', 'empty.db', 'into.db', 'sessions.jsonl'].map((name) =>
    join(folder, name),
  ) as [string, string, string, string]
  if (!existsSync(from)) await makeOld(from, OLD)
  await makeEmpty(empty, true)
  const runs = Array.from({ length: PROCESSES }, (_, n) => {
    const sides = n % 2 ? (['ours', 'array'] as const) : (['array', 'ours'] as const)
    const results = sides.map((side) => {
      for (const path of [file, into, `${into}-wal`, `${into}-shm`]) rmSync(path, { force: true })
      copyFile(empty, into)
      return [side, runProgram<Transferred>('transfer', [side, from, into, file])] as const
    })
    return Object.fromEntries(results)
  })
  const of = (side: string, value: (result: Transferred) => number) =>
    median(runs.map((results) => value(results[side]!)))
  const rows: [string, (result: Transferred) => number, number?][] = [
    ['export', ({ export_s }) => export_s * 1e6],
    ['import', ({ import_s }) => import_s * 1e6],
    ['export and import', ({ export_s, import_s }) => (export_s + import_s) * 1e6, 0.8],
    ['its peak memory, MB,', ({ peak_mb }) => peak_mb, 0.6],
  ]
  for (const [name, value, target] of rows)
    report({
      name: `${name} of ${(OLD * 100).toLocaleString('en')} / array`,
      ours: of('ours', value),
      raw: of('array', value),
      // A hundredth of it is over before memory counts.
      target: flags.small ? undefined : target,
    })
}

/** Makes a file, runs the group on two copies of it in fresh processes, and prints the medians. */
async function group(name: string, make: (path: string) => Promise<void>, suffix = ''): Promise<void> {
  const [ours, raw] = [join(folder, `${name}-ours.db`), join(folder, `${name}-raw.db`)]
  await make(ours)
  copyFile(ours, raw)
  measure(name, [ours, raw], suffix)
}

/** Bytes that the indexes take in the file, a message. */
function indexBytes(path: string): { words: number; bigrams: number } {
  const db = new Database(path, { readonly: true })
  const size = db.prepare('select sum(pgsize) from dbstat where aggregate = 1 and name glob ?').pluck()
  const each = (names: string) => Math.round(Number(size.get(names)) / SEARCHED)
  const bytes = { words: each('messages_fts_*'), bigrams: each('hs_bigrams_*') }
  db.close()
  return bytes
}

/** A copy that is on the disk: the first commit beside it would wait for all of it otherwise. */
function copyFile(from: string, to: string): void {
  cpSync(from, to)
  const file = openSync(to, 'r+')
  fsyncSync(file)
  closeSync(file)
}

function measure(name: string, files: string[], suffix = ''): void {
  const runs = Array.from({ length: PROCESSES }, () => run<Measured[]>(name, files))
  for (const [index, item] of runs[0]!.entries()) {
    // The run with the median ratio, so that both times come from the same process.
    const sorted = runs.map((measured) => measured[index]!).sort((a, b) => a.ours / a.raw - b.ours / b.raw)
    report({ ...sorted[Math.floor(sorted.length / 2)]!, name: item.name + suffix })
  }
}

function run<Result>(group: string, files: string[]): Result {
  return runProgram('worker', [group, String(ROUNDS), ...files])
}

function runProgram<Result>(name: string, args: string[]): Result {
  return JSON.parse(execFileSync(process.execPath, [`${programs}${name}.js`, ...args]).toString())
}

function report(measured: Measured): void {
  const ratio = measured.ours / measured.raw
  const met = measured.target === undefined ? undefined : ratio <= measured.target
  rows.push({ ...measured, ratio, met })
  const target = measured.target === undefined ? '' : `${places(measured.target)}  ${verdict(met)}`
  console.log(
    [
      measured.name.padEnd(38),
      measured.ours.toFixed(1).padStart(11),
      measured.raw.toFixed(1).padStart(11),
      places(ratio).padStart(7),
      target.padStart(13),
    ].join(''),
  )
}

function places(ratio: number): string {
  return ratio.toFixed(ratio < 0.1 ? 4 : 2)
}

function heading(unit: string): string {
  return `${unit.padEnd(38)}${'ours'.padStart(11)}${'raw'.padStart(11)}${'ratio'.padStart(7)}${'at most'.padStart(9)}`
}

function verdict(met: boolean | undefined): string {
  return met ? 'ok' : 'MISSED'
}
