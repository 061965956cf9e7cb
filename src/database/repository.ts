import type { EventHandler } from '../events.ts'
import type { Executor } from './executor.ts'

/** What every repository works with. */
export interface RepositoryContext {
  executor: Executor
  events: EventHandler
  /** Whether the file has the tables of the additions. */
  additions: boolean
}
