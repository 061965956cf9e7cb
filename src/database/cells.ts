import { isUtf8 } from 'node:buffer'
import { sql } from 'kysely'
import type { EventHandler } from '../events.ts'
import type { JsonText } from '../json.ts'
import type { Connection } from './connection.ts'
import { build } from './fixed-query.ts'

/** A row of a table, for the events that reading its cells may raise. */
export interface CellOwner {
  table: 'messages' | 'sessions'
  id: number | string
}

/**
 * Text from a cell. Other programs store BLOBs and numbers in text columns, and bytes that are not UTF-8:
 * those read as U+FFFD, as better-sqlite3 does for TEXT.
 */
export function text(cell: unknown): string | null {
  if (cell === null || cell === undefined) return null
  if (typeof cell === 'string') return cell
  return cell instanceof Uint8Array ? Buffer.from(cell).toString('utf8') : String(cell)
}

/** The value of a JSON cell, or undefined where it is broken, with an event. NULL is null. */
export function json<T>(
  cell: JsonText<T> | null,
  column: string,
  { table, id }: CellOwner,
  events: EventHandler,
): T | null | undefined {
  const source = text(cell)
  if (source === null) return null
  try {
    return JSON.parse(source)
  } catch {
    events({
      level: 'warning',
      type: 'broken-json',
      message: `${table}.${column} of row ${id} is not JSON: it reads as empty, and its text stays in the file.`,
      table,
      column,
      id,
    })
    return undefined
  }
}

/** Raises an event for each given column of a row whose U+FFFD stands for bytes that are not UTF-8. */
export function reportIllFormed(
  connection: Connection,
  columns: string[],
  { table, id }: CellOwner,
  events: EventHandler,
): void {
  for (const column of columns) {
    const { rows } = connection.execute(
      sql<{ bytes: Buffer | null }>`
        select cast(${sql.ref(column)} as blob) as bytes from ${sql.table(table)} where id = ${id}`.compile(
        build,
      ),
    )
    const bytes = rows[0]?.bytes
    if (bytes && !isUtf8(bytes))
      events({
        level: 'warning',
        type: 'ill-formed-text',
        message: `${table}.${column} of row ${id} holds bytes that are not UTF-8: they read as U+FFFD and stay in the file.`,
        table,
        column,
        id,
      })
  }
}
