/** npm run migrate -- down: takes migrations back, after saying what is lost and backing the file up. */
import { closeSync, openSync, rmSync } from 'node:fs'
import Database from 'better-sqlite3'
import { sql } from 'kysely'
import type { Connection } from '../src/database/connection.ts'
import { executedIn, inspect } from '../src/database/inspection.ts'
import { BUSY_TIMEOUT_MS } from '../src/database/limits.ts'
import { migrate } from '../src/database/migrator.ts'
import { openConnection } from '../src/database/open-connection.ts'
import { MIGRATIONS } from '../src/database/reference.ts'
import type { Shape } from '../src/database/shape.ts'
import { CannotOpenError, UnsupportedSchemaError } from '../src/index.ts'
import { PROGRESS } from '../src/search/word-index.ts'
import { connectionOptions, count, withFile } from './migrate-file.ts'
import { migrationLines, plural, stateLine, tableOf, UsageError, wrap } from './migrate-text.ts'
import { schemas } from './schema-text.ts'

/** What becomes of the rows of our own tables. The rows of any other table that goes are lost. */
const FATE: Record<string, string> = {
  hs_structured_content: "moved to messages.content, as NUL, 'json:' and the JSON",
  hs_session_activity: 'dropped: going up again computes them from the messages',
}

/** The migration that `5`, `005` or `005_billing` names. */
export function targetOf(to: string | undefined): string {
  const names = Object.keys(MIGRATIONS)
  const number = /^\d{1,3}$/.test(to ?? '') ? to!.padStart(3, '0') : undefined
  const target = names.find((name) => name === to || name.slice(0, 3) === number)
  if (target === undefined)
    throw new UsageError(`--to must name the last migration to keep, ${names[0]} to ${names.at(-1)}.`)
  return target
}

export async function down(path: string, target: string, yes: boolean): Promise<void> {
  const undone = await announce(path, target, yes)
  if (undone.length === 0) return
  if (!yes) {
    console.log(
      `\n${wrap('Nothing was changed. Stop what uses the file and add --yes: that makes a backup beside the file first. A store that opens the file afterwards brings it up again.')}`,
    )
    process.exitCode = 2
    return
  }
  console.log(`\n${wrap(`Backup: ${await backUp(path)}`)}`)
  const connection = await openConnection(connectionOptions(path, false))
  try {
    await migrate(connection, { additions: true, target, busyTimeout: BUSY_TIMEOUT_MS })
    console.log(wrap(`Done: ${stateLine(inspect(connection))}.`))
  } finally {
    connection.close()
  }
}

/** Prints what going down means for a file. Returns the migrations to undo, the latest first. */
async function announce(path: string, target: string, yes: boolean): Promise<string[]> {
  return withFile(path, async ({ state, flaws, connection }) => {
    if (!connection) throw new CannotOpenError(`There is no state file at '${path}': check the path.`)
    if (state.kind === 'hermes' && state.shape.has(`column ${PROGRESS}.done`))
      throw new UnsupportedSchemaError(
        `The word index of '${path}' is half made: run npm run migrate first, which finishes it.`,
      )
    if (flaws.length > 0)
      throw new UnsupportedSchemaError(
        `'${path}' is flawed (${flaws.join(', ')}): run npm run migrate first, which mends that.`,
      )
    const done = executedIn(state)
    const later = done.filter((name) => !(name in MIGRATIONS))
    if (later.length > 0)
      throw new UnsupportedSchemaError(
        `'${path}' has ${later.join(', ')} of a later release: use that one to go down.`,
      )
    const undone = done.filter((name) => name > target).reverse()
    if (undone.length === 0) {
      console.log(wrap(`There is nothing to undo: '${path}' has migrations up to ${done.at(-1)}.`))
      return undone
    }
    const all = await schemas()
    const [before, after] = [undone[0], target].map(
      (name) => all.find((schema) => schema.name === name)!.shape,
    )
    const fates = rowFates(connection, before!, after!)
    console.log(
      wrap(`'${path}': ${stateLine(state)}. Going down to ${target} ${yes ? 'undoes' : 'would undo'}`),
    )
    console.log(`\n${migrationLines(undone, all)}\n`)
    console.log(fates.length > 0 ? fates.map((fate) => wrap(fate, 4)).join('\n') : 'No data is in what goes.')
    return undone
  })
}

/** What happens to the data in the columns and tables that `after` no longer has. */
function rowFates(connection: Connection, before: Shape, after: Shape): string[] {
  const tablesAfter = new Set([...after.keys()].map(tableOf))
  const gone = [...before].filter(([key]) => key.startsWith('column ') && !after.has(key))
  const columns = gone
    .filter(([key]) => tablesAfter.has(tableOf(key)))
    .map(([key, definition]) => {
      const [table, column] = key.replace('column ', '').split('.') as [string, string]
      const preset = sql.raw(definition.match(/DEFAULT (\S+)/)?.[1] ?? 'null')
      const value = sql.ref(column)
      const filled = count(
        connection,
        sql`select count(*) from ${sql.table(table)} where ${value} is not null and ${value} is not ${preset}`,
      )
      return filled > 0 ? `  ${table}.${column}: lost in ${plural(filled, 'row')}` : ''
    })
  const tables = [...new Set(gone.map(([key]) => tableOf(key)!))]
    .filter((table) => !tablesAfter.has(table))
    .map((table) => {
      const rows = count(connection, sql`select count(*) from ${sql.table(table)}`)
      return rows > 0 ? `  ${table}: ${plural(rows, 'row')} ${FATE[table] ?? 'lost'}` : ''
    })
  return [...columns, ...tables].filter((fate) => fate !== '')
}

/** Copies a file that may be in use, page by page through SQLite. Returns the path of the copy. */
async function backUp(path: string): Promise<string> {
  const copy = `${path}.backup-${new Date().toISOString().replaceAll(/[-:]|\.\d+/g, '')}`
  const db = new Database(path, { readonly: true, fileMustExist: true })
  // Made here, so that only its owner can read it, and that no earlier backup is written over.
  closeSync(openSync(copy, 'wx', 0o600))
  try {
    await db.backup(copy)
    return copy
  } catch (error) {
    rmSync(copy, { force: true })
    throw error
  } finally {
    db.close()
  }
}
