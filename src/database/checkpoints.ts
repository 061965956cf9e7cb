import type { EventHandler } from '../events.ts'
import type { Connection } from './connection.ts'
import type { FileGuard } from './file-guard.ts'
import { CHECKPOINT_EVERY_N_WRITES, WAL_LIMIT_BYTES, WAL_RESTART_BYTES } from './limits.ts'

/** Moves the write-ahead log into the file now and then, and says so when it cannot keep up. */
export class Checkpoints {
  readonly #connection: Connection
  readonly #guard: FileGuard | null
  readonly #events: EventHandler
  #writes = 0
  #reported = false

  constructor(connection: Connection, guard: FileGuard | null, events: EventHandler) {
    this.#connection = connection
    this.#guard = guard
    this.#events = events
  }

  afterWrites(count: number): void {
    this.#writes += count
  }

  /** Whether so many writes have been counted that it is time for a checkpoint. */
  get isDue(): boolean {
    return this.#writes >= CHECKPOINT_EVERY_N_WRITES
  }

  /** Best effort: what a reader holds up is left for the next time. */
  run(): void {
    this.#writes = 0
    try {
      // A log that nobody else reads must not be moved over what they have written since.
      if (this.#guard?.holds(true) === false) return
      const { log: bytes, checkpointed } = this.#connection.checkpoint()
      // Where others write while it is moved, it is never moved whole, and would grow without end. Where half of it
      // cannot be moved, some reader keeps it, and who waits for that one waits in vain.
      if (bytes > WAL_RESTART_BYTES && checkpointed > bytes / 2) this.#connection.checkpoint('restart')
      if (bytes > WAL_LIMIT_BYTES && !this.#reported)
        this.#events({
          level: 'warning',
          type: 'wal-size',
          message: `The write-ahead log of '${this.#connection.path}' has grown to ${Math.round(bytes / 2 ** 20)} MiB: some process keeps a read transaction open.`,
          bytes,
          limit_bytes: WAL_LIMIT_BYTES,
        })
      this.#reported = bytes > WAL_LIMIT_BYTES
    } catch (error) {
      const reason = error instanceof Error ? error.message : String(error)
      this.#events({
        level: 'info',
        type: 'checkpoint-failed',
        message: `A checkpoint failed: ${reason}`,
        reason,
      })
    }
  }
}
