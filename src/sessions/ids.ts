import type { Connection } from '../database/connection.ts'
import { build, fixedQuery, type Param } from '../database/fixed-query.ts'

/** The shortest prefix that is looked up, in code points: shorter ones are accidents, '' above all. */
const MIN_PREFIX_LENGTH = 4

const exact = fixedQuery((param: Param<{ id: string }>) =>
  build.selectFrom('sessions').select('id').where('id', '=', param('id')),
)

const inRange = fixedQuery((param: Param<{ from: string; to: string; limit: number }>) =>
  build
    .selectFrom('sessions')
    .select('id')
    .where('id', '>=', param('from'))
    .where('id', '<', param('to'))
    .orderBy('id')
    .limit(param('limit')),
)

/** Ids that begin with a prefix, in order: a range of the primary key. A whole id is its own only match. */
export function matchingIds(connection: Connection, prefix: string, limit: number): string[] {
  if (connection.get(exact, { id: prefix })) return limit > 0 ? [prefix] : []
  if (Array.from(prefix).length < MIN_PREFIX_LENGTH) return []
  return connection.all(inRange, { from: prefix, to: following(prefix), limit }).map(({ id }) => id)
}

/** The first text behind all that begin with a prefix: SQLite compares text by code point. */
function following(prefix: string): string {
  const points = Array.from(prefix)
  while (points.at(-1) === '\u{10ffff}') points.pop()
  const last = points.pop()?.codePointAt(0)
  // Only a prefix of nothing but the last of all characters has nothing behind it.
  if (last === undefined) return `${prefix}\u{10ffff}`
  return points.join('') + String.fromCodePoint(last === 0xd7ff ? 0xe000 : last + 1)
}
