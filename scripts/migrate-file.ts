/** How npm run migrate looks at a file. */
import { type RawBuilder, sql } from 'kysely'
import { flawList } from '../src/database/adoption.ts'
import type { Connection } from '../src/database/connection.ts'
import { fileSize } from '../src/database/file-access.ts'
import { build } from '../src/database/fixed-query.ts'
import type { FileState } from '../src/database/inspection.ts'
import { BUSY_TIMEOUT_MS } from '../src/database/limits.ts'
import { assertMigratable } from '../src/database/migrator.ts'
import type { EventHandler } from '../src/index.ts'
import { look } from '../src/inspect.ts'
import { wrap } from './migrate-text.ts'

/** A file as it was found. */
export interface Found {
  state: FileState
  /** What it lacks of what it says it is, or has in another form: migrating mends that. */
  flaws: string[]
  /** Read-only; undefined where there is no file, or an empty one. */
  connection: Connection | undefined
}

/**
 * Runs `use` on a file, which nothing is written to.
 *
 * @throws StateStoreError for a file that this package does not migrate.
 */
export async function withFile<T>(path: string, use: (found: Found) => T | Promise<T>): Promise<T> {
  if (!fileSize(path)) return use({ state: { kind: 'empty' }, flaws: [], connection: undefined })
  return look(connectionOptions(path, true), ({ state, flaws }, connection) => {
    assertMigratable(state, path)
    return use({ state, flaws: flaws ? flawList(flaws) : [], connection })
  })
}

/** The number that a query gives. */
export function count(connection: Connection, query: RawBuilder<unknown>): number {
  return connection.execute(sql<{ count: number }>`select (${query}) as count`.compile(build)).rows[0]!.count
}

export function connectionOptions(path: string, readonly: boolean) {
  return {
    path,
    readonly,
    synchronous: 'full',
    busyTimeout: BUSY_TIMEOUT_MS,
    signal: undefined,
    events: printWarning,
  } as const
}

export const printWarning: EventHandler = ({ level, message }) => {
  if (level === 'warning') console.error(wrap(`Warning: ${message}`))
}
