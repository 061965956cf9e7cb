import { type RawBuilder, sql } from 'kysely'
import type { Connection } from './connection.ts'
import { build } from './fixed-query.ts'

/**
 * A schema by what it means: a line for each column, index, trigger and virtual table; the order of columns,
 * white space, quotes and case aside. Keys read like `column sessions.title`, `index idx_sessions_source`.
 */
export type Shape = ReadonlyMap<string, string>

/**
 * The keys of `expected` that `actual` lacks or has in another form. A column is there or not: what type it was
 * given is its file's business, for SQLite stores anything in it.
 */
export function differences(actual: Shape, expected: Shape): string[] {
  return [...expected.keys()].filter((key) =>
    isColumn(key) ? !actual.has(key) : actual.get(key) !== expected.get(key),
  )
}

export function isColumn(key: string): boolean {
  return key.startsWith('column ')
}

/** The table that `column sessions.title` is in. */
export function tableOf(key: string): string | undefined {
  return key.match(/^column (\w+)\./)?.[1]
}

/** Reads the shape of a schema. The tables of Kysely and those inside a word index are not part of it. */
export function readShape(connection: Connection): Shape {
  const shape = new Map<string, string>()
  const objects = select<{ type: string; name: string; tbl_name: string; sql: string | null }>(
    connection,
    sql`
      select type, name, tbl_name, sql from sqlite_schema
      where name not glob 'sqlite_*' and tbl_name not glob 'kysely_*'
        and name not in (select name from pragma_table_list where type = 'shadow')
      order by type, name`,
  )
  for (const { type, name, tbl_name, sql: text } of objects) {
    if (type !== 'table') shape.set(`${type} ${name}`, `${tbl_name}: ${normalised(text ?? '')}`)
    else if (/^create virtual table/i.test(text ?? '')) shape.set(`table ${name}`, normalised(text ?? ''))
    else
      for (const [column, definition] of readColumns(connection, name, text ?? ''))
        shape.set(column, definition)
  }
  return shape
}

interface Column {
  name: string
  type: string
  notnull: number
  dflt_value: string | null
  pk: number
  target: string | null
}

function readColumns(connection: Connection, table: string, text: string): [string, string][] {
  const columns = select<Column>(
    connection,
    sql`
      select info.name, info.type, info."notnull", info.dflt_value, info.pk,
        (select key."table" || '(' || coalesce(key."to", 'id') || ')' from pragma_foreign_key_list(${table}) as key
         where key."from" = info.name) as target
      from pragma_table_info(${table}) as info order by info.name`,
  )
  return columns.map(({ name, type, notnull, dflt_value, pk, target }) => [
    `column ${table}.${name}`,
    [
      type.toUpperCase(),
      notnull ? 'NOT NULL' : '',
      dflt_value === null ? '' : `DEFAULT ${dflt_value}`,
      pk ? `PRIMARY KEY ${pk}` : '',
      pk && /autoincrement/i.test(text) ? 'AUTOINCREMENT' : '',
      target ? `REFERENCES ${target}` : '',
    ]
      .filter(Boolean)
      .join(' '),
  ])
}

/** The text of a statement, by which two of the same meaning are equal. */
export function normalised(text: string): string {
  return text
    .replaceAll(/["`[\]]/g, '')
    .replaceAll(/\s+/g, ' ')
    .replaceAll(/ ?([(),;=]) ?/g, '$1')
    .replaceAll(/\bif not exists /gi, '')
    .toLowerCase()
    .trim()
}

/** The rows of a query, for looking at a file. */
export function select<Row>(connection: Connection, query: RawBuilder<unknown>): Row[] {
  return connection.execute<Row>(sql<Row>`${query}`.compile(build)).rows
}

/** The first few of a list, for a sentence. */
export function listed(items: readonly string[]): string {
  return items.length > 4 ? `${items.slice(0, 4).join(', ')} and ${items.length - 4} more` : items.join(', ')
}
