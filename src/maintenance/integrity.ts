import { sql } from 'kysely'
import type { Connection } from '../database/connection.ts'
import { select } from '../database/shape.ts'
import { isFileDamage, isIndexFailure } from '../database/sqlite-errors.ts'

/** What SQLite finds wrong with a file. */
export interface Integrity {
  /** Damage to the file itself, in SQLite's words; the first 100. */
  problems: string[]
  /** Damage to indexes of FTS5, which can be made anew from the messages: SQLite's words by the index's name. */
  indexes: ReadonlyMap<string, string>
}

export type IntegrityCheck = 'quick_check' | 'integrity_check'

const MOST_PROBLEMS = 100

/** Has SQLite look at every page: one statement, during which the event loop stands still. */
export function checkIntegrity(connection: Connection, check: IntegrityCheck): Integrity {
  const problems: string[] = []
  const indexes = new Map<string, string>()
  for (const line of linesOf(connection, check)) {
    const index = line.match(/fts5\b.*table (?:main\.)?"?(\w+)/i)?.[1]
    if (index !== undefined) indexes.set(index, line)
    else if (line !== 'ok') problems.push(line)
  }
  return { problems: problems.slice(0, MOST_PROBLEMS), indexes }
}

function linesOf(connection: Connection, check: IntegrityCheck): string[] {
  try {
    return linesAbout(connection, check, MOST_PROBLEMS)
  } catch (error) {
    if (isFileDamage(error)) return [error.message]
    if (!isIndexFailure(error)) throw error
    // An index that cannot be opened fails the check of the whole file, and not those of its tables.
    return tablesOf(connection).flatMap((table) => linesAbout(connection, check, table))
  }
}

function linesAbout(connection: Connection, check: IntegrityCheck, what: number | string): string[] {
  const rows = select<Partial<Record<IntegrityCheck, string>>>(
    connection,
    sql`${sql.raw(`pragma ${check}`)}(${sql.lit(what)})`,
  )
  return rows.flatMap((row) => row[check] ?? [])
}

function tablesOf(connection: Connection): string[] {
  return select<{ name: string }>(
    connection,
    sql`select name from sqlite_schema where type = 'table' and sql not like 'create virtual%'`,
  ).map(({ name }) => name)
}
