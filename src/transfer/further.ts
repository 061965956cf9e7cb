import { sql } from 'kysely'
import type { Connection } from '../database/connection.ts'
import type { Executor } from '../database/executor.ts'
import { HERMES_NAMES, reference } from '../database/reference.ts'
import { isColumn, readShape, select, tableOf } from '../database/shape.ts'
import { WINDOW, walk } from '../maintenance/walk.ts'
import { type Counts, count } from './counts.ts'

/** Columns and tables that an export has in its own way, or that are about the file. */
const CARRIED = new Set([
  'messages.active',
  'messages.compacted',
  'sessions.system_prompt_hash',
  'system_prompts',
  'state_meta',
])

/**
 * What a file of a later Hermes has that an export does not: values of further columns, which are neither null, 0 nor
 * empty, under `title` for one of sessions and `messages.title` for one of messages; and rows of further tables.
 */
export async function countFurther(executor: Executor, signal: AbortSignal | undefined): Promise<Counts> {
  const { shape: complete } = await reference(HERMES_NAMES)
  const shape = await executor.read(readShape)
  const known = new Set([...complete.keys()].map(tableOf))
  const tables = new Set<string>()
  const columns = { sessions: [] as string[], messages: [] as string[] }
  for (const key of shape.keys()) {
    const table = isColumn(key) && !complete.has(key) ? tableOf(key) : undefined
    if (table === undefined || table.startsWith('hs_')) continue
    const name = key.slice('column '.length)
    if (CARRIED.has(name) || CARRIED.has(table)) continue
    if (table === 'sessions' || table === 'messages') columns[table].push(name.slice(table.length + 1))
    else if (!known.has(table)) tables.add(table)
  }
  const counts: Counts = {}
  for (const table of ['sessions', 'messages'] as const)
    if (columns[table].length > 0)
      await walk(executor, signal, Number.MIN_SAFE_INTEGER, (connection, after) => {
        const found = countValues(connection, table, columns[table], after)
        for (const column of columns[table])
          if (found[column])
            count(counts, table === 'sessions' ? column : `${table}.${column}`, found[column])
        return found['#rows'] === WINDOW ? (found['#last'] ?? undefined) : undefined
      })
  for (const table of tables) {
    const rows = await executor.read((connection) => countRows(connection, table))
    if (rows > 0) count(counts, table, rows)
  }
  return counts
}

/** Of the rows behind a rowid: how many values each column has; `#rows` were looked at, `#last` is the last. */
function countValues(
  connection: Connection,
  table: 'sessions' | 'messages',
  columns: readonly string[],
  after: number,
): Record<string, number | null> {
  const filled = columns.map(
    (column) => sql`count(nullif(nullif(${sql.ref(column)}, 0), '')) as ${sql.ref(column)}`,
  )
  const [found = {}] = select<Record<string, number | null>>(
    connection,
    sql`
      select count(*) as "#rows", max("#rowid") as "#last", ${sql.join(filled)} from (
        select rowid as "#rowid", * from ${sql.table(`main.${table}`)} where rowid > ${sql.lit(after)}
        order by rowid limit ${sql.lit(WINDOW)})`,
  )
  return found
}

function countRows(connection: Connection, table: string): number {
  const [found] = select<{ rows: number }>(
    connection,
    sql`select count(*) as "rows" from ${sql.table(`main.${table}`)}`,
  )
  return found?.rows ?? 0
}
