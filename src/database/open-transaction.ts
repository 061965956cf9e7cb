import { setImmediate as nextTick } from 'node:timers/promises'
import { TransactionMisuseError, TransactionTimeoutError } from '../errors.ts'
import type { Connection } from './connection.ts'
import type { Batch, Executor } from './executor.ts'
import { IndexUpkeep } from './index-upkeep.ts'
import type { IndexCare } from './queue-entries.ts'
import { toStoreError } from './sqlite-errors.ts'

/**
 * A transaction that stays open over several ticks and keeps everybody else out meanwhile. What is asked of
 * it runs one after the other, so that a step of one call never lands in the savepoint of another.
 */
export class OpenTransaction implements Executor {
  readonly #connection: Connection
  readonly #release: () => void
  readonly #indexes: IndexCare
  readonly #timer: NodeJS.Timeout | undefined
  #rejectExpired: (error: Error) => void = () => {}
  readonly #storedBefore: number
  #lane: Promise<unknown> = Promise.resolve()
  #ended: Error | undefined

  /** Rejects when the transaction has been open for too long; never settles otherwise. */
  readonly expired = new Promise<never>((_, reject) => {
    this.#rejectExpired = reject
  })

  /** `connection` has begun; `release` lets the next in line go on. */
  constructor(connection: Connection, release: () => void, limit_ms: number | undefined, indexes: IndexCare) {
    this.#connection = connection
    this.#storedBefore = connection.stored.length
    this.#indexes = indexes
    this.#release = release
    this.expired.catch(() => {})
    if (limit_ms !== undefined) this.#timer = setTimeout(() => this.#expire(limit_ms), limit_ms).unref()
  }

  get isOpen(): boolean {
    return this.#ended === undefined
  }

  /** The id of the first message that it stored: those above it are its own, too. */
  get firstStored(): number | undefined {
    return this.#connection.stored[this.#storedBefore]
  }

  read<T>(body: (connection: Connection) => T): Promise<T> {
    return this.#next(() => body(this.#connection))
  }

  write<T>(body: (connection: Connection) => T): Promise<T> {
    return this.#next(() => {
      try {
        return this.#connection.savepoint(() => body(this.#connection))
      } catch (error) {
        if (!this.#connection.inTransaction) {
          // The transaction is lost; the next one shall not be.
          new IndexUpkeep(this.#connection, this.#indexes).rescued(error)
          throw error
        }
        if (!this.#indexes.putAside(this.#connection, error)) throw error
        return this.#connection.savepoint(() => body(this.#connection))
      }
    })
  }

  /** Its calls run one after the other. */
  writeBatched<Item, Result>(item: Item, batch: Batch<Item, Result>): Promise<Result> {
    return this.write((connection) => {
      const [result] = batch(connection, [item])
      if (result instanceof Error) throw result
      return result as Result
    })
  }

  writeInSteps<T>(body: (connection: Connection) => Generator<void, T>): Promise<T> {
    return this.#next(() => this.#runUndoably(body))
  }

  /** Nobody else can write before the transaction ends. */
  async letOthersWrite(): Promise<void> {}

  /** As `writeInSteps`, for a transaction that holds nothing else: its failure must end the transaction. */
  writeAlone<T>(body: (connection: Connection) => Generator<void, T>): Promise<T> {
    return this.#next(() => this.#run(body(this.#connection)))
  }

  commit(commit: () => Promise<void>): Promise<void> {
    return this.#next(async () => {
      clearTimeout(this.#timer)
      await commit()
      this.#end(
        new TransactionMisuseError('The transaction has been committed: start another one for further work.'),
      )
    })
  }

  rollback(reason?: Error): void {
    if (!this.isOpen) return
    try {
      this.#connection.rollback()
    } finally {
      this.#end(
        reason ??
          new TransactionMisuseError(
            'The transaction has been rolled back: start another one for further work.',
          ),
      )
    }
  }

  async #runUndoably<T>(body: (connection: Connection) => Generator<void, T>): Promise<T> {
    const connection = this.#connection
    connection.exec('savepoint steps')
    try {
      const result = await this.#run(body(connection))
      connection.exec('release steps')
      return result
    } catch (error) {
      if (!this.isOpen || !connection.inTransaction) throw error
      connection.exec('rollback to steps')
      connection.exec('release steps')
      if (!this.#indexes.putAside(connection, error)) throw error
      return this.#runUndoably(body)
    }
  }

  async #run<T>(steps: Generator<void, T>): Promise<T> {
    for (let step = steps.next(); ; step = steps.next()) {
      if (step.done) return step.value
      await nextTick()
      this.#assertOpen()
    }
  }

  #expire(limit_ms: number): void {
    const error = new TransactionTimeoutError(limit_ms)
    this.rollback(error)
    this.#rejectExpired(error)
  }

  #end(reason: Error): void {
    clearTimeout(this.#timer)
    this.#ended = reason
    this.#release()
  }

  #next<T>(run: () => T | Promise<T>): Promise<T> {
    const result = this.#lane.then(async () => {
      this.#assertOpen()
      try {
        return await run()
      } catch (error) {
        throw toStoreError(error, this.#connection.path)
      }
    })
    this.#lane = result.catch(() => {})
    return result
  }

  #assertOpen(): void {
    if (this.#ended) throw this.#ended
    if (!this.#connection.inTransaction)
      throw new TransactionMisuseError(
        'The transaction is no longer open: SQLite rolled it back after an error, or a statement ended it by hand. Let that end the callback, and start another transaction.',
      )
  }
}
