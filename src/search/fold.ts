import { SEPARATOR } from './characters.ts'

const SEPARATORS = new RegExp(`${SEPARATOR.source}+`, 'gu')

const BEYOND_ASCII = /[^\p{ASCII}]/u

/** A text as it is compared: full width and case folded, whatever parts words one space. */
export function fold(text: string): string {
  if (BEYOND_ASCII.test(text))
    return text.normalize('NFKC').toLowerCase().replaceAll('ς', 'σ').replaceAll(SEPARATORS, ' ')
  return text.toLowerCase().replaceAll(/[\s\0]+/g, ' ')
}

/** What folds as a whole: a character with its marks, half-width kana with theirs, a syllable of Hangul letters. */
const PIECE = /[\u1100-\u115f][\u1160-\u11a7]?[\u11a8-\u11ff]?|[\s\S][\p{M}\uff9e\uff9f]*/gu

/** Letters of scripts whose accents the word index drops, beyond ASCII. */
export const ACCENTED = /(?=[^\p{ASCII}])[\p{scx=Latin}\p{scx=Greek}\p{scx=Cyrillic}]|[\u0300-\u036f]/u

/** A folded text, and where each UTF-16 unit of it, and its end, was in the original. */
export interface Folded {
  text: string
  origin(unit: number): number
}

/** Folds a text as the word index does, accents aside too, and keeps where each character of it was. */
export function foldWithOrigins(original: string): Folded {
  const whole = fold(original)
  // Nothing has another length, or another place, than before.
  if (whole.length === original.length && !ACCENTED.test(original) && original.normalize('NFKC') === original)
    return { text: whole, origin: (unit) => unit }
  const pieces: string[] = []
  const origins: number[] = []
  for (const { 0: piece, index } of original.matchAll(PIECE)) {
    let folded = fold(piece)
    if (ACCENTED.test(folded)) folded = folded.normalize('NFD').replaceAll(/[\u0300-\u036f]/g, '')
    // Separators in a row are one space.
    if (folded === ' ' && pieces.at(-1) === ' ') continue
    for (let unit = 0; unit < folded.length; unit++) origins.push(index)
    pieces.push(folded)
  }
  return { text: pieces.join(''), origin: (unit) => origins[unit] ?? original.length }
}
