import { SEPARATOR } from './characters.ts'

const SEPARATORS = new RegExp(`${SEPARATOR.source}+`, 'gu')

const BEYOND_ASCII = /[^\0-\x7f]/

/** What parts words and is not a space. */
const NO_SPACE = new RegExp(`[${SEPARATOR.source}--[ ]]`, 'v')

/** A text as it is compared: full width and case folded, whatever parts words one space. */
export function fold(text: string): string {
  const folded = BEYOND_ASCII.test(text)
    ? text.normalize('NFKC').toLowerCase().replaceAll('ς', 'σ')
    : text.toLowerCase()
  return NO_SPACE.test(folded) || folded.includes('  ') ? folded.replaceAll(SEPARATORS, ' ') : folded
}

/** What is one with the character before it, or can be: marks, letters of Hangul syllables. */
const JOINING = /[\p{M}\u1160-\u11ff\uff9e\uff9f]/u

/** A text that is folded once it has to be. */
export class FoldedText {
  readonly #text: string
  #folded: string | undefined

  constructor(text: string) {
    this.#text = text
  }

  get folded(): string {
    this.#folded ??= fold(this.#text)
    return this.#folded
  }

  /** Whether it has a text, both folded. */
  includes(text: string): boolean {
    if (this.#text === '') return false
    // As it is typed, where nothing around it can make something else of it when it is folded.
    const at = this.#text.indexOf(text)
    const next = at === -1 ? undefined : (this.#text.codePointAt(at + text.length) ?? 0)
    if (next !== undefined && !JOINING.test(text[0] ?? '') && !JOINING.test(String.fromCodePoint(next)))
      return true
    return this.folded.includes(fold(text))
  }
}

/** What folds as a whole: a character with its marks, half-width kana with theirs, a syllable of Hangul letters. */
const PIECE = /[\u1100-\u115f][\u1160-\u11a7]?[\u11a8-\u11ff]?|[\s\S][\p{M}\uff9e\uff9f]*/gu

/** Letters of scripts whose accents the word index drops, beyond ASCII. */
const ACCENTED = /(?=[^\p{ASCII}])[\p{scx=Latin}\p{scx=Greek}\p{scx=Cyrillic}]|[\u0300-\u036f]/u

/** Where such letters are: nearly all text has none, and this is told sooner. */
const MAYBE_ACCENTED = /[\x80-\u2e7f\ua640-\uabff\ud800-\udfff\ufb00-\ufe2f\uff21-\uff5a]/

export function isAccented(text: string): boolean {
  return MAYBE_ACCENTED.test(text) && ACCENTED.test(text)
}

/** A folded text, and where each UTF-16 unit of it, and its end, was in the original. */
export interface Folded {
  text: string
  origin(unit: number): number
}

/** Whether each UTF-16 unit of a folded text is what that of the original folds to. */
function isInPlace(original: string, folded: string): boolean {
  if (folded === original) return true
  if (folded.length !== original.length) return false
  for (let unit = 0; unit < folded.length; unit++)
    if (
      folded.charCodeAt(unit) !== original.charCodeAt(unit) &&
      folded[unit] !== fold(original[unit] as string)
    )
      return false
  return true
}

/** Folds a text as the word index does, accents aside too, and keeps where each character of it was. */
export function foldWithOrigins(original: string): Folded {
  if (!isAccented(original)) {
    const whole = fold(original)
    if (isInPlace(original, whole)) return { text: whole, origin: (unit) => unit }
  }
  const pieces: string[] = []
  const origins: number[] = []
  for (const { 0: piece, index } of original.matchAll(PIECE)) {
    let folded = fold(piece)
    if (isAccented(folded)) folded = folded.normalize('NFD').replaceAll(/[\u0300-\u036f]/g, '')
    // Separators in a row are one space.
    if (folded === ' ' && pieces.at(-1) === ' ') continue
    for (let unit = 0; unit < folded.length; unit++) origins.push(index)
    pieces.push(folded)
  }
  return { text: pieces.join(''), origin: (unit) => origins[unit] ?? original.length }
}
