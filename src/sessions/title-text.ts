/** The longest title, in code points. */
export const MAX_TITLE_LENGTH = 100

// Control and format characters (zero width, direction, soft hyphen, …) but for white space, joiners, the signs
// that Arabic writes before numbers, and the tags of flags; and fillers, which Unicode counts as letters.
const INVISIBLE =
  /(?!\p{Join_Control}|[\t\n\v\f\r\x85\u0600-\u0605\u06dd\u070f\u08e2\u{110bd}\u{e0020}-\u{e007f}])[\p{Cc}\p{Cf}]|[\u034f\u115f\u1160\u3164\uffa0\u17b4\u17b5]|[\u180b-\u180d\u180f]/gu
const STRAY_TAGS = /(?<!\u{1f3f4}[\u{e0020}-\u{e007f}]*)[\u{e0020}-\u{e007f}]+/gu

// Scripts whose letters join: a (non-)joiner between two of them changes what is read, and so does a joiner
// after a virama, at the end of a word too.
const JOINING =
  '[\\p{scx=Arab}\\p{scx=Syrc}\\p{scx=Mong}\\p{scx=Nkoo}\\p{scx=Deva}\\p{scx=Beng}\\p{scx=Guru}\\p{scx=Gujr}\\p{scx=Orya}\\p{scx=Taml}\\p{scx=Telu}\\p{scx=Knda}\\p{scx=Mlym}\\p{scx=Sinh}\\p{scx=Khmr}\\p{scx=Mymr}]'
const VIRAMA = '[\\u094d\\u09cd\\u0a4d\\u0acd\\u0b4d\\u0bcd\\u0c4d\\u0ccd\\u0d4d\\u0dca]'
const EMOJI = '[\\p{Extended_Pictographic}\\p{Emoji_Modifier}\\ufe0f]'
const STRAY_JOINER = new RegExp(
  `(?<!${EMOJI}(?=\\u200d\\p{Extended_Pictographic})|${JOINING}(?=\\p{Join_Control}${JOINING})|${VIRAMA}(?=\\u200d))\\p{Join_Control}`,
  'gu',
)

// A braille pattern without dots is a symbol to Unicode.
const VISIBLE = /(?!\u2800)[\p{L}\p{N}\p{P}\p{S}]/u
const NUMBERED = /^(.+) #([0-9]{1,9})$/su

/**
 * A title as it is stored: characters nobody sees are removed (joiners stay where an emoji or a joining script
 * needs them), NFC, white space collapsed. null where nothing visible is left.
 *
 * @throws TypeError for more than 100 code points: "too long".
 */
export function sanitizeTitle(text: string): string | null {
  const title = cleaned(text)
  if (!VISIBLE.test(title)) return null
  const length = Array.from(title).length
  if (length > MAX_TITLE_LENGTH)
    throw new TypeError(
      `The title is too long: ${length} code points, at most ${MAX_TITLE_LENGTH} are stored.`,
    )
  return title
}

/** A title and the number that ` #N` (ASCII digits, at most nine) gives it; `number` is undefined without one. */
export function splitNumber(title: string): { base: string; number: number | undefined } {
  const [, base, number] = NUMBERED.exec(title) ?? []
  return base === undefined ? { base: title, number: undefined } : { base, number: Number(number) }
}

/** `base #number`, the base shortened where the whole would be too long. */
export function withNumber(base: string, number: number): string {
  const suffix = ` #${number}`
  // Cleaned again: the cut may fall behind a joiner.
  return (
    cleaned(
      Array.from(base)
        .slice(0, MAX_TITLE_LENGTH - suffix.length)
        .join(''),
    ) + suffix
  )
}

function cleaned(text: string): string {
  let title = text.toWellFormed()
  for (let before = ''; title !== before; ) {
    // What is removed can leave behind what joins nothing any more.
    before = title
    title = title
      .replaceAll(INVISIBLE, '')
      .replaceAll(STRAY_TAGS, '')
      .replaceAll(STRAY_JOINER, '')
      .normalize('NFC')
      .replaceAll(/[\s\x85]+/g, ' ')
      .trim()
  }
  return title
}
