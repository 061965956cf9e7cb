/** What npm run migrate prints, for a terminal of 80 columns. */
import { additionMigrations } from '../migrations/index.ts'
import { executedIn, type FileState } from '../src/database/inspection.ts'
import type { Shape } from '../src/database/shape.ts'
import type { Schema } from './schema-text.ts'

export const HELP = `npm run migrate                     brings the file up to date, or creates it
npm run migrate -- status           lists every migration as done or pending
npm run migrate -- plan             says what migrating would do
npm run migrate -- down --to 005    says what going back to 005 would undo and
                                    lose; with --yes it backs the file up first
                                    and then does it

  --db PATH         the file (default: $HERMES_HOME/state.db, else
                    ~/.hermes/state.db)
  --no-additions    leave a file at Hermes schema 6 that has no additions yet
  --to NAME         for down: the last migration to keep: 5, 005 or 005_billing
  --yes             for down: do it
  --help            this page

Exit code: 0 done, 1 failed, 2 wrong usage, or down without --yes.`

/** A mistake on the command line. */
export class UsageError extends Error {}

const COLUMNS = 80

/** Breaks a line between words at 80 columns; further lines begin with `indent` spaces. */
export function wrap(text: string, indent = 0): string {
  const lines: string[] = []
  let line: string | undefined
  for (const word of text.split(/(?<=\S) (?=\S)/)) {
    if (line === undefined) line = word
    else if (line.length + 1 + word.length <= COLUMNS) line += ` ${word}`
    else {
      lines.push(line)
      line = ' '.repeat(indent) + word
    }
  }
  return [...lines, line].join('\n')
}

export function stateLine(state: FileState): string {
  if (state.kind !== 'hermes') return 'no state file yet'
  const additions = executedIn(state).filter((name) => name in additionMigrations).length
  const all = Object.keys(additionMigrations).length
  return schemaLine(state.version, additions === 0 ? 'without' : additions < all ? 'with some' : 'with')
}

/** `Hermes schema 6 with additions` */
export function schemaLine(version: number, additions: 'with' | 'with some' | 'without'): string {
  return `Hermes schema ${version} ${additions} additions`
}

/** A line for each migration: its name, and the tables, columns and indexes that it makes. */
export function migrationLines(names: readonly string[], schemas: readonly Schema[]): string {
  const width = Math.max(...names.map(({ length }) => length)) + 4
  return names
    .map((name) => {
      const index = schemas.findIndex((schema) => schema.name === name)
      const made = partsMade(schemas[index - 1]?.shape ?? new Map(), schemas[index]?.shape ?? new Map())
      return wrap(`  ${name}`.padEnd(width) + made.join(', '), width)
    })
    .join('\n')
}

/** What a schema has that the one before it has not: `table x`, `sessions.title`, `index y`, `3 triggers`. */
function partsMade(before: Shape, after: Shape): string[] {
  const tables = new Set([...before.keys()].map(tableOf))
  const made = [...after.keys()].filter((key) => !before.has(key))
  const triggers = made.filter((key) => key.startsWith('trigger '))
  const parts = made
    .filter((key) => !key.startsWith('trigger '))
    .map((key) => {
      const table = tableOf(key)
      if (table === undefined) return key
      return tables.has(table) ? key.replace('column ', '') : `table ${table}`
    })
  const [tablesAndColumns, indexes] = [/^(?!index )/, /^index /].map((kind) =>
    parts.filter((part) => kind.test(part)),
  )
  return [
    ...new Set([...tablesAndColumns!, ...indexes!]),
    ...(triggers.length > 0 ? [`${triggers.length} triggers`] : []),
  ]
}

/** The table that `column sessions.title` is in. */
export function tableOf(key: string): string | undefined {
  return key.match(/^column (\w+)\./)?.[1]
}

export function plural(count: number, noun: string): string {
  return `${count.toLocaleString('en')} ${noun}${count === 1 ? '' : 's'}`
}
