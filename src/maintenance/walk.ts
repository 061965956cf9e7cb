import { setImmediate as nextTick } from 'node:timers/promises'
import type { Connection } from '../database/connection.ts'
import type { Executor } from '../database/executor.ts'

/** Rows that one statement looks at: some ms. */
export const WINDOW = 1_000

/**
 * Looks at a table window by window, and gives the event loop its turn in between. `look` gets the key to begin above
 * and returns the last it has seen; undefined ends the walk, which a window that is not full must do: a walk that
 * waited for an empty one would follow a busy writer for ever.
 */
export async function walk<Key>(
  executor: Executor,
  signal: AbortSignal | undefined,
  first: Key,
  look: (connection: Connection, after: Key) => Key | undefined,
): Promise<void> {
  for (let after: Key | undefined = first; after !== undefined; ) {
    signal?.throwIfAborted()
    const from: Key = after
    after = await executor.read((connection) => look(connection, from))
    await nextTick()
  }
}
