import { setImmediate as nextTick } from 'node:timers/promises'
import { TICK_BUDGET_MS } from '../database/limits.ts'

/** Gives the event loop its turn now and then, in work of many short steps. */
export class Pace {
  #since = performance.now()

  /** Call it between two steps. */
  async rest(signal: AbortSignal | undefined): Promise<void> {
    if (performance.now() - this.#since < TICK_BUDGET_MS) return
    await nextTick()
    signal?.throwIfAborted()
    this.#since = performance.now()
  }
}
