import type { Selectable } from 'kysely'
import type { Connection } from '../database/connection.ts'
import { toolCalls } from '../database/filters.ts'
import { build, fixedQuery, type Param } from '../database/fixed-query.ts'
import type { MessageRow, SessionRow, StructuredContentTable } from '../database/schema.ts'
import type { IndexHealth } from '../search/index-health.ts'
import { insertSession } from '../sessions/create.ts'
import { addToCounters, insert } from './append.ts'

/** A message that was stored again, and the id it had. */
export interface StoredAgain {
  from: number
  to: number
}

type Kept = MessageRow & {
  structured: Selectable<StructuredContentTable>['content'] | null
  client_id: string | null
  calls: number
}

const messageById = fixedQuery((param: Param<{ id: number }>) =>
  build
    .selectFrom('messages')
    .leftJoin('hs_structured_content', 'hs_structured_content.message_id', 'id')
    .leftJoin('hs_client_ids', 'hs_client_ids.message_id', 'id')
    .select([
      'id',
      'messages.session_id',
      'role',
      'messages.content',
      'tool_call_id',
      'tool_calls',
      'tool_name',
      'timestamp',
      'token_count',
      'finish_reason',
      'reasoning',
      'reasoning_details',
      'codex_reasoning_items',
    ])
    .select(['hs_structured_content.content as structured', 'client_id', toolCalls().as('calls')])
    .where('id', '=', param('id')),
)

const sameMessage = fixedQuery((param: Param<Pick<MessageRow, 'id' | 'session_id' | 'role' | 'timestamp'>>) =>
  build
    .selectFrom('messages')
    .select('content')
    .where('id', '=', param('id'))
    .where('session_id', '=', param('session_id'))
    .where('role', '=', param('role'))
    .where('timestamp', '=', param('timestamp')),
)

const sessionById = (id: string) => build.selectFrom('sessions').selectAll().where('id', '=', id).compile()

const sessionByTitle = (title: string) =>
  build.selectFrom('sessions').select('id').where('title', '=', title).compile()

/**
 * Reads messages, and the sessions they are in, while the connection still sees them. The function that is returned
 * stores again what another connection lacks of them; it runs inside a transaction.
 */
export function keepMessages(
  connection: Connection,
  ids: readonly number[],
  indexes: IndexHealth,
): (reopened: Connection) => StoredAgain[] {
  const messages = ids.map((id) => connection.get(messageById, { id })).filter((row) => row !== undefined)
  const sessions = new Map<string, SessionRow>()
  for (const { session_id } of messages)
    for (let id: string | null = session_id; id !== null && !sessions.has(id); ) {
      const [session]: SessionRow[] = connection.execute(sessionById(id)).rows
      if (!session) break
      sessions.set(id, session)
      id = session.parent_session_id
    }
  return (reopened) => storeAgain(reopened, messages, sessions, indexes)
}

function storeAgain(
  connection: Connection,
  messages: readonly Kept[],
  sessions: ReadonlyMap<string, SessionRow>,
  indexes: IndexHealth,
): StoredAgain[] {
  // Transactions are lost from the end: where a message is there, those before it were, too.
  const last = messages.findLastIndex(
    (message) => connection.get(sameMessage, message)?.content === message.content,
  )
  return messages.slice(last + 1).map(({ id, structured, client_id, calls, ...values }) => {
    restoreSession(connection, values.session_id, sessions)
    const message = { values, structured, client_id, toolCalls: calls, notStored: [] }
    addToCounters(connection, values.session_id, [message], false)
    return { from: id, to: insert(connection, [message], indexes)[0]! }
  })
}

/** Creates a session as it was, its ancestors before it; its messages are counted as they come. */
function restoreSession(connection: Connection, id: string, sessions: ReadonlyMap<string, SessionRow>): void {
  const session = sessions.get(id)
  if (!session || connection.execute(sessionById(id)).rows.length > 0) return
  const { parent_session_id: parent, title } = session
  if (parent !== null) restoreSession(connection, parent, sessions)
  insertSession(connection, {
    ...session,
    title: title !== null && connection.execute(sessionByTitle(title)).rows.length > 0 ? null : title,
    message_count: 0,
    tool_call_count: 0,
  })
}
