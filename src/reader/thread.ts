import type { Worker } from 'node:worker_threads'
import type { EventHandler } from '../events.ts'
import type { Indexes } from '../search/candidates.ts'
import { toError } from './failure.ts'
import type { FromThread, ReaderData, Rows, Search, ToThread } from './protocol.ts'

/** What a search rejects with whose thread ended before it: `cause` is why, or undefined where it was stopped. */
export class ThreadEndedError extends Error {}

/** How long the end of the process waits for the statement of a search, in milliseconds. */
const CLOSING_MS = 5_000

interface Call {
  rows: unknown[]
  resolve: (rows: unknown[]) => void
  reject: (error: unknown) => void
}

/** A running thread, and the searches that wait for it. */
export class Thread {
  readonly #worker: Worker
  readonly #calls = new Map<number, Call>()
  readonly #events: EventHandler
  readonly #onCrash: (error: Error) => void
  readonly #closed = new Int32Array(new SharedArrayBuffer(4))
  #lastId = 0
  #ended: ThreadEndedError | undefined
  /** Whether it has opened the file. */
  isReady = false

  constructor(
    start: (closed: ReaderData['closed']) => Worker,
    events: EventHandler,
    onCrash: (error: Error) => void,
  ) {
    const worker = start(this.#closed)
    this.#worker = worker
    this.#events = events
    this.#onCrash = onCrash
    worker.on('message', this.#hear)
    worker.on('error', (error) => this.#crashed(error))
    worker.on('exit', (code) => this.#crashed(new Error(`it ended with exit code ${code}`)))
  }

  /** @throws ThreadEndedError, the reason of `signal`, and what the search throws. */
  async find<Kind extends keyof Rows>(
    search: Search<Kind>,
    indexes: Indexes,
    signal: AbortSignal | undefined,
  ): Promise<Rows[Kind][]> {
    const id = ++this.#lastId
    let abort = () => {}
    try {
      const rows = await new Promise<unknown[]>((resolve, reject) => {
        abort = () => {
          this.#post({ type: 'stop', id })
          reject(signal?.reason)
        }
        if (this.#ended) return reject(this.#ended)
        this.#calls.set(id, { rows: [], resolve, reject })
        this.#worker.ref()
        this.#post({ type: 'find', id, search, indexes: { words: indexes.words, bigrams: indexes.bigrams } })
        signal?.addEventListener('abort', abort)
      })
      return rows as Rows[Kind][]
    } finally {
      signal?.removeEventListener('abort', abort)
      this.#calls.delete(id)
      if (this.#calls.size === 0) this.#worker.unref()
    }
  }

  /** Ends it, after the statement it is at, and what waits for it. */
  async stop(): Promise<void> {
    this.#end(new ThreadEndedError())
    await this.#worker.terminate()
  }

  /**
   * Closes its connection while this thread waits, for the process is about to end.
   *
   * @throws Error after 5 seconds.
   */
  closeNow(): void {
    this.#post({ type: 'close' })
    if (Atomics.wait(this.#closed, 0, 0, CLOSING_MS) === 'timed-out')
      throw new Error(`A search held the file open for ${CLOSING_MS / 1000} s.`)
  }

  readonly #hear = (message: FromThread): void => {
    if (message.type === 'ready') this.isReady = true
    else if (message.type === 'event') this.#events(message.event)
    else {
      // It may have been aborted meanwhile.
      const call = this.#calls.get(message.id)
      if (message.type === 'failed') call?.reject(toError(message.failure))
      else if (call) this.#take(call, message)
    }
  }

  #take(call: Call, { id, rows, last }: Extract<FromThread, { type: 'page' }>): void {
    for (const row of rows) call.rows.push(row)
    if (last) call.resolve(call.rows)
    else this.#post({ type: 'next', id })
  }

  #post<Kind extends keyof Rows>(message: ToThread<Kind>): void {
    this.#worker.postMessage(message)
  }

  #crashed(error: Error): void {
    if (this.#ended) return
    this.#onCrash(error)
    this.#end(new ThreadEndedError(undefined, { cause: error }))
  }

  #end(error: ThreadEndedError): void {
    this.#ended ??= error
    for (const { reject } of this.#calls.values()) reject(error)
  }
}
