import type { EventHandler } from '../events.ts'
import type { Connection } from './connection.ts'
import type { FileGuard } from './file-guard.ts'

/** Reads messages from a connection that still sees them; what it returns stores again those another one lacks. */
export type Keep = (
  connection: Connection,
  ids: readonly number[],
) => (reopened: Connection) => { from: number; to: number }[]

/**
 * Opens a file again whose write-ahead log was deleted or replaced, and stores again what was acknowledged and was
 * only there. Changes of sessions that were only in the log are lost with it, unless all of it can still be moved to
 * the file.
 */
export class LostLog {
  readonly #connection: Connection
  readonly #guard: FileGuard
  readonly #keep: Keep
  readonly #events: EventHandler
  #acknowledged = 0
  readonly #missing: ReturnType<Keep>[] = []
  /** Whether there is something to store again. */
  isPending = false

  constructor(connection: Connection, guard: FileGuard, keep: Keep, events: EventHandler) {
    this.#connection = connection
    this.#guard = guard
    this.#keep = keep
    this.#events = events
  }

  /** May be called again where it failed, and then goes on. */
  reopen(): void {
    const connection = this.#connection
    this.isPending = true
    if (connection.isOpen) {
      if (this.#guard.isUntouched) connection.checkpoint()
      this.#acknowledged += connection.stored.length
      this.#missing.push(this.#keep(connection, connection.stored))
      connection.stored.length = 0
    }
    connection.reopen()
    this.#guard.remember(true)
  }

  /** Only inside a transaction; `done` is called once it is committed. */
  storeAgain(): { done: () => void } {
    const { path } = this.#connection
    const acknowledged = this.#acknowledged
    const appended = this.#missing.flatMap((storeIn) => storeIn(this.#connection))
    return {
      done: () => {
        this.isPending = false
        this.#missing.length = 0
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
      },
    }
  }
}
