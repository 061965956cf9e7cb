import type { Connection } from './connection.ts'
import type { Batch } from './executor.ts'
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
  /** Runs this write, and with it those that it takes. */
  run(connection: Connection, taken: readonly Write[]): void
  /** Whether the entry behind it in line can be run with it. */
  takes(next: Write | Turn | undefined): boolean
  /** Called when the group is committed. */
  settle(): void
  reject(error: unknown): void
  /** When it first found the file locked. */
  blockedSince: number | undefined
}

/** A write that is run by itself. */
export class LoneWrite<T> implements Write {
  readonly #body: (connection: Connection) => T
  readonly #resolve: (result: T) => void
  readonly reject: (error: unknown) => void
  #settle: () => void = () => {}
  blockedSince: number | undefined

  constructor(
    body: (connection: Connection) => T,
    resolve: (result: T) => void,
    reject: (error: unknown) => void,
  ) {
    this.#body = body
    this.#resolve = resolve
    this.reject = reject
  }

  run(connection: Connection): void {
    const result = this.#body(connection)
    this.#settle = () => this.#resolve(result)
  }

  takes(): boolean {
    return false
  }

  settle(): void {
    this.#settle()
  }
}

/** A write that is run as one with others of its kind. */
export class BatchedWrite<Item, Result> implements Write {
  readonly #item: Item
  readonly #batch: Batch<Item, Result>
  readonly #resolve: (result: Result) => void
  readonly reject: (error: unknown) => void
  #settle: () => void = () => {}
  blockedSince: number | undefined

  constructor(
    item: Item,
    batch: Batch<Item, Result>,
    resolve: (result: Result) => void,
    reject: (error: unknown) => void,
  ) {
    this.#item = item
    this.#batch = batch
    this.#resolve = resolve
    this.reject = reject
  }

  run(connection: Connection, taken: readonly Write[]): void {
    const writes = [this, ...taken.filter((write) => this.takes(write))]
    const results = this.#batch(
      connection,
      writes.map((write) => write.#item),
    )
    for (const [index, write] of writes.entries()) {
      const result = results[index] as Result | Error
      write.#settle = () => (result instanceof Error ? write.reject(result) : write.#resolve(result))
    }
  }

  takes(next: Write | Turn | undefined): next is BatchedWrite<Item, Result> {
    return next instanceof BatchedWrite && next.#batch === this.#batch
  }

  settle(): void {
    this.#settle()
  }
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
