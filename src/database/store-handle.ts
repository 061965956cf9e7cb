import { StateStoreClosedError } from '../errors.ts'
import type { Commits } from './commits.ts'
import type { Connection } from './connection.ts'
import type { Batch, Executor } from './executor.ts'
import type { OpenTransaction } from './open-transaction.ts'
import { assertOutside, reservedTurn } from './transaction-scope.ts'
import type { WriteQueue } from './write-queue.ts'

/** One store's access to the line of writes that all stores of its file share: it is closed by itself. */
export class StoreHandle implements Executor {
  readonly #queue: WriteQueue
  readonly #leave: () => Promise<void>
  readonly #closed = new AbortController()
  #closing: Promise<void> | undefined

  /** `leave` is called once, when the store is closed. */
  constructor(queue: WriteQueue, leave: () => Promise<void>) {
    this.#queue = queue
    this.#leave = leave
  }

  read<T>(body: (connection: Connection) => T): Promise<T> {
    return this.#refused() ?? this.#queue.read(body)
  }

  write<T>(body: (connection: Connection) => T): Promise<T> {
    return this.#refused() ?? this.#queue.write(body)
  }

  writeBatched<Item, Result>(item: Item, batch: Batch<Item, Result>): Promise<Result> {
    return this.#refused() ?? this.#queue.writeBatched(item, batch)
  }

  writeInSteps<T>(body: (connection: Connection) => Generator<void, T>): Promise<T> {
    return this.#refused() ?? this.#queue.writeInSteps(body)
  }

  /** See {@link WriteQueue.alone}. */
  alone<T>(body: (connection: Connection) => T): Promise<T> {
    return this.#refused() ?? this.#queue.alone(body)
  }

  /** See {@link WriteQueue.besideConnection}. */
  besideConnection<T>(work: () => Promise<T>, interrupt?: () => void): Promise<T> {
    return this.#refused() ?? this.#queue.besideConnection(work, interrupt)
  }

  /** How long a call waits for a lock, in milliseconds. */
  get busyTimeout(): number {
    return this.#queue.busyTimeout
  }

  /** See {@link WriteQueue.peek}. */
  peek<T>(body: (connection: Connection, transaction: OpenTransaction | undefined) => T): T {
    this.closed.throwIfAborted()
    return this.#queue.peek(body)
  }

  /** @throws TransactionMisuseError for code that runs inside a transaction of the file. */
  assertOutside(): void {
    assertOutside(this.#queue)
  }

  get commits(): Commits {
    return this.#queue.commits
  }

  /** Aborted when the store is closed. */
  get closed(): AbortSignal {
    return this.#closed.signal
  }

  letOthersWrite(duration_ms: number): Promise<void> {
    return this.#queue.letOthersWrite(duration_ms)
  }

  /** See {@link WriteQueue.reserve}. */
  reserve<T>(limit_ms: number, run: () => Promise<T>): Promise<T> {
    return this.#refused() ?? this.#queue.reserve(limit_ms, run)
  }

  /** See {@link WriteQueue.enter}. */
  enter(limit_ms: number): Promise<OpenTransaction> {
    // What has a turn already was called before the store was closed.
    const refused = reservedTurn(this.#queue) ? undefined : this.#refused()
    return refused ?? this.#queue.enter(limit_ms)
  }

  commit(transaction: OpenTransaction): Promise<void> {
    return this.#queue.commit(transaction)
  }

  /** The transaction that is open now, whichever store's it is. */
  get transaction(): OpenTransaction | undefined {
    return this.#queue.transaction
  }

  /** Refuses new calls, and waits for those under way. */
  async close(): Promise<void> {
    if (!this.#closing) {
      this.assertOutside()
      this.#closed.abort(new StateStoreClosedError())
      this.#closing = this.#leave()
    }
    return this.#closing
  }

  #refused(): Promise<never> | undefined {
    return this.#closing && Promise.reject(new StateStoreClosedError())
  }
}
