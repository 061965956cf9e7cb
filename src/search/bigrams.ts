import { containsCjk } from './characters.ts'
import { fold } from './fold.ts'

const RUN = /[\p{L}\p{M}\p{N}]+/gu

/** The runs of letters and digits in a folded text that have a character of a script without spaces. */
export function unsegmentedRuns(folded: string): string[] {
  if (!/[^\p{ASCII}]/u.test(folded)) return []
  return Array.from(folded.matchAll(RUN), ([run]) => run).filter(containsCjk)
}

/**
 * What the unsegmented index holds of texts: for each run its pairs of characters in order, and its last character
 * alone, so that a single one is found as the beginning of a pair. '' where there is nothing to index.
 */
export function bigramsOf(texts: readonly (string | null)[]): string {
  const tokens: string[] = []
  for (const text of texts)
    if (text !== null && /[^\p{ASCII}]/u.test(text))
      for (const run of unsegmentedRuns(fold(text))) {
        const characters = Array.from(run)
        for (const [index, character] of characters.entries())
          tokens.push(character + (characters[index + 1] ?? ''))
      }
  return tokens.join(' ')
}

/** FTS5 text that finds a run of letters and digits inside an indexed one. */
export function bigramPhrase(run: string): string {
  const characters = Array.from(run)
  if (characters.length === 1) return `"${run}"*`
  return `"${characters
    .slice(1)
    .map((character, index) => characters[index] + character)
    .join(' ')}"`
}

/** The runs of letters and digits in a term, folded. */
export function runsOf(term: string): string[] {
  return Array.from(fold(term).matchAll(RUN), ([run]) => run)
}
