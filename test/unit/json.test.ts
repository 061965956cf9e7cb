import { describe, expect, test } from 'vitest'
import { toJson } from '../../src/json.ts'

const toMessage = (value: unknown): string => {
  try {
    toJson(value, 'value')
  } catch (error) {
    expect(error).toBeInstanceOf(TypeError)
    return (error as TypeError).message
  }
  return 'accepted'
}

class Point {
  x = 1
}

const circle: unknown[] = [{}]
circle.push({ back: circle })

describe('toJson', () => {
  test.each<[unknown, string]>([
    [null, 'null'],
    [true, 'true'],
    ['', '""'],
    ['a"b\n\u2028', '"a\\"b\\n\u2028"'],
    ['\ud800', '"\\ud800"'],
    [0, '0'],
    [-1.5, '-1.5'],
    [1e300, '1e+300'],
    [5e-324, '5e-324'],
    [Number.MAX_SAFE_INTEGER, '9007199254740991'],
    [Number.MIN_SAFE_INTEGER, '-9007199254740991'],
    [[], '[]'],
    [{}, '{}'],
    [[1, [2, { a: null }]], '[1,[2,{"a":null}]]'],
    [{ b: 1, a: { c: [false] } }, '{"b":1,"a":{"c":[false]}}'],
    [{ kept: 1, left: undefined }, '{"kept":1}'],
    [Object.assign(Object.create(null), { a: 1 }), '{"a":1}'],
    [JSON.parse('{"__proto__":{"a":1}}'), '{"__proto__":{"a":1}}'],
  ])('%j', (value, expected) => {
    expect(toJson(value, 'value')).toBe(expected)
  })

  test('takes one object in several places', () => {
    const shared = { a: 1 }
    expect(toJson([shared, shared, { shared }], 'value')).toBe('[{"a":1},{"a":1},{"shared":{"a":1}}]')
  })

  test.each<[string, unknown, string]>([
    ['undefined', undefined, 'value is '],
    ['a function', () => 1, 'value is a function'],
    ['a symbol', Symbol('x'), 'value is a symbol'],
    ['a BigInt', 1n, 'value is a bigint'],
    ['NaN', Number.NaN, 'value is NaN'],
    ['Infinity', Number.POSITIVE_INFINITY, 'value is Infinity'],
    ['an integer beyond 2^53', 2 ** 53, 'value is 9007199254740992'],
    ['a negative one', -(2 ** 53), 'value is -9007199254740992'],
    ['a date', new Date(0), 'value is a Date'],
    ['a map', new Map(), 'value is a Map'],
    ['bytes', Buffer.from('x'), 'value is a Buffer'],
    ['an error', new Error('x'), 'value is a Error'],
    ['an instance of a class', new Point(), 'value is a Point'],
    ['a boxed string', new String('x'), 'value is a String'],
    ['a BigInt deep inside', { a: [0, { b: [1n] }] }, 'value.a[1].b[0] is a bigint'],
    ['undefined in a list', [1, undefined], 'value[1] is '],
    ['a hole in a list', Array(2), 'value[0] is '],
    ['a method', { toJSON: () => 1 }, 'value.toJSON is a function'],
    ['a circle', circle, 'value[1].back contains itself'],
  ])('refuses %s', (_, value, expected) => {
    expect(toMessage(value).startsWith(expected), toMessage(value)).toBe(true)
  })
})
