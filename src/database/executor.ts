import type { Connection } from './connection.ts'

/** Does several writes of one kind at once. An error in place of a result is of that one alone: it wrote nothing. */
export type Batch<Item, Result> = (connection: Connection, items: readonly Item[]) => (Result | Error)[]

/** Where a repository runs its queries: the store itself, or an open transaction. */
export interface Executor {
  /** Runs `body` in one tick, outside every transaction but its own. */
  read<T>(body: (connection: Connection) => T): Promise<T>

  /** Runs `body` in one tick; its writes are kept together or not at all. */
  write<T>(body: (connection: Connection) => T): Promise<T>

  /** As `write`, for writes of which those that arrive together are cheaper as one: the same `batch` does them. */
  writeBatched<Item, Result>(item: Item, batch: Batch<Item, Result>): Promise<Result>

  /** As `write`, for work too long for one tick: the event loop gets its turn at every `yield`. */
  writeInSteps<T>(body: (connection: Connection) => Generator<void, T>): Promise<T>

  /** Between two of many writes: gives other processes, which look for the lock now and then, time to find it free. */
  letOthersWrite(duration_ms: number): Promise<void>
}
