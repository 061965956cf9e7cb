import type { Connection } from './connection.ts'
import type { OpenTransaction } from './open-transaction.ts'

/** What the line of writes does for the indexes, always inside a transaction. */
export interface IndexCare {
  /** Takes out of the way what made a write fail. Returns whether it is worth running the write again. */
  putAside(connection: Connection, error: unknown): boolean
  /** Now and then, after many writes. */
  tidy(connection: Connection): void
}

/** A write that waits for its turn. */
export interface Write {
  run(connection: Connection): void
  /** Called when the group is committed. */
  settle(): void
  reject(error: unknown): void
  /** When it first found the file locked. */
  blockedSince: number | undefined
}

/** A transaction that waits for its turn: it then has the connection to itself until it ends. */
export interface Turn {
  limit_ms: number | undefined
  /** Does all of the work in one tick, where it is the store's own: if the process ends before the turn is over. */
  atExit: ((connection: Connection) => void) | undefined
  resolve(transaction: OpenTransaction): void
  reject(error: unknown): void
  blockedSince: number | undefined
}

export const isWrite = (entry: Write | Turn | undefined): entry is Write =>
  entry !== undefined && 'run' in entry
