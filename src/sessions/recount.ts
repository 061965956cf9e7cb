import { sql } from 'kysely'
import { toolCalls } from '../database/filters.ts'
import { build, fixedQuery, type Param } from '../database/fixed-query.ts'

/** Sets the message counters of a session to what its rows say. */
export const recountSession = fixedQuery((param: Param<{ id: string }>) =>
  build
    .updateTable('sessions')
    .set((eb) => ({
      message_count: eb
        .selectFrom('messages')
        .select((messages) => messages.fn.countAll<number>().as('count'))
        .where('session_id', '=', param('id')),
      tool_call_count: eb
        .selectFrom('messages')
        .select((messages) =>
          messages.fn.coalesce(messages.fn.sum<number>(toolCalls()), sql<number>`0`).as('count'),
        )
        .where('session_id', '=', param('id')),
    }))
    .where('id', '=', param('id')),
)
