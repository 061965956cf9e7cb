import { type RawBuilder, type ReferenceExpression, type SqlBool, sql } from 'kysely'
import type { ReadDatabase } from './schema.ts'

/** A column of a table of the file, as `table.column`. */
type ColumnName = ReferenceExpression<ReadDatabase, keyof ReadDatabase> & string

/** Whether a column holds one of the values, however many: SQLite takes at most 32,766 parameters. */
export function isOneOf(column: ColumnName, values: readonly string[]): RawBuilder<SqlBool> {
  return sql`${sql.ref(column)} in (select value from json_each(${JSON.stringify(values)}))`
}

/**
 * The first `length` code points of `messages.content` behind leading white space, so that ten megabytes are
 * not read for a preview; all of it where it has a NUL, which SQLite's text functions stop at.
 */
export function headOfContent(length: number): RawBuilder<string | null> {
  const content = sql.ref('messages.content')
  return sql`case when instr(${content}, char(0)) then ${content} else substr(ltrim(${content}, ${WHITE_SPACE}), 1, ${sql.lit(length)}) end`
}

/** Whether `messages.content` has more than white space. */
export function hasVisibleContent(): RawBuilder<SqlBool> {
  const content = sql.ref('messages.content')
  return sql`(instr(${content}, char(0)) or trim(${content}, ${WHITE_SPACE}) <> '')`
}

// SQLite's trim knows only the characters it is given: the white space of JavaScript's trim, and zero width. A
// literal, for calling char() would take longer than all the rest.
const WHITE_SPACE = sql.lit(
  String.fromCodePoint(
    9,
    10,
    11,
    12,
    13,
    32,
    133,
    160,
    5760,
    8192,
    8193,
    8194,
    8195,
    8196,
    8197,
    8198,
    8199,
    8200,
    8201,
    8202,
    8203,
    8232,
    8233,
    8239,
    8287,
    12288,
    65279,
  ),
)

/**
 * A number as an INTEGER. better-sqlite3 binds every number as a REAL: FTS5 passes over such a rowid as if there were
 * no condition. And SQLite plans with a LIMIT that is a bare parameter, so that each call prepares it again.
 */
export function integer(value: number | RawBuilder<number>): RawBuilder<number> {
  return sql`cast(${value} as integer)`
}

/** How many tool calls a message makes; broken JSON counts as none. */
export function toolCalls(): RawBuilder<number> {
  const column = sql.ref('tool_calls')
  return sql`case when ${column} is null or json_valid(${column}) = 0 then 0 when json_type(${column}) = 'array' then json_array_length(${column}) else 0 end`
}
