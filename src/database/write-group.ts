import type { Connection } from './connection.ts'
import type { IndexUpkeep } from './index-upkeep.ts'
import { ROWS_AT_ONCE } from './limits.ts'
import { isWrite, type Turn, type Write } from './queue-entries.ts'
import { toStoreError } from './sqlite-errors.ts'

/**
 * Runs the writes that share a transaction.
 *
 * There are no savepoints between them: each would make FTS5 flush its index, which costs more than all the rest of
 * an append. Instead, a failure rolls everything back, and those that had gone well are put back to be run again
 * and committed first. Where a batch failed, its writes are first run by themselves to find the one to reject; so
 * no write runs more than three times.
 */
export class WriteGroup {
  readonly #connection: Connection
  readonly #upkeep: IndexUpkeep
  /** How many writes at the head of the line ran well in a transaction that another one's failure undid. */
  #again = 0
  /** How many are run by themselves, for a batch with them failed. */
  #alone = 0

  constructor(connection: Connection, upkeep: IndexUpkeep) {
    this.#connection = connection
    this.#upkeep = upkeep
  }

  /**
   * Takes writes from the head of the line and runs them in the open transaction, until the budget is spent or
   * somebody else's turn comes. Returns those to commit; none where the transaction was rolled back.
   */
  run(waiting: (Write | Turn)[], budget_ms: number): Write[] {
    const started = performance.now()
    const most = this.#again || Number.POSITIVE_INFINITY
    this.#again = 0
    const done: Write[] = []
    do {
      const batch = this.#takeBatch(waiting, most - done.length)
      try {
        batch[0].run(this.#connection, batch.slice(1))
        done.push(...batch)
      } catch (error) {
        this.#connection.rollback()
        if (this.#upkeep.rescued(error)) waiting.unshift(...done, ...batch)
        else this.#putBack(waiting, done, batch, error)
        return []
      }
    } while (done.length < most && isWrite(waiting[0]) && performance.now() - started < budget_ms)
    return done
  }

  #putBack(waiting: (Write | Turn)[], done: Write[], batch: [Write, ...Write[]], error: unknown): void {
    this.#again = done.length
    if (batch.length === 1) {
      batch[0].reject(toStoreError(error, this.#connection.path))
      waiting.unshift(...done)
    } else {
      this.#alone = done.length + batch.length
      waiting.unshift(...done, ...batch)
    }
  }

  /** The write at the head of the line, and those behind it that are run as one with it. */
  #takeBatch(waiting: (Write | Turn)[], most: number): [Write, ...Write[]] {
    const batch: [Write, ...Write[]] = [waiting.shift() as Write]
    if (this.#alone > 0) {
      this.#alone--
      return batch
    }
    while (batch.length < Math.min(most, ROWS_AT_ONCE) && batch[0].takes(waiting[0]))
      batch.push(waiting.shift() as Write)
    return batch
  }
}
