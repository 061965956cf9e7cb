import { sql } from 'kysely'
import type { Connection } from '../database/connection.ts'
import type { Executor } from '../database/executor.ts'
import { toolCalls } from '../database/filters.ts'
import { build, fixedQuery, type Param } from '../database/fixed-query.ts'
import { STEP } from '../database/limits.ts'
import { recountSession } from './recount.ts'

/** Messages that one transaction deletes: less than 0.1 s of the write lock. */
const CHUNK = 500

const existing = fixedQuery((param: Param<{ id: string }>) =>
  build.selectFrom('sessions').select('id').where('id', '=', param('id')),
)

const deleteSome = fixedQuery((param: Param<{ id: string; limit: number }>) =>
  build
    .deleteFrom('messages')
    .where('id', 'in', (eb) =>
      eb
        .selectFrom('messages')
        .select('messages.id')
        .where('session_id', '=', param('id'))
        .orderBy('messages.id')
        .limit(param('limit')),
    )
    .returning(toolCalls().as('tool_calls')),
)

const subtract = fixedQuery((param: Param<{ id: string; messages: number; tool_calls: number }>) =>
  build
    .updateTable('sessions')
    .set((eb) => ({
      message_count: sql`max(coalesce(${eb.ref('message_count')}, 0) - ${param('messages')}, 0)`,
      tool_call_count: sql`max(coalesce(${eb.ref('tool_call_count')}, 0) - ${param('tool_calls')}, 0)`,
    }))
    .where('id', '=', param('id')),
)

const orphanChildren = fixedQuery((param: Param<{ id: string }>) =>
  build.updateTable('sessions').set({ parent_session_id: null }).where('parent_session_id', '=', param('id')),
)

const deleteRow = fixedQuery((param: Param<{ id: string }>) =>
  build.deleteFrom('sessions').where('id', '=', param('id')),
)

/** Whether a session may go, looked at inside the transaction that deletes it. */
export type Removable = (connection: Connection, id: string) => boolean

export const exists: Removable = (connection, id) => connection.get(existing, { id }) !== undefined

export interface RemovalOptions {
  /** Stops between two sessions: one that has been begun is finished. */
  signal?: AbortSignal
  /** Called after each transaction with how many sessions are gone, of how many. */
  onProgress?: (progress: { deleted: number; total: number }) => void
}

interface Chunk {
  /** How many sessions went. */
  deleted: number
  /** Where the next chunk begins, and whether that session is already gone in part. */
  next: number
  midway: boolean
}

/**
 * Deletes sessions with their messages and orphans their children. Each transaction takes at most 500
 * messages; between them other writers get in, and a session that is no longer `removable` then stays with
 * what it has. Returns how many sessions went.
 */
export async function removeSessions(
  executor: Executor,
  ids: readonly string[],
  removable: Removable,
  { signal, onProgress }: RemovalOptions = {},
): Promise<number> {
  let deleted = 0
  let resumed = false
  for (let next = 0; next < ids.length; ) {
    const from = next
    const started = performance.now()
    const chunk = await executor.writeInSteps((connection) =>
      removeChunk(connection, ids, { from, resumed }, removable, signal),
    )
    next = chunk.next
    resumed = chunk.midway
    deleted += chunk.deleted
    onProgress?.({ deleted, total: ids.length })
    if (!chunk.midway) signal?.throwIfAborted()
    if (next < ids.length) await executor.letOthersWrite((performance.now() - started) / 2)
  }
  return deleted
}

/** Goes on at `ids[from]` (with a session gone in part if `resumed`) until a chunk is deleted. */
function* removeChunk(
  connection: Connection,
  ids: readonly string[],
  { from, resumed }: { from: number; resumed: boolean },
  removable: Removable,
  signal: AbortSignal | undefined,
): Generator<void, Chunk> {
  let budget = CHUNK
  let deleted = 0
  for (let index = from; index < ids.length; index++) {
    const id = ids[index] as string
    if (budget <= 0 || (signal?.aborted && index > from)) return { next: index, deleted, midway: false }
    if (index % STEP === 0) yield
    // Sessions without messages are work too.
    budget--
    if (!removable(connection, id)) {
      // What was taken off its counters is exact only where no other program had let them drift.
      if (resumed && index === from) connection.run(recountSession, { id })
      continue
    }
    for (let messages = 0, tool_calls = 0; ; ) {
      const removed = connection.all(deleteSome, { id, limit: STEP })
      budget -= removed.length
      if (removed.length < STEP) break
      messages += removed.length
      tool_calls += removed.reduce((sum, message) => sum + message.tool_calls, 0)
      if (budget <= 0) {
        connection.run(subtract, { id, messages, tool_calls })
        return { next: index, deleted, midway: true }
      }
      yield
    }
    connection.run(orphanChildren, { id })
    connection.run(deleteRow, { id })
    deleted++
  }
  return { next: ids.length, deleted, midway: false }
}
