import { sql } from 'kysely'
import type { Connection } from './connection.ts'
import { build } from './fixed-query.ts'
import { SCHEMA_VERSION } from './limits.ts'

/** What a file turned out to be. */
export type FileState =
  /** No table at all: a new file. */
  | { kind: 'empty' }
  /**
   * A file of Hermes schema 1 to 6. `executed` are the migrations recorded in it (none in a file that only
   * Hermes has written), `shape` is what its tables, indexes and triggers are.
   */
  | { kind: 'hermes'; version: number; executed: string[]; shape: Shape }
  | { kind: 'newer'; version: number }
  /** Somebody else's database; `found` says what is in it. */
  | { kind: 'foreign'; found: string }

/**
 * A schema by what it means: a line for each column, index and trigger, the order of columns, white space,
 * quotes and case aside. Keys read like `column sessions.title`, `index idx_sessions_source`.
 */
export type Shape = ReadonlyMap<string, string>

const HERMES_TABLES = ['schema_version', 'sessions', 'messages']

/** Says what an open file is, by reading only. */
export function inspect(connection: Connection): FileState {
  const objects = select<{ type: string; name: string }>(
    connection,
    sql`select type, name from sqlite_schema where name not glob 'sqlite_*' order by rowid`,
  )
  if (objects.length === 0) return { kind: 'empty' }
  const tables = new Set(objects.filter(({ type }) => type === 'table').map(({ name }) => name))
  if (!HERMES_TABLES.every((name) => tables.has(name)))
    return { kind: 'foreign', found: `it has ${listed(objects.map(({ type, name }) => `${type} ${name}`))}` }

  const versions = select<{ version: unknown }>(connection, sql`select version from schema_version`).map(
    (row) => row.version,
  )
  const [version] = versions
  // Several processes that made the file at once have left the same number several times.
  if (
    new Set(versions).size !== 1 ||
    typeof version !== 'number' ||
    !Number.isInteger(version) ||
    version < 1
  )
    return {
      kind: 'foreign',
      found: `its schema_version holds ${JSON.stringify(versions)} instead of one number`,
    }
  if (version > SCHEMA_VERSION) return { kind: 'newer', version }

  const executed = tables.has('kysely_migration')
    ? select<{ name: string }>(connection, sql`select name from kysely_migration order by name`).map(
        ({ name }) => name,
      )
    : []
  return { kind: 'hermes', version, executed, shape: readShape(connection) }
}

/** What `actual` lacks of `expected`, or has in another form: the keys of the shape. */
export function missingFrom(actual: Shape, expected: Shape): string[] {
  return [...expected].filter(([key, definition]) => actual.get(key) !== definition).map(([key]) => key)
}

/** Reads the shape of a schema. The tables of Kysely and of the word index are not part of it. */
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

function normalised(text: string): string {
  return text
    .replaceAll(/["`[\]]/g, '')
    .replaceAll(/\s+/g, ' ')
    .replaceAll(/ ?([(),;=]) ?/g, '$1')
    .replaceAll(/\bif not exists /gi, '')
    .toLowerCase()
    .trim()
}

/** The first few of a list, for a sentence. */
export function listed(items: string[]): string {
  return items.length > 4 ? `${items.slice(0, 4).join(', ')} and ${items.length - 4} more` : items.join(', ')
}

function select<Row>(connection: Connection, query: ReturnType<typeof sql>): Row[] {
  return connection.execute<Row>(sql<Row>`${query}`.compile(build)).rows
}
