import fc from 'fast-check'
import type { JsonObject, JsonValue } from '../../src/index.ts'

/** What texts trip over: half characters, NUL, invisible ones, the signs of SQL, LIKE, FTS5 and JSON. */
const awkward = fc.constantFrom(
  ...'\ud800 \udfff \0 \0json: \u200b \u0301 \u0305 \u093f \u2066 \ufeff \ufffd \u0085 \u2028 \u{1e900}'.split(
    ' ',
  ),
  ...`" "" ' * % _ \\ : - ( ) { ^ + . /`.split(' '),
  ...'中 文字 ｶﾅ ครับ 한국 𠮷 🚀 🦀 👨‍👩‍👧 é İ ß ﬁ ａ ٣'.split(' '),
  ' ',
  '\t',
  '\r\n',
)

const unit = fc.oneof(
  { weight: 3, arbitrary: awkward },
  { weight: 3, arbitrary: fc.string({ unit: 'grapheme', minLength: 1, maxLength: 1 }) },
  { weight: 2, arbitrary: fc.string({ unit: 'binary', minLength: 1, maxLength: 1 }) },
  { weight: 2, arbitrary: fc.constantFrom('a', 'b', 'C', '1') },
)

/** Any text, lone surrogates included. */
export const anyText: fc.Arbitrary<string> = fc.string({ unit, maxLength: 12 })

/** Any number that JSON carries exactly. */
const anyNumber = fc
  .oneof(fc.integer(), fc.maxSafeInteger(), fc.double({ noNaN: true, noDefaultInfinity: true }))
  .filter((value) => !Number.isInteger(value) || Number.isSafeInteger(value) || Math.abs(value) >= 1e21)
  .map((value) => (value === 0 ? 0 : value))

const { json, object, list } = fc.letrec<{ json: JsonValue; object: JsonObject; list: JsonValue[] }>(
  (tie) => ({
    json: fc.oneof(
      { depthSize: 'small', withCrossShrink: true },
      fc.constantFrom(null, true, false),
      anyNumber,
      anyText,
      tie('list'),
      tie('object'),
    ),
    list: fc.array(tie('json'), { maxLength: 4 }),
    object: fc.dictionary(
      fc.oneof(anyText, fc.constantFrom('__proto__', 'toString', 'type', 'text')),
      tie('json'),
      {
        maxKeys: 4,
      },
    ),
  }),
)

/** Any JSON. */
export const anyJson: fc.Arbitrary<JsonValue> = json

export const anyObject: fc.Arbitrary<JsonObject> = object

/** Structured content: parts like those of providers, or any list or object. */
export const anyContent: fc.Arbitrary<JsonValue[] | JsonObject> = fc.oneof(
  fc.array(fc.record({ type: fc.constantFrom('text', 'image_url'), text: anyText }), { maxLength: 3 }),
  list,
  object,
)

/** Queries as people, and attackers, type them. */
export const anyQuery: fc.Arbitrary<string> = fc
  .array(
    fc.tuple(
      fc.oneof(
        fc.constantFrom(
          'AND',
          'OR',
          'NOT',
          'NEAR',
          'NEAR(a b, 2)',
          'a',
          'bc',
          'a*',
          '"a b"',
          '"',
          'content:a',
          '🚀',
        ),
        fc.constantFrom('and', '中文', '-a', '^a', 'a + b', '{a}', '\u0301', "it's", '""', '*', '\0'),
        anyText,
      ),
      fc.constantFrom(' ', ' ', ''),
    ),
    { maxLength: 10 },
  )
  .map((parts) => parts.flat().join(''))
