import type { Figures, Writers } from './writers.ts'

/** The most that the p99 of paced writers may be, as a share of that by SQL. */
const P99_SHARE = 0.6

/** The longest that the event loop of a writer may be blocked, in milliseconds. */
const BLOCK_MS = 25

/** Two lines for each number of processes: at most 80 columns. */
export function writersTable(all: readonly Writers[]): string {
  const names = ['appends/s', 'p50 ms', 'p99 ms', 'max ms', 'block ms', 'even', 'failed']
  const widths = names.map((name) => name.length + 2)
  const line = (start: string, side: string, cells: string[]) =>
    start.padEnd(15) + side.padEnd(5) + cells.map((cell, n) => cell.padStart(widths[n]!)).join('')
  const cells = (figures: Figures) => [
    Math.round(figures.appends_a_second).toLocaleString('en'),
    figures.p50_ms.toFixed(1),
    figures.p99_ms.toFixed(1),
    figures.max_ms.toFixed(0),
    figures.longest_block_ms.toFixed(0),
    figures.fairness.toFixed(2),
    String(figures.failures),
  ]
  return [
    line('writers', 'side', names),
    ...all.flatMap(({ processes, mode, ours, raw }) => [
      line(`${String(processes).padStart(2)} ${mode}`, 'ours', cells(ours)),
      line('', 'raw', cells(raw)),
    ]),
  ].join('\n')
}

/** What is asked of the store, and whether that was met. */
export function writersTargets(all: readonly Writers[]): { text: string; met: boolean }[] {
  const p99 = all.flatMap(({ mode, ours, raw }) => (mode === 'paced' ? [ours.p99_ms / raw.p99_ms] : []))
  const block = Math.max(...all.map(({ ours }) => ours.longest_block_ms))
  const failures = all.reduce((sum, { ours }) => sum + ours.failures, 0)
  const shares = p99.map((share) => share.toFixed(2)).join(', ')
  return [
    { text: `paced p99, ours / raw: ${shares}, at most ${P99_SHARE}`, met: Math.max(...p99) <= P99_SHARE },
    { text: `longest block of ours: ${block.toFixed(0)} ms, at most ${BLOCK_MS}`, met: block <= BLOCK_MS },
    { text: `failures of ours: ${failures}, at most 0`, met: failures === 0 },
  ]
}
