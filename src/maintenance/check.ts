import { sql } from 'kysely'
import type { Connection } from '../database/connection.ts'
import { identityOf, walSize } from '../database/file-identity.ts'
import { select } from '../database/shape.ts'
import { findOrphans, NO_ORPHANS } from './additions.ts'
import type { MaintenanceContext } from './context.ts'
import { type DriftedSession, tally } from './counters.ts'
import { cyclesOf } from './cycles.ts'
import { checkIndexes, type IndexReport } from './indexes.ts'
import { checkIntegrity } from './integrity.ts'

export interface CheckOptions {
  /**
   * Compare word by word in a large file too (above 20,000 messages nobody else can write for as long as that takes,
   * about 5 s for a million), and the indexes of tables with their rows. Default false.
   */
  full?: boolean
  /** Gives up between two statements. */
  signal?: AbortSignal
}

/** A row that refers to one that is not there. */
export interface ForeignKeyViolation {
  table: string
  /** Null in a table without rowids. */
  rowid: number | null
  /** The table that lacks the row. */
  parent: string
}

/** What is wrong with the rows of a file. Lists have the first 10. */
export interface RowReport {
  foreignKeys: { total: number; first: ForeignKeyViolation[] }
  orphans: {
    /** Messages whose session does not exist, and the ids of such sessions. They are kept, and `repair()` keeps them. */
    messages: { total: number; sessions: string[] }
    /** Rows of the additions whose message or session does not exist. */
    structuredContent: number
    clientIds: number
    activity: number
  }
  /** Sessions that descend from themselves: the ids of each circle. */
  lineageCycles: { total: number; first: string[][] }
  /** Sessions whose counters differ from their rows; null in a file of a later schema, which counts in its own way. */
  counters: { total: number; first: DriftedSession[] } | null
}

/** What {@link MaintenanceRepository.check} found. */
export interface CheckReport {
  /** Whether nothing is wrong: no damage, no bad row, sound indexes, and the path still leads to the open file. */
  ok: boolean
  /** Damage to the file, in SQLite's words; the first 100. */
  integrity: string[]
  /** None where the file is damaged, or no longer at its path: comparing them takes a write. */
  indexes: IndexReport[]
  /** Null where the file is damaged: rows are not read then. */
  rows: RowReport | null
  /** Sizes in bytes: of the file, of the write-ahead log on the disk, and of the pages in the file that are not used. */
  fileBytes: number
  walBytes: number
  freeBytes: number
  sqliteVersion: string
  /** Which file is at the path now, null where there is none, and whether it is the one that is open. Null in memory. */
  file: { dev: number | null; ino: number | null; isOpenFile: boolean } | null
}

const FIRST = 10

export async function checkStore(
  context: MaintenanceContext,
  { full = false, signal }: CheckOptions,
): Promise<CheckReport> {
  signal?.throwIfAborted()
  const { executor } = context
  const { integrity, sizes } = await executor.read((connection) => ({
    integrity: checkIntegrity(connection, full ? 'integrity_check' : 'quick_check'),
    sizes: sizesOf(connection),
  }))
  const isWhole = integrity.problems.length === 0
  const rows = isWhole ? await checkRows(context, signal) : null
  signal?.throwIfAborted()
  const isThere = sizes.file?.isOpenFile ?? true
  const indexes = isWhole && isThere ? await checkIndexes(context, integrity.indexes, full) : []
  return {
    ok: rows !== null && isClean(rows) && indexes.every(({ problem }) => problem === null) && isThere,
    integrity: integrity.problems,
    indexes,
    rows,
    ...sizes,
  }
}

async function checkRows(context: MaintenanceContext, signal: AbortSignal | undefined): Promise<RowReport> {
  const { executor, additions, newer } = context
  const { drifted, missing, parents } = await tally(executor, signal)
  const orphaned = additions ? await findOrphans(executor, signal) : NO_ORPHANS
  const cycles = cyclesOf(parents)
  return {
    foreignKeys: await executor.read(checkForeignKeys),
    orphans: {
      messages: {
        total: [...missing.values()].reduce((sum, messages) => sum + messages, 0),
        sessions: [...missing.keys()].slice(0, FIRST),
      },
      structuredContent: orphaned.structuredContent.length,
      clientIds: orphaned.clientIds.length,
      activity: orphaned.activity.length,
    },
    lineageCycles: { total: cycles.length, first: cycles.slice(0, FIRST) },
    counters: newer ? null : { total: drifted.length, first: drifted.slice(0, FIRST) },
  }
}

function isClean({ foreignKeys, orphans, lineageCycles, counters }: RowReport): boolean {
  const wrong = [
    foreignKeys.total,
    orphans.messages.total,
    orphans.structuredContent,
    orphans.clientIds,
    orphans.activity,
    lineageCycles.total,
    counters?.total ?? 0,
  ]
  return wrong.every((count) => count === 0)
}

/** One statement that looks up what each row refers to: 0.2 s for a million messages. */
function checkForeignKeys(connection: Connection): RowReport['foreignKeys'] {
  const [count] = select<{ total: number }>(
    connection,
    sql`select count(*) as total from pragma_foreign_key_check`,
  )
  const total = count?.total ?? 0
  const first =
    total === 0
      ? []
      : select<ForeignKeyViolation>(
          connection,
          sql`select "table", rowid, parent from pragma_foreign_key_check limit ${sql.lit(FIRST)}`,
        )
  return { total, first }
}

function sizesOf(connection: Connection) {
  const { file, path, pageSize } = connection
  const now = file && identityOf(path)
  return {
    fileBytes: Number(connection.pragma('page_count')) * pageSize,
    walBytes: file ? walSize(path) : 0,
    freeBytes: Number(connection.pragma('freelist_count')) * pageSize,
    sqliteVersion: connection.sqliteVersion,
    file: file && {
      dev: now?.dev ?? null,
      ino: now?.ino ?? null,
      isOpenFile: now?.dev === file.dev && now.ino === file.ino,
    },
  }
}
