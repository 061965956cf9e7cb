import { setTimeout as delay } from 'node:timers/promises'
import {
  DamagedFileError,
  ReadonlyStoreError,
  StateStoreBusyError,
  StateStoreClosedError,
} from '../errors.ts'
import type { EventHandler } from '../events.ts'
import { Checkpoints } from './checkpoints.ts'
import { Commits } from './commits.ts'
import type { Connection } from './connection.ts'
import type { Batch, Executor } from './executor.ts'
import { flushAtExit } from './exit.ts'
import type { FileGuard } from './file-guard.ts'
import { IndexUpkeep } from './index-upkeep.ts'
import { TICK_BUDGET_MS } from './limits.ts'
import { OpenTransaction } from './open-transaction.ts'
import type { OtherConnections } from './other-connections.ts'
import { BatchedWrite, type IndexCare, isWrite, LoneWrite, type Turn, type Write } from './queue-entries.ts'
import { Reads } from './reads.ts'
import { type Keep, Recovery } from './recovery.ts'
import { isBusy, toStoreError } from './sqlite-errors.ts'
import { assertOutside, enterScope, reservedTurn, withReserved } from './transaction-scope.ts'
import { retryDelay } from './waiting.ts'
import { WriteGroup } from './write-group.ts'

/**
 * The store's one line of writes on its one connection. Writes that arrive in the same tick share a
 * transaction, and one that fails takes none of the others with it; waiting for another process never blocks
 * the event loop.
 */
export class WriteQueue implements Executor {
  readonly commits: Commits
  readonly #connection: Connection
  readonly #recovery: Recovery | null
  readonly busyTimeout: number
  readonly #events: EventHandler
  readonly #indexes: IndexCare
  readonly #others: OtherConnections | null
  readonly #upkeep: IndexUpkeep
  readonly #group: WriteGroup
  readonly #waiting: (Write | Turn)[] = []
  readonly #reads: Reads
  readonly #checkpoints: Checkpoints
  readonly #forget: () => void
  #draining = false
  #foundBusy = false
  #whenDrained: (() => void) | undefined
  #transaction: OpenTransaction | undefined
  #turn: Turn | undefined
  #committing: Write[] = []
  #closed = false
  #closing = Promise.resolve()

  constructor(
    connection: Connection,
    guard: FileGuard | null,
    busyTimeout: number,
    events: EventHandler,
    { indexes, keep, others }: { indexes: IndexCare; keep: Keep; others: OtherConnections | null },
  ) {
    this.#connection = connection
    this.commits = new Commits(connection)
    const wake = () => this.write(() => {})
    this.#recovery = guard && new Recovery(connection, guard, keep, busyTimeout, events, wake)
    this.#indexes = indexes
    this.#others = others
    this.#upkeep = new IndexUpkeep(connection, indexes)
    this.#group = new WriteGroup(connection, this.#upkeep)
    this.busyTimeout = busyTimeout
    this.#events = events
    // Reading now would show what an open transaction has not committed.
    this.#reads = new Reads(
      connection,
      busyTimeout,
      () => connection.inTransaction || this.#recovery?.isReopening === true,
    )
    this.#checkpoints = new Checkpoints(connection, guard, events)
    this.#forget = flushAtExit(this)
  }

  async read<T>(body: (connection: Connection) => T): Promise<T> {
    this.#assertUsable()
    return this.#reads.read(body)
  }

  /** Runs `body` in one tick, outside every transaction: for what SQLite does not do inside of one. */
  async alone<T>(body: (connection: Connection) => T): Promise<T> {
    this.#assertUsable()
    this.#assertWritable()
    // A write finds out whether the file is still there, and opens it again where its log is lost.
    if (this.#recovery?.isDue(true)) await this.write(() => {})
    return this.read(body)
  }

  /**
   * Runs work that has another connection to the file: until it is done, this one is not opened again. `interrupt` has
   * it close that connection at once, where it could take for ever.
   */
  async besideConnection<T>(work: () => Promise<T>, interrupt?: () => void): Promise<T> {
    const done = work()
    this.#recovery?.waitFor(done, interrupt)
    return done
  }

  /** Reads in this tick: also what the open transaction, which `body` is given, has not committed. */
  peek<T>(body: (connection: Connection, transaction: OpenTransaction | undefined) => T): T {
    this.#assertUsable()
    return body(this.#connection, this.#transaction)
  }

  write<T>(body: (connection: Connection) => T): Promise<T> {
    return new Promise((resolve, reject) => {
      this.#assertUsable()
      this.#enqueue(new LoneWrite(body, resolve, reject))
    })
  }

  writeBatched<Item, Result>(item: Item, batch: Batch<Item, Result>): Promise<Result> {
    return new Promise((resolve, reject) => {
      this.#assertUsable()
      this.#enqueue(new BatchedWrite(item, batch, resolve, reject))
    })
  }

  async writeInSteps<T>(body: (connection: Connection) => Generator<void, T>): Promise<T> {
    const transaction = await this.begin(undefined, (connection) => {
      const steps = body(connection)
      while (!steps.next().done);
    })
    try {
      const result = await transaction.writeAlone(body)
      await this.commit(transaction)
      return result
    } catch (error) {
      transaction.rollback()
      if (error instanceof DamagedFileError && this.#upkeep.rescued(error.cause))
        return this.writeInSteps(body)
      throw error
    }
  }

  async letOthersWrite(duration_ms: number): Promise<void> {
    await delay(duration_ms)
  }

  /** Waits for its turn and the lock, then opens a transaction; at most `limit_ms` long where it is given. */
  begin(limit_ms?: number, atExit?: (connection: Connection) => void): Promise<OpenTransaction> {
    return new Promise((resolve, reject) => {
      this.#assertUsable()
      this.#enqueue({ limit_ms, atExit, resolve, reject, blockedSince: undefined })
    })
  }

  /**
   * Takes a turn now for the transaction that `run` will enter. Kysely asks for it some ticks later, when calls
   * made after this one would already be in line.
   */
  reserve<T>(limit_ms: number, run: () => Promise<T>): Promise<T> {
    const reserved = this.begin(limit_ms)
    // Whoever enters it hears of a failure.
    reserved.catch(() => {})
    return withReserved(this, reserved, run)
  }

  /**
   * Like `begin`, for a caller whose own code runs inside the transaction: calls of that code on the outer
   * store, which would wait for the transaction that waits for them, are refused from here on.
   */
  enter(limit_ms: number): Promise<OpenTransaction> {
    const opening = reservedTurn(this) ?? this.begin(limit_ms)
    // Kysely calls its callback from the asynchronous function that called this: it inherits the scope.
    return enterScope(this, opening)
  }

  async commit(transaction: OpenTransaction): Promise<void> {
    await transaction.commit(async () => {
      if (!this.#tryCommit()) await this.#waitToCommit()
    })
    this.#afterWrites(1)
  }

  /** The transaction that is open now. */
  get transaction(): OpenTransaction | undefined {
    return this.#transaction
  }

  /** Resolves when all that is in line now is done. */
  async untilPassed(): Promise<void> {
    if (!this.#draining) return
    // What a lock or the disk refuses to it, it has refused to those before it, too.
    await this.begin().then(
      (transaction) => transaction.rollback(),
      () => {},
    )
  }

  /** Refuses new calls, waits for those under way, and closes the connection. */
  async close(): Promise<void> {
    if (this.#closed) return this.#closing
    this.#assertUsable()
    this.#closed = true
    this.#closing = this.#finish()
    return this.#closing
  }

  async #finish(): Promise<void> {
    if (this.#draining)
      await new Promise<void>((resolve) => {
        this.#whenDrained = resolve
      })
    const recovery = this.#recovery
    recovery?.stopLooking()
    try {
      if (recovery?.isDue(true)) await this.#recover(recovery)
    } catch (error) {
      recovery?.report(error)
    }
    if (!this.#connection.readonly) this.#checkpoints.run()
    this.#connection.close()
    this.#forget()
  }

  /** The first half of the end of the process: gives up the transaction that is open, whoever's it is. */
  abandonAtExit(): void {
    this.#closed = true
    this.#connection.pragma(`busy_timeout = ${Math.min(this.busyTimeout, 5_000)}`)
    try {
      if (this.#committing.length > 0) this.#connection.commit()
    } finally {
      this.#connection.rollback()
    }
  }

  /** The second half: writes what is left in line, now. Callers' own transactions are lost. */
  flushAtExit(): void {
    const connection = this.#connection
    const interrupted = this.#turn === undefined ? [] : [this.#turn]
    const left = [...interrupted, ...this.#waiting.splice(0)].flatMap((entry): Write[] => {
      if (isWrite(entry)) return [entry]
      if (!entry.atExit) return []
      return [
        new LoneWrite(
          entry.atExit,
          () => {},
          () => {},
        ),
      ]
    })
    if (this.#recovery?.isDue(true)) this.#recovery.runNow(this.#others)
    while (left.length > 0) {
      connection.begin()
      if (this.#group.run(left, Number.POSITIVE_INFINITY).length > 0) connection.commit()
    }
    connection.close()
  }

  #assertUsable(): void {
    if (this.#closed) throw new StateStoreClosedError()
    assertOutside(this)
  }

  #assertWritable(): void {
    if (this.#connection.readonly)
      throw new ReadonlyStoreError(`The store is read-only: ${this.#connection.readonlyBecause}`)
  }

  #enqueue(entry: Write | Turn): void {
    this.#assertWritable()
    this.#waiting.push(entry)
    if (this.#draining) return
    this.#draining = true
    // A microtask would collect the same writes, but a loop of awaited appends would then starve timers.
    setImmediate(this.#drain)
  }

  readonly #drain = (): void => {
    const more = this.#tryBegin() ? this.#begun() : this.#waitToBegin()
    if (more) void more.then(this.#goOn)
    else this.#goOn()
  }

  readonly #lookAfter = (): void => {
    if (this.#checkpoints.isDue) this.#checkpoints.run()
    else this.#upkeep.tidy()
    this.#goOn()
  }

  readonly #goOn = (): void => {
    this.#reads.resume()
    // In turns of their own: each can take as long as a write.
    if (this.#checkpoints.isDue || this.#upkeep.isDue) setImmediate(this.#lookAfter)
    else if (this.#waiting.length > 0) setImmediate(this.#drain)
    else {
      this.#draining = false
      this.#whenDrained?.()
    }
  }

  /** Does what the transaction was opened for. A promise where that takes more than this tick: most writes do not. */
  #begun(): Promise<void> | undefined {
    return isWrite(this.#waiting[0]) ? this.#writeGroup() : this.#takeTurn()
  }

  async #takeTurn(): Promise<void> {
    const turn = this.#waiting.shift() as Turn
    this.#turn = turn
    await new Promise<void>((release) => {
      this.#transaction = new OpenTransaction(this.#connection, release, turn.limit_ms, this.#indexes)
      turn.resolve(this.#transaction)
    })
    this.#transaction = undefined
    this.#turn = undefined
  }

  #writeGroup(): Promise<void> | undefined {
    const done = this.#group.run(this.#waiting, TICK_BUDGET_MS)
    if (done.length === 0) return undefined
    this.#committing = done
    try {
      if (this.#tryCommit()) this.#committed(done)
      else
        return this.#waitToCommit().then(
          () => this.#committed(done),
          (error) => this.#refuse(done, error),
        )
    } catch (error) {
      // An index writes what it has when the transaction ends.
      if (this.#upkeep.rescued(error)) this.#waiting.unshift(...done)
      else this.#refuse(done, error)
    }
    return undefined
  }

  #committed(done: Write[]): void {
    for (const write of done) write.settle()
    this.#afterWrites(done.length)
    this.#upkeep.afterWrites(done.length)
  }

  #refuse(done: Write[], error: unknown): void {
    this.#committing = []
    for (const write of done) write.reject(toStoreError(error, this.#connection.path))
  }

  #afterWrites(count: number): void {
    this.#checkpoints.afterWrites(count)
    this.#recovery?.lookSoon()
  }

  async #recover(recovery: Recovery): Promise<void> {
    try {
      await recovery.run(this.#others)
      this.commits.add()
    } finally {
      this.#reads.resume()
    }
  }

  /** Opens a transaction for the entry at the head; false when that must wait. */
  #tryBegin(): boolean {
    this.#foundBusy = false
    try {
      if (this.#recovery?.isDue()) return false
      this.#connection.begin()
      return true
    } catch (error) {
      // The loop tries again and deals with what it meets.
      this.#foundBusy = isBusy(error)
      return false
    }
  }

  /**
   * Tries again until it opens a transaction for the entry at the head and does its work, or nothing of that
   * kind is at the head any more: what had waited too long was rejected, or all of it if SQLite refused.
   */
  async #waitToBegin(): Promise<void> {
    const first = performance.now()
    const forWrites = isWrite(this.#waiting[0])
    // SQLite has waited in this turn as long as it may.
    if (this.#foundBusy) await delay(retryDelay(0))
    for (let tries = this.#foundBusy ? 1 : 0; ; tries++) {
      try {
        if (this.#recovery?.isDue()) await this.#recover(this.#recovery)
        this.#connection.begin()
        const waited_ms = performance.now() - first
        if (waited_ms > 1_000)
          this.#events({
            level: 'info',
            type: 'lock-wait',
            message: `A write waited ${(waited_ms / 1000).toFixed(1)} s for another process.`,
            waited_ms,
          })
        break
      } catch (error) {
        const busy = isBusy(error)
        const now = performance.now()
        // A lock holds up everybody in line; any other refusal is for those it was tried for.
        for (const entry of busy ? [...this.#waiting] : this.#head()) {
          entry.blockedSince ??= now
          const waited_ms = now - entry.blockedSince
          if (busy && waited_ms < this.busyTimeout) continue
          this.#waiting.splice(this.#waiting.indexOf(entry), 1)
          entry.reject(
            busy
              ? new StateStoreBusyError(waited_ms, { cause: error })
              : toStoreError(error, this.#connection.path),
          )
        }
        if (this.#waiting.length === 0 || isWrite(this.#waiting[0]) !== forWrites) return
      }
      await delay(retryDelay(tries))
    }
    return this.#begun()
  }

  /** The entries that the next transaction is for: one turn, or all writes up to the next turn. */
  #head(): (Write | Turn)[] {
    if (!isWrite(this.#waiting[0])) return this.#waiting.slice(0, 1)
    const end = this.#waiting.findIndex((entry) => !isWrite(entry))
    return end === -1 ? [...this.#waiting] : this.#waiting.slice(0, end)
  }

  /** False when the commit is busy: readers of a file in rollback-journal mode. The work before it is kept. */
  #tryCommit(): boolean {
    try {
      this.#connection.commit()
    } catch (error) {
      if (isBusy(error)) return false
      this.#connection.rollback()
      throw error
    }
    // In the same tick: a process that exits now must not write any of it again.
    this.#committing = []
    if (this.#turn) this.#turn.atExit = undefined
    this.commits.add()
    return true
  }

  async #waitToCommit(): Promise<void> {
    const started = performance.now()
    for (let tries = 0; ; tries++) {
      await delay(retryDelay(tries))
      if (this.#tryCommit()) return
      const waited_ms = performance.now() - started
      if (waited_ms < this.busyTimeout) continue
      this.#connection.rollback()
      throw new StateStoreBusyError(waited_ms)
    }
  }
}
