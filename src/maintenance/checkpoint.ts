import { setTimeout as delay } from 'node:timers/promises'
import { walSize } from '../database/file-identity.ts'
import type { StoreHandle } from '../database/store-handle.ts'
import { retryDelay } from '../database/waiting.ts'

/** What a checkpoint left. */
export interface CheckpointResult {
  /** Whether a reader of an older state, or a writer, was in the way until the end: the log could not be emptied. */
  busy: boolean
  /** The size of the write-ahead log on the disk, in bytes; 0 where it was emptied. */
  walBytes: number
  /** How much of what is in the log is in the file too, in bytes of pages. */
  checkpointed: number
}

/** Empties the write-ahead log, trying again until nobody is in the way or `busyTimeout` is spent. */
export async function emptyLog(store: StoreHandle): Promise<CheckpointResult> {
  const started = performance.now()
  for (let tries = 0; ; tries++) {
    const result = await store.alone((connection) => {
      const { busy, checkpointed } = connection.checkpoint('truncate')
      return { busy, walBytes: connection.file ? walSize(connection.path) : 0, checkpointed }
    })
    if (!result.busy || performance.now() - started >= store.busyTimeout) return result
    await delay(retryDelay(tries))
  }
}
