import type { Connection } from './connection.ts'
import { TIDY_EVERY_N_WRITES } from './limits.ts'
import type { IndexCare } from './queue-entries.ts'

/** Has the indexes looked after between writes, in transactions of their own. */
export class IndexUpkeep {
  readonly #connection: Connection
  readonly #care: IndexCare
  #writes = 0

  constructor(connection: Connection, care: IndexCare) {
    this.#connection = connection
    this.#care = care
  }

  /** Whether what made a write fail is out of its way now. */
  rescued(error: unknown): boolean {
    return this.#alone((connection) => this.#care.putAside(connection, error)) ?? false
  }

  afterWrites(count: number): void {
    this.#writes += count
  }

  /** Whether so many writes have been counted that it is time to tidy up. */
  get isDue(): boolean {
    return this.#writes >= TIDY_EVERY_N_WRITES
  }

  /** Tidies up. Where that does not go now, it will after as many writes again. */
  tidy(): void {
    this.#writes = 0
    this.#alone((connection) => this.#care.tidy(connection))
  }

  /** Runs work in a transaction; undefined where that does not go. */
  #alone<T>(work: (connection: Connection) => T): T | undefined {
    try {
      this.#connection.begin()
      const result = work(this.#connection)
      this.#connection.commit()
      return result
    } catch {
      // Somebody else holds the lock, or an index is damaged: the next write that meets it says so.
      this.#connection.rollback()
      return undefined
    }
  }
}
