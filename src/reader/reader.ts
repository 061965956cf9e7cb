import type { OtherConnections } from '../database/other-connections.ts'
import { toStoreError } from '../database/sqlite-errors.ts'
import { StateStoreClosedError } from '../errors.ts'
import type { EventHandler } from '../events.ts'
import type { Indexes } from '../search/candidates.ts'
import type { ReaderData, Rows, Search } from './protocol.ts'
import { startWorker } from './start.ts'
import { Thread, ThreadEndedError } from './thread.ts'

export type FileData = Omit<ReaderData, 'closed' | 'from'>

/**
 * Searches an open file in a thread of its own, on a connection that only reads: the event loop goes on meanwhile. The
 * thread is started by the first search.
 */
export class Reader implements OtherConnections {
  readonly #data: FileData
  readonly #events: EventHandler
  #thread: Thread | undefined
  #isAvailable = true
  #paused: Promise<void> | undefined
  #closed = false

  constructor(data: FileData, events: EventHandler) {
    this.#data = data
    this.#events = events
  }

  /**
   * The rows that a search finds. A search whose thread crashes is run once more; undefined where no thread can be
   * had.
   *
   * @throws StateStoreClosedError, the reason of `signal`, and what the search throws.
   */
  async find<Kind extends keyof Rows>(
    search: Search<Kind>,
    indexes: Indexes,
    signal: AbortSignal | undefined,
  ): Promise<Rows[Kind][] | undefined> {
    for (let crashes = 0; ; ) {
      while (this.#paused) await this.#paused
      signal?.throwIfAborted()
      if (this.#closed) throw new StateStoreClosedError()
      const thread = this.#running()
      if (!thread) return undefined
      try {
        return await thread.find(search, indexes, signal)
      } catch (error) {
        if (!(error instanceof ThreadEndedError)) throw toStoreError(error, this.#data.path)
        if (thread.isReady && error.cause && ++crashes > 1) throw error.cause
      }
    }
  }

  /** Searches wait meanwhile, and begin again. */
  async whileClosed(work: () => Promise<void>): Promise<void> {
    let goOn = () => {}
    this.#paused = new Promise((resolve) => {
      goOn = resolve
    })
    try {
      await this.#stop()
      await work()
    } finally {
      this.#paused = undefined
      goOn()
    }
  }

  closeNow(): void {
    this.#thread?.closeNow()
  }

  /** Searches under way reject with {@link StateStoreClosedError}. */
  async close(): Promise<void> {
    this.#closed = true
    await this.#stop()
  }

  async #stop(): Promise<void> {
    const thread = this.#thread
    this.#thread = undefined
    await thread?.stop()
  }

  #running(): Thread | undefined {
    if (!this.#isAvailable) return undefined
    try {
      this.#thread ??= new Thread(
        (closed) => startWorker({ ...this.#data, closed }),
        this.#events,
        this.#crashed,
      )
    } catch (error) {
      // This process may not start threads.
      this.#report(error, false)
    }
    return this.#thread
  }

  readonly #crashed = (error: Error): void => {
    this.#report(error, this.#thread?.isReady ?? false)
    this.#thread = undefined
  }

  #report(error: unknown, startsAgain: boolean): void {
    this.#isAvailable = startsAgain
    const { path } = this.#data
    const reason = error instanceof Error ? error.message : String(error)
    this.#events({
      level: 'warning',
      type: 'reader-failed',
      message: `The thread that searches '${path}' ${
        startsAgain
          ? `ended, and is started again: ${reason}`
          : `cannot be started, and searches run in the main thread: ${reason}`
      }`,
      path,
      reason,
      starts_again: startsAgain,
    })
  }
}
