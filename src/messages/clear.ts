import { type RawBuilder, sql } from 'kysely'
import { now } from '../arguments.ts'
import type { Connection } from '../database/connection.ts'
import { toolCalls } from '../database/filters.ts'
import { build, fixedQuery, type Param } from '../database/fixed-query.ts'
import { STEP } from '../database/limits.ts'
import { SessionExistsError, SessionNotFoundError } from '../errors.ts'
import { exists } from '../sessions/removal.ts'

/** Takes all messages of a session away, in steps: deleted, or to a session of their own. */

const firstIds = (session_id: RawBuilder<string>, limit: RawBuilder<number>) =>
  build
    .selectFrom('messages')
    .select('messages.id')
    .where('session_id', '=', session_id)
    .orderBy('messages.id')
    .limit(limit)

const deleteFirst = fixedQuery((param: Param<{ session_id: string; limit: number }>) =>
  build.deleteFrom('messages').where('id', 'in', firstIds(param('session_id'), param('limit'))),
)

// Structured content goes by the message, and a trigger moves the client id.
const moveFirst = fixedQuery((param: Param<{ session_id: string; archive: string; limit: number }>) =>
  build
    .updateTable('messages')
    .set({ session_id: param('archive') })
    .where('id', 'in', firstIds(param('session_id'), param('limit')))
    .returning(toolCalls().as('tool_calls')),
)

const setCounters = fixedQuery((param: Param<{ id: string; messages: number; tool_calls: number }>) =>
  build
    .updateTable('sessions')
    .set({ message_count: param('messages'), tool_call_count: param('tool_calls') })
    .where('id', '=', param('id'))
    .returning('id'),
)

const insertArchive = fixedQuery(
  (param: Param<{ session_id: string; archive: string; model_config: string; ended_at: number }>) =>
    build
      .insertInto('sessions')
      .columns([
        'id',
        'source',
        'user_id',
        'model',
        'model_config',
        'parent_session_id',
        'started_at',
        'ended_at',
        'end_reason',
      ])
      .expression((eb) =>
        eb
          .selectFrom('sessions')
          .innerJoin('messages', 'messages.session_id', 'sessions.id')
          .where('sessions.id', '=', param('session_id'))
          .orderBy('messages.id')
          .limit(sql.lit(1))
          .select([
            param('archive').as('id'),
            'sessions.source',
            'sessions.user_id',
            'sessions.model',
            param('model_config').as('model_config'),
            'sessions.id as parent_session_id',
            'messages.timestamp as started_at',
            param('ended_at').as('ended_at'),
            sql.lit('replaced').as('end_reason'),
          ]),
      ),
)

/**
 * Deletes them. Returns how many there were.
 *
 * @throws SessionNotFoundError
 */
export function* deleteAll(connection: Connection, session_id: string): Generator<void, number> {
  resetCounters(connection, session_id)
  let deleted = 0
  for (;;) {
    const { changes } = connection.run(deleteFirst, { session_id, limit: STEP })
    deleted += changes
    if (changes < STEP) return deleted
    yield
  }
}

/**
 * Moves them to a new session; none is made where there are none.
 *
 * @throws SessionNotFoundError, SessionExistsError
 */
export function* archiveAll(connection: Connection, session_id: string, archive: string): Generator<void> {
  if (exists(connection, archive)) throw new SessionExistsError(archive)
  resetCounters(connection, session_id)
  // The mark of a branch: else it would pass for the continuation of a session that is ended by compression.
  const model_config = JSON.stringify({ _branched_from: session_id })
  const { changes } = connection.run(insertArchive, { session_id, archive, model_config, ended_at: now() })
  if (changes === 0) return
  let messages = 0
  let tool_calls = 0
  for (;;) {
    const moved = connection.all(moveFirst, { session_id, archive, limit: STEP })
    messages += moved.length
    tool_calls += moved.reduce((sum, message) => sum + message.tool_calls, 0)
    if (moved.length < STEP) break
    yield
  }
  connection.get(setCounters, { id: archive, messages, tool_calls })
}

function resetCounters(connection: Connection, id: string): void {
  if (!connection.get(setCounters, { id, messages: 0, tool_calls: 0 })) throw new SessionNotFoundError(id)
}
