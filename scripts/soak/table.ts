import type { Round } from './rounds.ts'

const sum = (values: number[]) => values.reduce((total, value) => total + value, 0)
const median = (values: number[]) => values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] ?? 0

/** One line a kind and one for all: at most 80 columns. */
export function table(rounds: readonly Round[]): string {
  const kinds = Array.from(new Set(rounds.map(({ kind }) => kind)))
  const line = (name: string, of: readonly Round[]) => [
    name,
    of.length.toLocaleString('en'),
    sum(of.map(({ acknowledged }) => acknowledged)).toLocaleString('en'),
    String(sum(of.map(({ lost }) => lost))),
    String(sum(of.map(({ doubled }) => doubled))),
    String(of.filter(({ faults }) => faults.length > 0).length),
    median(of.map(({ open_ms }) => open_ms)).toFixed(0),
  ]
  const lines = [
    ['kind', 'rounds', 'acknowledged', 'lost', 'doubled', 'failed checks', 'reopen ms'],
    ...kinds.map((kind) =>
      line(
        kind,
        rounds.filter((round) => round.kind === kind),
      ),
    ),
    line('all', rounds),
  ]
  const widths = lines[0]!.map((_, column) => Math.max(...lines.map((cells) => cells[column]!.length)))
  return lines
    .map((cells) =>
      cells
        .map((cell, column) => (column === 0 ? cell.padEnd(widths[0]!) : cell.padStart(widths[column]!)))
        .join('  '),
    )
    .join('\n')
}

/** Rounds that broke a promise. */
export function broken(rounds: readonly Round[]): Round[] {
  return rounds.filter(({ lost, doubled, faults }) => lost > 0 || doubled > 0 || faults.length > 0)
}
