/** How often each of some names was met. */
export type Counts = Record<string, number>

export function count(counts: Counts, name: string, times = 1): void {
  counts[name] = (counts[name] ?? 0) + times
}

export function addCounts(counts: Counts, more: Readonly<Counts>): void {
  for (const [name, times] of Object.entries(more)) count(counts, name, times)
}

/** What was counted since there was `before`. */
export function countsSince(counts: Readonly<Counts>, before: Readonly<Counts>): Counts {
  const since = Object.entries(counts).map(([name, times]) => [name, times - (before[name] ?? 0)] as const)
  return Object.fromEntries(since.filter(([, times]) => times > 0))
}
