import { type RawBuilder, type ReferenceExpression, type SqlBool, sql } from 'kysely'
import type { StateDatabase } from './schema.ts'

/** A column of a table of the file, as `table.column`. */
type ColumnName = ReferenceExpression<StateDatabase, keyof StateDatabase> & string

/** Whether a column holds one of the values, however many: SQLite takes at most 32,766 parameters. */
export function isOneOf(column: ColumnName, values: readonly string[]): RawBuilder<SqlBool> {
  return sql`${sql.ref(column)} in (select value from json_each(${JSON.stringify(values)}))`
}

/** Whether a column holds the text somewhere, ASCII case aside. Wildcards in the text are plain characters. */
export function containsText(column: ColumnName, text: string): RawBuilder<SqlBool> {
  const pattern = `%${text.replaceAll(/[\\%_]/g, '\\$&')}%`
  return sql`coalesce(${sql.ref(column)}, '') like ${pattern} escape '\\'`
}

/**
 * The first `length` code points of `messages.content`, so that ten megabytes are not read for a preview; all
 * of it where it is structured content in Hermes's form, which only makes sense whole.
 */
export function headOfContent(length: number): RawBuilder<string | null> {
  const content = sql.ref('messages.content')
  return sql`case when substr(${content}, 1, 6) = char(0) || 'json:' then ${content} else substr(${content}, 1, ${sql.lit(length)}) end`
}

/** How many tool calls the selected messages make; broken JSON counts as none. */
export function toolCalls(): RawBuilder<number> {
  const column = sql.ref('messages.tool_calls')
  return sql`coalesce(sum(case when json_valid(${column}) = 0 then 0 when json_type(${column}) = 'array' then json_array_length(${column}) else 0 end), 0)`
}
