import { UnsupportedSchemaError } from '../errors.ts'
import type { EventHandler } from '../events.ts'
import type { IndexHealth } from '../search/index-health.ts'
import type { Executor } from './executor.ts'

/** What every repository works with. */
export interface RepositoryContext {
  executor: Executor
  events: EventHandler
  /** Whether what is stored may use the tables of the additions. */
  additions: boolean
  /** Whether the file has a Hermes schema above 6. */
  newer: boolean
  /** Which indexes of the file can be relied on. */
  indexes: IndexHealth
}

/**
 * Refuses a call that would take away what a later Hermes version keeps for its own features.
 *
 * @throws UnsupportedSchemaError
 */
export function assertOwnSchema({ newer }: RepositoryContext, call: string): void {
  if (newer)
    throw new UnsupportedSchemaError(
      `${call} is not offered on a file of a later Hermes schema, which keeps messages and marks that it would take away: use Hermes itself for that. Nothing was changed.`,
    )
}
