/** The circles among links from children to parents, each as the ids on it. */
export function cyclesOf(parents: ReadonlyMap<string, string>): string[][] {
  const cycles: string[][] = []
  const seen = new Set<string>()
  for (const start of parents.keys()) {
    const line: string[] = []
    let id: string | undefined = start
    for (; id !== undefined && !seen.has(id); id = parents.get(id)) {
      seen.add(id)
      line.push(id)
    }
    // Where the walk met its own line again, that part of it is a circle.
    const from = id === undefined ? -1 : line.indexOf(id)
    if (from !== -1) cycles.push(line.slice(from))
  }
  return cycles
}
