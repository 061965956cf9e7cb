const AROUND = 60

/** Text around the first of the terms that it holds, with the match between `>>>` and `<<<`. */
export function substringSnippet(content: string, terms: readonly string[]): string {
  const folded = content.toLowerCase()
  for (const term of terms) {
    const start = folded.indexOf(term.toLowerCase())
    // Lower-casing can change lengths (İ): then positions in the two texts differ.
    if (start === -1 || folded.length !== content.length) continue
    const end = start + term.length
    const before = Array.from(content.slice(0, start)).slice(-AROUND).join('')
    const after = Array.from(content.slice(end)).slice(0, AROUND).join('')
    return [
      before.length < start ? '...' : '',
      `${before}>>>${content.slice(start, end)}<<<${after}`,
      after.length < content.length - end ? '...' : '',
    ].join('')
  }
  return Array.from(content)
    .slice(0, 2 * AROUND)
    .join('')
}
