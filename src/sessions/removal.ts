import type { Connection } from '../database/connection.ts'
import type { Executor } from '../database/executor.ts'
import { build, fixedQuery, type Param } from '../database/fixed-query.ts'

/** Messages that one transaction deletes: less than 0.1 s of the write lock. */
const CHUNK = 1_000

/** Messages deleted before the event loop gets its turn. */
const STEP = 250

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
    ),
)

const recount = fixedQuery((param: Param<{ id: string; deleted: number }>) =>
  build
    .updateTable('sessions')
    .set((eb) => ({ message_count: eb('message_count', '-', param('deleted')) }))
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

/**
 * Deletes sessions with their messages and orphans their children. Each transaction takes at most 1,000
 * messages; between them other writers get in, and a session that is no longer `removable` then stays with
 * what it has. Returns how many sessions went.
 */
export async function removeSessions(
  executor: Executor,
  ids: readonly string[],
  removable: Removable,
  afterChunk: (deleted: number) => void = () => {},
): Promise<number> {
  let deleted = 0
  for (let next = 0; next < ids.length; ) {
    const from = next
    const result = await executor.writeInSteps((connection) => removeChunk(connection, ids, from, removable))
    next = result.next
    deleted += result.deleted
    afterChunk(deleted)
  }
  return deleted
}

/** Goes on at `ids[from]` until a chunk of messages is deleted. `next` is where the next chunk begins. */
function* removeChunk(
  connection: Connection,
  ids: readonly string[],
  from: number,
  removable: Removable,
): Generator<void, { next: number; deleted: number }> {
  let budget = CHUNK
  let deleted = 0
  for (let index = from; index < ids.length; index++) {
    const id = ids[index] as string
    if (!removable(connection, id)) continue
    for (let inSession = 0; ; ) {
      const limit = Math.min(STEP, budget)
      const { changes } = connection.run(deleteSome, { id, limit })
      inSession += changes
      budget -= changes
      if (changes < limit) break
      if (budget === 0) {
        connection.run(recount, { id, deleted: inSession })
        return { next: index, deleted }
      }
      yield
    }
    connection.run(orphanChildren, { id })
    connection.run(deleteRow, { id })
    deleted++
  }
  return { next: ids.length, deleted }
}
