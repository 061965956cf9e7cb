import type { Connection } from './connection.ts'
import { WATCH_POLL_MS } from './limits.ts'

/**
 * What is committed to the file, by this connection and by all others: how to wait for more of it. Others are looked
 * for by a timer, one for all who wait, which runs while somebody does.
 */
export class Commits {
  readonly #connection: Connection
  readonly #waiting = new Set<() => void>()
  #count = 0
  #version: number | undefined
  #timer: NodeJS.Timeout | undefined

  constructor(connection: Connection) {
    this.#connection = connection
  }

  /** Grows with what anybody commits. What is read after it has all that it counts. */
  get count(): number {
    const version = this.#connection.dataVersion
    if (version !== this.#version) {
      this.#version = version
      this.add()
    }
    return this.#count
  }

  /** This connection, for which SQLite does not tell, has committed. */
  add(): void {
    this.#count++
    this.wakeAll()
  }

  /** Waits for more commits than `count`. May return early: whoever asks then looks again. */
  async moreThan(count: number, interrupt: AbortSignal): Promise<void> {
    if (this.#count !== count || interrupt.aborted) return
    let wake = () => {}
    const woken = new Promise<void>((resolve) => {
      wake = resolve
    })
    this.#waiting.add(wake)
    interrupt.addEventListener('abort', wake)
    // Not unref'ed: a program that does nothing but wait here is not at its end.
    this.#timer ??= setInterval(this.#poll, WATCH_POLL_MS)
    await woken
    interrupt.removeEventListener('abort', wake)
    this.#waiting.delete(wake)
    this.#stopUnused()
  }

  wakeAll(): void {
    // At every commit: emptying an empty set is not free.
    if (this.#waiting.size === 0) return
    for (const wake of this.#waiting) wake()
    this.#waiting.clear()
    this.#stopUnused()
  }

  readonly #poll = (): void => {
    try {
      this.count
    } catch {
      // Those who wait read next, and meet it where it can be waited out or reported.
      this.wakeAll()
    }
  }

  #stopUnused(): void {
    if (this.#waiting.size > 0) return
    clearInterval(this.#timer)
    this.#timer = undefined
  }
}
