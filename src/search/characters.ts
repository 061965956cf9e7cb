/** What makes the word index see a word: a letter or a digit. */
export const WORD_CHARACTER = /[\p{L}\p{N}\p{Co}]/u

/** The first so many characters (code points) of a text. */
export function head(text: string, length: number): string {
  const units = text.slice(0, length)
  if (text.length <= length || !/[\ud800-\udfff]/.test(units)) return units
  return Array.from(text.slice(0, 2 * length))
    .slice(0, length)
    .join('')
}

/** Characters of scripts that put no spaces between words, or glue particles to them. */
const UNSEGMENTED =
  /(?=[\p{L}\p{M}\p{N}])[\p{scx=Han}\p{scx=Hiragana}\p{scx=Katakana}\p{scx=Bopomofo}\p{scx=Hangul}\p{scx=Yi}\p{scx=Thai}\p{scx=Lao}\p{scx=Khmer}\p{scx=Myanmar}\p{scx=Tibetan}]/u

/**
 * Whether a text has a character of a script that is written without spaces between words: Chinese, Japanese,
 * Korean, and also Thai, Lao, Khmer, Myanmar, Tibetan and Yi. The word index keeps a run of those as one word.
 */
export function containsCjk(text: string): boolean {
  return UNSEGMENTED.test(text)
}

/**
 * White space, and the characters of no width that FTS5 parts words at. It knows Unicode 6.1: to it, later ones
 * (U+061C, U+2066 to U+2069) and later emoji are letters.
 */
export const SEPARATOR = /[\s\0\u00ad\u180e\u200b-\u200f\u2028-\u202e\u2060-\u2064\u206a-\u206f\ufeff]/u
