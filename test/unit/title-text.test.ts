import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { MAX_TITLE_LENGTH, sanitizeTitle } from '../../src/index.ts'

const ENGLAND = '\u{1f3f4}\u{e0067}\u{e0062}\u{e0065}\u{e006e}\u{e0067}\u{e007f}'

describe('sanitizeTitle', () => {
  test.each<[string, text: string, expected: string]>([
    ['plain text', 'Fix build', 'Fix build'],
    ['white space around', ' \t a \n', 'a'],
    ['white space inside', 'a  \t\r\n  b', 'a b'],
    ['a line separator', 'line1\u2028line2\u2029line3', 'line1 line2 line3'],
    ['NEL, vertical tab, form feed', 'a\u0085b\vc\fd', 'a b c d'],
    ['spaces of other widths', 'a\u00a0b\u2003c\u3000d\u202fe\u205ff\u1680g', 'a b c d e f g'],
    ['control characters', 'a\0b\u0007c\u001b[31md\u007f', 'abc[31md'],
    ['zero width', '\ufeffa\u200bb\u2060c', 'abc'],
    ['a soft hyphen', 'a\u00adb', 'ab'],
    ['direction marks', 'שלום\u200f עולם\u200e', 'שלום עולם'],
    ['direction overrides', '\u202egnp.exe\u202c \u2066x\u2069 \u061cy', 'gnp.exe x y'],
    ['the Mongolian vowel separator', 'a\u180eb', 'ab'],
    ['invisible operators and annotations', 'a\u2061b\u2064c\ufff9d\ufffb', 'abcd'],
    ['fillers', 'a\u3164b\u115fc\u1160d\uffa0e', 'abcde'],
    ['stray language tags', `a\u{e0001}\u{e0067}\u{e0062}b`, 'ab'],
    ['half characters', 'a\ud83d', 'a\ufffd'],
    ['combining marks', 'e\u0301cole', '\u00e9cole'],
    ['Hangul letters', '\u1112\u1161\u11ab', '\ud55c'],
    ['characters with a better twin', '\u212b', '\u00c5'],
    ['compatibility characters, which stay', 'ﬁ ① Ａ ²', 'ﬁ ① Ａ ²'],
    ['letter case, which stays', 'École école', 'École école'],
    ['punctuation alone', '???', '???'],
    ['a number sign of Arabic', '\u0600\u0661', '\u0600\u0661'],
  ])('cleans %s', (_, text, expected) => {
    expect(sanitizeTitle(text)).toBe(expected)
  })

  test.each<[string, string]>([
    ['a family', '👨\u200d👩\u200d👧 family'],
    ['a rainbow flag', '🏳\ufe0f\u200d🌈'],
    ['a skin tone', '👩🏽\u200d💻 at work'],
    ['a pirate flag', '🏴\u200d☠\ufe0f'],
    ['a burning heart', '❤\ufe0f\u200d🔥'],
    ['a flag with tags', `${ENGLAND} England`],
    ['two flags with tags', `${ENGLAND}${ENGLAND}`],
    ['Persian with a non-joiner', 'می\u200cخواهم'],
    ['Persian with vowel signs and a non-joiner', 'مِ\u200cدَ'],
    ['Hindi with a joiner', 'क्\u200dष'],
    ['Hindi with a non-joiner', 'क्\u200cष'],
    ['Sinhala with a joiner', 'ශ්\u200dරී'],
    ['Bengali with a joiner before the virama', 'র\u200d্যা'],
    // The older spelling of the letters without a vowel, and still a common one: Unicode 15, section 12.9.
    ['Malayalam with a joiner at the end of a word', 'അവന്\u200d വന്നു'],
  ])('keeps %s', (_, text) => {
    expect(sanitizeTitle(text)).toBe(text)
  })

  test.each<[string, text: string, expected: string]>([
    ['between Latin letters', 'a\u200db\u200cc', 'abc'],
    ['at the start', '\u200d👨 \u200cم', '👨 م'],
    ['at the end', '👨\u200d م\u200c', '👨 م'],
    ['between an emoji and a letter', '👨\u200dx y\u200d👨', '👨x y👨'],
    ['two in a row between emoji', '👨\u200d\u200d👩', '👨👩'],
    ['three in a row between letters', 'a\u200d\u200d\u200db', 'ab'],
    ['after an accent', 'a\u0301\u200c\u0302', '\u00e1\u0302'],
    ['a non-joiner between emoji', '👨\u200c👩', '👨👩'],
    ['next to other characters that go', '👨\u200d\u200b👩 a\u200b\u200db', '👨\u200d👩 ab'],
  ])('removes joiners that join nothing: %s', (_, text, expected) => {
    expect(sanitizeTitle(text)).toBe(expected)
  })

  test.each<[string, string]>([
    ['nothing', ''],
    ['spaces', ' \t\n\u3000'],
    ['zero width', '\u200b\ufeff\u2060'],
    ['joiners', '\u200d\u200d\u200d\u200c'],
    ['a soft hyphen', '\u00ad'],
    ['an Arabic letter mark', '\u061c'],
    ['a Mongolian vowel separator', '\u180e'],
    ['a lone variation selector', '\ufe0f'],
    ['a Hangul filler', '\u3164'],
    ['a braille pattern without dots', '\u2800'],
    ['tags of no flag', '\u{e0067}\u{e007f}'],
    ['a direction override', '\u202e\u202c'],
    ['NUL', '\0'],
  ])('is null where nobody sees anything: %s', (_, text) => {
    expect(sanitizeTitle(text)).toBeNull()
  })

  test.each<[string, string, string?]>([
    ['100 letters', 'a'.repeat(100)],
    ['100 characters beyond 16 bits', '🚀'.repeat(100)],
    ['what is 100 characters once composed', 'e\u0301'.repeat(100), 'é'.repeat(100)],
    ['what is 100 characters once cleaned', `\u200b${'a\u200b'.repeat(100)}  `, 'a'.repeat(100)],
    ['much white space', `a${' '.repeat(500)}b`, 'a b'],
  ])('takes %s', (_, text, expected = text) => {
    expect(sanitizeTitle(text)).toBe(expected)
  })

  test('refuses more than 100 code points', () => {
    expect(MAX_TITLE_LENGTH).toBe(100)
    for (const text of ['a'.repeat(101), '🚀'.repeat(101), `${'a'.repeat(99)} b`]) {
      expect(() => sanitizeTitle(text)).toThrow(TypeError)
      expect(() => sanitizeTitle(text)).toThrow('too long')
    }
  })

  // What was stored must be found by its own text.
  test('leaves what it has cleaned as it is', () => {
    const character = fc.oneof(
      fc.constantFrom(
        ...'a e \u0301 \u0302 \u200c \u200d \u200b \ufe0f \u3164 \u00ad \u202e \u2028 \u0085'.split(' '),
        ...'👨 👩 🏽 🏴 \u{e0067} \u{e007f} م ی ِ क ् ़ ന \u0600 \u0661 한 \u1112 \u1161 \u11a8'.split(' '),
        ' ',
        '\t',
      ),
      fc.string({ unit: 'binary', minLength: 1, maxLength: 1 }),
    )
    fc.assert(
      fc.property(fc.string({ unit: character, maxLength: 8 }), (text) => {
        const title = sanitizeTitle(text)
        if (title !== null) expect(sanitizeTitle(title)).toBe(title)
      }),
      { numRuns: 5000 },
    )
  })
})
