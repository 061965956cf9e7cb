import { setTimeout as delay } from 'node:timers/promises'
import { StateStoreBusyError } from '../errors.ts'
import { WRITE_RETRY_MAX_MS, WRITE_RETRY_MIN_MS } from './limits.ts'
import { isBusy } from './sqlite-errors.ts'

/** The pause before try number `attempt` (from 0): doubling, jittered, so that processes do not march in step. */
export function retryDelay(attempt: number): number {
  const longest = Math.min(WRITE_RETRY_MIN_MS * 2 ** attempt, WRITE_RETRY_MAX_MS)
  return longest * (0.5 + Math.random() / 2)
}

/**
 * Runs `attempt` until no other process holds the lock it needs, without blocking the event loop in between.
 *
 * @throws StateStoreBusyError after `budget_ms`.
 */
export async function patiently<T>(
  attempt: () => T | Promise<T>,
  budget_ms: number,
  signal?: AbortSignal,
): Promise<T> {
  const started = performance.now()
  for (let tries = 0; ; tries++) {
    signal?.throwIfAborted()
    try {
      return await attempt()
    } catch (error) {
      if (!isBusy(error)) throw error
      const waited_ms = performance.now() - started
      if (waited_ms >= budget_ms) throw new StateStoreBusyError(waited_ms, { cause: error })
    }
    await delay(retryDelay(tries), undefined, { signal })
  }
}
