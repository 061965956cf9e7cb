import { sql } from 'kysely'
import type { Executor } from '../database/executor.ts'
import { integer } from '../database/filters.ts'
import { build, fixedQuery, type Param } from '../database/fixed-query.ts'
import { WINDOW, walk } from './walk.ts'

/** Rows of the additions' tables whose message or session is gone. */
export interface OrphanedAdditions {
  structuredContent: number[]
  clientIds: number[]
  activity: string[]
}

/** Of a store without additions. */
export const NO_ORPHANS: OrphanedAdditions = { structuredContent: [], clientIds: [], activity: [] }

const nextOf = (table: 'hs_structured_content' | 'hs_client_ids') =>
  fixedQuery((param: Param<{ after: number }>) => ({
    compile: () =>
      sql<{ id: number; orphaned: number }>`
        select message_id as id, message_id not in (select id from main.messages) as orphaned
        from ${sql.table(table)} where message_id > ${integer(param('after'))}
        order by message_id limit ${sql.lit(WINDOW)}`.compile(build),
  }))

const nextContents = nextOf('hs_structured_content')
const nextClientIds = nextOf('hs_client_ids')

const nextActivities = fixedQuery((param: Param<{ after: string }>) => ({
  compile: () =>
    sql<{ id: string; orphaned: number }>`
      select session_id as id, not exists (select 1 from main.sessions where id = session_id) as orphaned
      from hs_session_activity where session_id > ${param('after')}
      order by session_id limit ${sql.lit(WINDOW)}`.compile(build),
}))

export async function findOrphans(
  executor: Executor,
  signal: AbortSignal | undefined,
): Promise<OrphanedAdditions> {
  const ofMessages = async (next: typeof nextContents) => {
    const found: number[] = []
    await walk(executor, signal, Number.MIN_SAFE_INTEGER, (connection, after) => {
      const rows = connection.all(next, { after })
      for (const { id, orphaned } of rows) if (orphaned) found.push(id)
      return rows.length < WINDOW ? undefined : rows.at(-1)?.id
    })
    return found
  }
  const structuredContent = await ofMessages(nextContents)
  const clientIds = await ofMessages(nextClientIds)
  const activity: string[] = []
  await walk(executor, signal, '', (connection, after) => {
    const rows = connection.all(nextActivities, { after })
    for (const { id, orphaned } of rows) if (orphaned) activity.push(id)
    return rows.length < WINDOW ? undefined : rows.at(-1)?.id
  })
  return { structuredContent, clientIds, activity }
}

/** Deletes such rows, where what they belong to is still gone. */
const deleteOf = (table: 'hs_structured_content' | 'hs_client_ids') =>
  fixedQuery((param: Param<{ id: number }>) =>
    build
      .deleteFrom(table)
      .where('message_id', '=', param('id'))
      .where(({ not, exists, selectFrom }) =>
        not(exists(selectFrom('messages').select('messages.id').where('messages.id', '=', param('id')))),
      ),
  )

export const deleteOrphanedContent = deleteOf('hs_structured_content')
export const deleteOrphanedClientId = deleteOf('hs_client_ids')

export const deleteOrphanedActivity = fixedQuery((param: Param<{ id: string }>) =>
  build
    .deleteFrom('hs_session_activity')
    .where('session_id', '=', param('id'))
    .where(({ not, exists, selectFrom }) =>
      not(exists(selectFrom('sessions').select('sessions.id').where('sessions.id', '=', param('id')))),
    ),
)
