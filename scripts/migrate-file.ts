/** How npm run migrate looks at a file. */
import { type RawBuilder, sql } from 'kysely'
import type { Connection } from '../src/database/connection.ts'
import { build } from '../src/database/fixed-query.ts'
import { type FileState, inspect } from '../src/database/inspection.ts'
import { BUSY_TIMEOUT_MS } from '../src/database/limits.ts'
import { assertUsable } from '../src/database/migrator.ts'
import { fileSize, openConnection } from '../src/database/open-connection.ts'
import { patiently } from '../src/database/waiting.ts'
import type { EventHandler } from '../src/index.ts'
import { wrap } from './migrate-text.ts'

/** A file as it was found. */
export interface Found {
  state: FileState
  /** Read-only; undefined where there is no file, or an empty one. */
  connection: Connection | undefined
}

/**
 * Runs `use` on a file, which nothing is written to.
 *
 * @throws StateStoreError for a file that this package does not open.
 */
export async function withFile<T>(path: string, use: (found: Found) => T | Promise<T>): Promise<T> {
  if (!fileSize(path)) return use({ state: { kind: 'empty' }, connection: undefined })
  const connection = await openConnection(connectionOptions(path, true))
  try {
    const state = await patiently(() => inspect(connection), BUSY_TIMEOUT_MS)
    await assertUsable(state, path)
    return await use({ state, connection })
  } finally {
    connection.close()
  }
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
