import type { RepositoryContext } from '../database/repository.ts'
import type { StoreHandle } from '../database/store-handle.ts'

/** What looking after a file works with: the store's own line of writes, for it also works outside transactions. */
export interface MaintenanceContext extends RepositoryContext {
  executor: StoreHandle
}
