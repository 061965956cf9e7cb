/** What turns `before` into `after`, line by line: `-` lines go, `+` lines come, with the lines around them. */
export function lineDiff(before: string, after: string, context = 2): string {
  const [a, b] = [before.split('\n'), after.split('\n')]
  // The length of the longest common subsequence from each pair of places on.
  const common = Array.from({ length: a.length + 1 }, () => new Array<number>(b.length + 1).fill(0))
  for (let i = a.length - 1; i >= 0; i--)
    for (let j = b.length - 1; j >= 0; j--)
      common[i]![j] =
        a[i] === b[j] ? common[i + 1]![j + 1]! + 1 : Math.max(common[i + 1]![j]!, common[i]![j + 1]!)

  const lines: string[] = []
  for (let i = 0, j = 0; i < a.length || j < b.length; )
    if (i < a.length && j < b.length && a[i] === b[j]) {
      lines.push(`  ${a[i++]}`)
      j++
    } else if (j === b.length || (i < a.length && common[i + 1]![j]! >= common[i]![j + 1]!))
      lines.push(`- ${a[i++]}`)
    else lines.push(`+ ${b[j++]}`)

  const changed = (line: string) => !line.startsWith('  ')
  const near = lines.map((_, index) =>
    lines.slice(Math.max(0, index - context), index + context + 1).some(changed),
  )
  return lines.flatMap((line, index) => (near[index] ? [line] : near[index - 1] ? ['  …'] : [])).join('\n')
}
