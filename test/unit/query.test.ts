import { describe, expect, test } from 'vitest'
import { containsCjk, sanitizeFts5Query } from '../../src/index.ts'

describe('sanitizeFts5Query', () => {
  test.each([
    // One word, and what is trimmed off it.
    ['hello', 'hello'],
    ['Hello', 'Hello'],
    ['C++', 'C'],
    ['(problem', 'problem'],
    ['why?', 'why'],
    ['#tag', 'tag'],
    ['[bracket]', 'bracket'],
    ['$HOME', 'HOME'],
    ['50%', '50'],
    ['<div>', 'div'],
    ['~user', 'user'],
    ['`code`', 'code'],
    ['done;', 'done'],
    ['left,', 'left'],
    ['!important', 'important'],
    ['^foo', 'foo'],
    ['foo^', 'foo'],
    ['((foo', 'foo'],
    ['{foo}', 'foo'],
    ['+foo', 'foo'],
    ['*foo', 'foo'],
    ['«Straße»', 'Straße'],
    // `<` with a stroke is `≮`, which is no punctuation.
    ['<\u0338x', '"<\u0338x"'],
    // Other characters inside: quoted whole.
    ['chat-send', '"chat-send"'],
    ['scripts/deploy.sh', '"scripts/deploy.sh"'],
    ["it's", '"it\'s"'],
    ['user@example.com', '"user@example.com"'],
    ['61.2%', '"61.2"'],
    ['x@y.z/w', '"x@y.z/w"'],
    ['path\\to\\file.txt', '"path\\to\\file.txt"'],
    ['C:\\temp', '"C:\\temp"'],
    ['rowid:1', '"rowid:1"'],
    ['e=mc2', '"e=mc2"'],
    ['a&b', '"a&b"'],
    ['x|y', '"x|y"'],
    ['fo*o', '"fo*o"'],
    ['(chat-send)', '"chat-send"'],
    // Several words.
    ['hello world', 'hello AND world'],
    ['  hello \t\r\n world  ', 'hello AND world'],
    ['TODO: fix', 'TODO AND fix'],
    ['content: parser', 'content AND parser'],
    ['{content}: parser', 'content AND parser'],
    ['hello - world', 'hello AND world'],
    ['pass\u200bword', 'pass AND word'],
    ['soft\u00adhyphen', 'soft AND hyphen'],
    ['\ufeffhello', 'hello'],
    // Phrases.
    ['"hello world"', '"hello world"'],
    ['"hello   world"', '"hello world"'],
    ['"hello"', 'hello'],
    ['"AND"', '"AND"'],
    ['"hello world" again', '"hello world" AND again'],
    ['foo"bar baz"', 'foo AND "bar baz"'],
    ['"(hello, world!)"', '"hello, world"'],
    // Quotes that have no partner, or nothing in them.
    ['"', ''],
    ['""', ''],
    ['"""', ''],
    ['" "', ''],
    ['"foo bar', 'foo AND bar'],
    ['foo "bar', 'foo AND bar'],
    ['foo"bar', 'foo AND bar'],
    ['"" foo', 'foo'],
    ['"foo" -bar', 'foo AND bar'],
    // Prefixes.
    ['deploy*', 'deploy*'],
    ['deploy**', 'deploy*'],
    ['chat-se*', '"chat-se"*'],
    ['"hello wor"*', '"hello wor"*'],
    ['deploy* now', 'deploy* AND now'],
    // Nothing to ask the word index.
    ['', ''],
    [' ', ''],
    ['***', ''],
    ['\0', ''],
    ['\0"\0', ''],
    ['...', ''],
    ['-', ''],
    ['🚀', ''],
    ['deploy 🚀', 'deploy'],
    ['hello\0', 'hello'],
    // Operators between two operands.
    ['a AND b', 'a AND b'],
    ['a OR b', 'a OR b'],
    ['a NOT b', 'a NOT b'],
    ['a b OR c', '(a AND b) OR c'],
    ['a OR b c', 'a OR (b AND c)'],
    ['a NOT b c', '(a NOT b) AND c'],
    ['a b NOT c', 'a AND (b NOT c)'],
    ['a OR b NOT c', 'a OR (b NOT c)'],
    ['a NOT b OR c', '(a NOT b) OR c'],
    ['a NOT b NOT c', '(a NOT b) NOT c'],
    ['a b OR c d NOT e', '(a AND b) OR (c AND (d NOT e))'],
    ['a OR b OR c', 'a OR b OR c'],
    ['a NOT "b c"', 'a NOT "b c"'],
    ['a OR chat-send', 'a OR "chat-send"'],
    // Operators that have no operands.
    ['hello AND', 'hello'],
    ['hello OR', 'hello'],
    ['hello NOT', 'hello'],
    ['AND hello', 'hello'],
    ['OR hello', 'hello'],
    ['foo AND AND bar', 'foo AND bar'],
    ['a AND OR b', 'a AND b'],
    ['a OR AND b', 'a OR b'],
    ['a AND NOT b', 'a NOT b'],
    ['hello AND OR NOT', 'hello'],
    ['AND', '"AND"'],
    ['OR', '"OR"'],
    ['NOT', '"NOT"'],
    ['AND OR', '"AND" AND "OR"'],
    ['NOT found', '"NOT" AND found'],
    ['NOT a NOT b', '"NOT" AND (a NOT b)'],
    // Words that look like operators.
    ['not found', 'not AND found'],
    ['state and machine', 'state AND and AND machine'],
    ['AND: this', '"AND" AND this'],
    ['NEAR', '"NEAR"'],
    ['foo NEAR bar', 'foo AND "NEAR" AND bar'],
    ['NEAR(foo bar)', '"NEAR(foo" AND bar'],
  ])('%j is %j', (query, expected) => {
    expect(sanitizeFts5Query(query)).toBe(expected)
  })

  test('huge queries are cut, not refused', () => {
    expect(sanitizeFts5Query('"'.repeat(50_000))).toBe('')
    expect(sanitizeFts5Query('*'.repeat(50_000))).toBe('')
    const many = sanitizeFts5Query(Array.from({ length: 5_000 }, (_, index) => `w${index}`).join(' OR '))
    expect(many.startsWith('w0 OR w1 OR w2 OR ')).toBe(true)
    expect(many.length).toBeLessThan(2_100)
    expect(sanitizeFts5Query(`x${' NOT "zz"'.repeat(300)}`).split('NOT').length).toBeLessThan(256)
    expect(sanitizeFts5Query(`${'('.repeat(200)}x${')'.repeat(200)}`)).toBe('x')
    expect(sanitizeFts5Query('x'.repeat(60_000)).length).toBe(2_048)
  })
})

test.each<[string, boolean]>([
  ['', false],
  ['hello', false],
  ['Grüße, naïve café', false],
  ['Привет', false],
  ['Ελληνικά', false],
  ['العربية', false],
  ['עברית', false],
  ['हिन्दी', false],
  ['🚀', false],
  ['①', false],
  ['ＡＢＣ', false],
  ['１２３', false],
  ['。、「」', false],
  ['中', true],
  ['hello 世界', true],
  ['𠮷野家', true],
  ['豈', true],
  ['々', true],
  ['〇', true],
  ['ひらがな', true],
  ['カタカナ', true],
  ['ｶﾀｶﾅ', true],
  ['ー', true],
  ['한국어', true],
  ['ᄀ', true],
  ['ㄅㄆㄇㄈ', true],
  ['สวัสดี', true],
  ['\u0e31', true],
  ['๑', true],
  ['ລາວ', true],
  ['ខ្មែរ', true],
  ['မြန်မာ', true],
  ['བོད', true],
  ['ꆈꌠ', true],
])('containsCjk(%j) is %s', (text, expected) => {
  expect(containsCjk(text)).toBe(expected)
})
