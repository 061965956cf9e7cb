import { FileReplacedError, StateStoreClosedError } from '../errors.ts'
import type { EventHandler } from '../events.ts'
import type { Connection } from './connection.ts'
import type { FileGuard } from './file-guard.ts'
import { FILE_CHECK_MS } from './limits.ts'
import type { OtherConnections } from './other-connections.ts'
import { patiently } from './waiting.ts'

/** Reads messages from a connection that still sees them; what it returns stores again those another one lacks. */
export type Keep = (
  connection: Connection,
  ids: readonly number[],
) => (reopened: Connection) => { from: number; to: number }[]

/**
 * Opens a file again whose write-ahead log was deleted or replaced, and stores again the messages that were
 * acknowledged and are only there. Changes of sessions that are only in the log are lost with it, unless all of it can
 * still be moved to the file.
 */
export class Recovery {
  readonly #connection: Connection
  readonly #guard: FileGuard
  readonly #keep: Keep
  readonly #busyTimeout: number
  readonly #events: EventHandler
  readonly #wake: () => Promise<void>
  #nextLook: NodeJS.Timeout | undefined
  #acknowledged = 0
  #missing: ReturnType<Keep>[] = []
  /** What has another connection to the file: the connections of a process share what they know of its log. */
  readonly #beside = new Map<Promise<unknown>, (() => void) | undefined>()
  /** Whether it was begun and has not succeeded yet. */
  #begun = false
  /** Whether the connection must not be used meanwhile. */
  isReopening = false

  /** `wake` does a write, and with it a recovery that is due. */
  constructor(
    connection: Connection,
    guard: FileGuard,
    keep: Keep,
    busyTimeout: number,
    events: EventHandler,
    wake: () => Promise<void>,
  ) {
    this.#connection = connection
    this.#guard = guard
    this.#keep = keep
    this.#busyTimeout = busyTimeout
    this.#events = events
    this.#wake = wake
  }

  /**
   * Whether the log is lost, as far as was looked.
   *
   * @throws FileReplacedError where the file is not the one that was opened.
   */
  isDue(thoroughly = false): boolean {
    return this.#begun || !this.#guard.holds(thoroughly)
  }

  /** Some time after a write, makes sure that it went to the file. */
  lookSoon(): void {
    this.#nextLook ??= setTimeout(this.#look, FILE_CHECK_MS).unref()
  }

  readonly #look = (): void => {
    this.#nextLook = undefined
    // Who ends the transaction looks again.
    if (this.#connection.inTransaction) return
    try {
      if (this.isDue(true)) this.#wake().catch((error) => this.report(error))
    } catch (error) {
      this.report(error)
    }
  }

  /** Waits for other processes without blocking. Where it fails, it goes on from there when it is called again. */
  async run(others: OtherConnections | null): Promise<void> {
    this.isReopening = true
    try {
      this.#interrupt()
      await Promise.allSettled(this.#beside.keys())
      const reopen = () => patiently(() => this.#reopen(), this.#busyTimeout)
      await (others ? others.whileClosed(reopen) : reopen())
    } finally {
      this.isReopening = false
    }
    await patiently(() => this.#connection.begin(), this.#busyTimeout)
    this.#storeAgain()
  }

  /** The same in this tick: the process ends. */
  runNow(others: OtherConnections | null): void {
    others?.closeNow()
    this.#interrupt()
    this.#reopen()
    this.#connection.begin()
    this.#storeAgain()
  }

  /** Has the connection not be opened again before `work` is settled, which `interrupt` may hasten. */
  waitFor(work: Promise<unknown>, interrupt?: () => void): void {
    this.#beside.set(work, interrupt)
    const forget = () => this.#beside.delete(work)
    work.then(forget, forget)
  }

  #interrupt(): void {
    for (const interrupt of this.#beside.values()) interrupt?.()
  }

  stopLooking(): void {
    clearTimeout(this.#nextLook)
  }

  #reopen(): void {
    const connection = this.#connection
    this.#begun = true
    if (connection.isOpen) {
      if (this.#guard.isUntouched) connection.checkpoint()
      this.#acknowledged += connection.stored.length
      this.#missing.push(this.#keep(connection, connection.stored))
      connection.stored.length = 0
    }
    connection.reopen()
    this.#guard.remember(true)
  }

  #storeAgain(): void {
    const connection = this.#connection
    let appended: { from: number; to: number }[]
    try {
      appended = this.#missing.flatMap((storeIn) => storeIn(connection))
      connection.commit()
    } catch (error) {
      connection.rollback()
      throw error
    }
    const { path } = connection
    const acknowledged = this.#acknowledged
    this.#begun = false
    this.#missing = []
    this.#acknowledged = 0
    this.#events({
      level: 'warning',
      type: 'log-lost',
      message:
        `The write-ahead log of '${path}' was deleted or replaced by somebody else, and the file was opened again: ` +
        (appended.length === 0
          ? 'no acknowledged message is missing.'
          : `of ${acknowledged} messages acknowledged since the last checkpoint ${appended.length} were missing and were stored again. Check titles, ends and token counts that were set just before.`),
      path,
      acknowledged,
      appended,
    })
  }

  /** Says why the file could not be written to, where no call is there to be rejected. */
  report(error: unknown): void {
    // Closing looks itself.
    if (error instanceof StateStoreClosedError) return
    const { path } = this.#connection
    if (error instanceof FileReplacedError) {
      const { message, gone } = error
      this.#events({ level: 'warning', type: 'file-replaced', message, path, gone })
      return
    }
    const reason = error instanceof Error ? error.message : String(error)
    this.#events({
      level: 'warning',
      type: 'log-not-recovered',
      message: `The write-ahead log of '${path}' was lost, and messages that are only there could not be stored again yet: ${reason}`,
      path,
      reason,
    })
  }
}
