/** Letters, digits and marks: what words are made of. */
export const WORD_CHARACTER = /[\p{L}\p{N}\p{M}\p{Co}]/u

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
