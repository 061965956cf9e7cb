/** What npm run schema writes to test/golden: the schema after each migration as text, and their checksums. */
import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import Database from 'better-sqlite3'
import { Kysely, SqliteDialect } from 'kysely'
import { Connection } from '../src/database/connection.ts'
import { MIGRATIONS } from '../src/database/reference.ts'
import { readShape, type Shape } from '../src/database/shape.ts'

export interface Schema {
  /** The last migration that ran, for example `003_title`. */
  name: string
  shape: Shape
  text: string
}

/** The schema of a new database after each migration in turn. */
export async function schemas(): Promise<Schema[]> {
  const database = new Database(':memory:')
  const db = new Kysely<unknown>({ dialect: new SqliteDialect({ database }) })
  const connection = new Connection(database, () => {})
  const after: Schema[] = []
  for (const [name, { up }] of Object.entries(MIGRATIONS)) {
    await up(db)
    const shape = readShape(connection)
    after.push({ name, shape, text: render(name, shape, withoutRowid(database)) })
  }
  await db.destroy()
  return after
}

/** The SHA-256 of each migration's source by its file name. */
export function checksums(): Record<string, string> {
  return Object.fromEntries(
    Object.keys(MIGRATIONS).map((name) => {
      const source = readFileSync(new URL(`../migrations/${name}.ts`, import.meta.url))
      return [`${name}.ts`, createHash('sha256').update(source).digest('hex')]
    }),
  )
}

function withoutRowid(database: Database.Database): Set<unknown> {
  return new Set(
    database.prepare("select name from pragma_table_list where wr and type = 'table'").pluck().all(),
  )
}

function render(name: string, shape: Shape, withoutRowid: Set<unknown>): string {
  const columns = new Map<string, string[]>()
  const objects: string[] = []
  for (const [key, definition] of [...shape].sort(([a], [b]) => (a < b ? -1 : 1))) {
    const [, table, column] = key.match(/^column (\w+)\.(\w+)$/) ?? []
    if (table) columns.set(table, [...(columns.get(table) ?? []), `  ${column} ${oneKey(definition)}`])
    // A virtual table, else an index or trigger, whose shape begins with the table it is on.
    else objects.push(laidOut(key.startsWith('table ') ? definition : definition.replace(/^\w+: /, '')))
  }
  const tables = [...columns].map(
    ([table, lines]) =>
      `create table ${table} (\n${lines.join(',\n')}\n)${withoutRowid.has(table) ? ' without rowid' : ''};`,
  )
  const title = `-- The schema after ${name}, as npm run schema reads it off a new database; columns by name.`
  return `${[title, ...tables, ...objects].join('\n\n')}\n`
}

/** The place of a column in the key matters only where the key has several. */
function oneKey(definition: string): string {
  return definition.replace('PRIMARY KEY 1', 'PRIMARY KEY')
}

/** With the spaces that comparing leaves out, and each statement of a trigger on a line of its own. */
function laidOut(definition: string): string {
  const [head, body] = definition
    .replaceAll(/[,)](?=\S)(?![,);])/g, '$& ')
    .replaceAll(/(?<![<>!])=/g, ' = ')
    .replaceAll(/\b(and|in|not|or|values|where)\(/g, '$1 (')
    .split(/\bbegin /)
  if (body === undefined) return `${head};`
  const statements = body.replace(/end$/, '').split(';')
  const lines = statements.filter((statement) => statement !== '').map((statement) => `  ${statement};\n`)
  return `${head}begin\n${lines.join('')}end;`
}
