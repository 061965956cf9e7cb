import type { Connection } from './connection.ts'

/** Where a repository runs its queries: the store itself, or an open transaction. */
export interface Executor {
  /** Runs `body` in one tick, outside every transaction but its own. */
  read<T>(body: (connection: Connection) => T): Promise<T>

  /** Runs `body` in one tick; its writes are kept together or not at all. */
  write<T>(body: (connection: Connection) => T): Promise<T>

  /** As `write`, for work too long for one tick: the event loop gets its turn at every `yield`. */
  writeInSteps<T>(body: (connection: Connection) => Generator<void, T>): Promise<T>

  /** Between two of many writes: gives other processes, which look for the lock now and then, time to find it free. */
  letOthersWrite(duration_ms: number): Promise<void>
}
