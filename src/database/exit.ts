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
  for (const queue of open)
    try {
      queue.flushAtExit()
    } catch (error) {
      // Nobody is left to reject to.
      console.error('hermes-state: writes that were still queued when the process exited are lost.', error)
    }
}
