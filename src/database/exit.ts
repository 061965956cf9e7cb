import type { WriteQueue } from './write-queue.ts'

const open = new Set<WriteQueue>()

/** Has the queue write what is left in it when the process exits; until the returned function is called. */
export function flushAtExit(queue: WriteQueue): () => void {
  if (open.size === 0) process.on('exit', flushAll)
  open.add(queue)
  return () => {
    open.delete(queue)
    if (open.size === 0) process.off('exit', flushAll)
  }
}

function flushAll(): void {
  // Two stores of one file must not wait for each other's transaction.
  for (const queue of open) attempt(() => queue.abandonAtExit())
  for (const queue of open) attempt(() => queue.flushAtExit())
}

function attempt(work: () => void): void {
  try {
    work()
  } catch (error) {
    // Nobody is left to reject to.
    console.error('hermes-state: writes that were still queued when the process exited are lost.', error)
  }
}
