import type { RepositoryContext } from '../database/repository.ts'
import type { WriteQueue } from '../database/write-queue.ts'

/** What looking after a file works with: the store's own line of writes, for it also works outside transactions. */
export interface MaintenanceContext extends RepositoryContext {
  executor: WriteQueue
}
