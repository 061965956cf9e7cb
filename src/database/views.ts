import { type RawBuilder, sql } from 'kysely'
import type { Connection } from './connection.ts'
import { build } from './fixed-query.ts'
import type { Shape } from './shape.ts'

/**
 * Makes what queries read from: temporary views, which live in this connection and not in the file. Over a file
 * of schema 6 they are the tables themselves and cost nothing; over any other file they give what it has the same
 * form: columns it lacks are null, a system prompt is found through its hash, and what Hermes has taken back,
 * summarised away, archived or hidden is marked. Writes name the tables.
 *
 * @param complete The shape of schema 6.
 */
export function makeViews(connection: Connection, shape: Shape, complete: Shape): void {
  const view = (name: string, query: RawBuilder<unknown>) =>
    connection.execute(sql`create temp view ${sql.table(name)} as ${query}`.compile(build))
  const has = (column: string) => shape.has(`column ${column}`)
  const columnsOf = (table: 'sessions' | 'messages') =>
    columnNames(complete, table).map((name) => {
      if (name === 'system_prompt' && has('system_prompts.hash') && has('sessions.system_prompt_hash'))
        return PROMPT
      return has(`${table}.${name}`) ? sql.ref(name) : sql`null as ${sql.ref(name)}`
    })

  const undone = has('messages.active') ? sql`coalesce(active, 1) = 0` : sql`false`
  const compacted = has('messages.compacted') ? sql`coalesce(compacted, 0) = 1` : sql`false`
  const flagged = has('messages.active') || has('messages.compacted')
  const message = sql.join(columnsOf('messages'))
  const inactive = flagged
    ? sql`case when ${compacted} then 'compacted' when ${undone} then 'undone' end`
    : sql`null`
  view('all_messages', sql`select ${message}, ${inactive} as inactive from main.messages`)
  view(
    'live_messages',
    sql`select ${message}, null as inactive from main.messages ${flagged ? sql`where not (${undone} or ${compacted})` : sql``}`,
  )

  const away = ['archived', 'hidden'].filter((name) => has(`sessions.${name}`))
  const listed = sql.join(
    away.map((name) => sql`coalesce(${sql.ref(name)}, 0) = 0`),
    sql` and `,
  )
  const session = sql.join(columnsOf('sessions'))
  view('all_sessions', sql`select ${session} from main.sessions`)
  view(
    'listed_sessions',
    sql`select ${session} from main.sessions ${away.length > 0 ? sql`where ${listed}` : sql``}`,
  )

  if (!has('hs_structured_content.message_id'))
    view('hs_structured_content', sql`select null as message_id, null as content where false`)
  if (!has('hs_client_ids.message_id'))
    view('hs_client_ids', sql`select null as message_id, null as session_id, null as client_id where false`)
  if (!has('hs_session_activity.session_id')) view('hs_session_activity', ACTIVITY)
  view(
    'listed_activity',
    sql`select * from hs_session_activity ${away.length > 0 ? sql`where exists (select 1 from main.sessions where id = session_id and ${listed})` : sql``}`,
  )
  view(
    'model_usage',
    has('session_model_usage.actual_cost_usd')
      ? usagePerModel(has('session_model_usage.task'))
      : USAGE_PER_SESSION,
  )

  // For the queries of users of a read-only store.
  if (connection.readonly)
    for (const table of ['sessions', 'messages'] as const) {
      const missing = columnNames(complete, table).filter((name) => !has(`${table}.${name}`))
      if (missing.length === 0) continue
      const nulls = sql.join(missing.map((name) => sql`null as ${sql.ref(name)}`))
      view(table, sql`select *, ${nulls} from main.${sql.table(table)}`)
    }
}

function columnNames(complete: Shape, table: string): string[] {
  const prefix = `column ${table}.`
  return [...complete.keys()].filter((key) => key.startsWith(prefix)).map((key) => key.slice(prefix.length))
}

const PROMPT = sql`
  coalesce((select prompt from main.system_prompts where hash = system_prompt_hash), system_prompt) as system_prompt`

// As migration 009 has it, but for messages of the future: when they were written is not known here.
const ACTIVITY = sql`
  select id as session_id, source, parent_session_id is null as is_root,
    coalesce((
      select max(timestamp) from main.messages
      where session_id = sessions.id and timestamp <= (julianday('now') - 2440587.5) * 86400.0 + 60.0
    ), started_at) as last_active
  from main.sessions`

const COUNTED = sql`
  model, input_tokens, output_tokens, cache_read_tokens, cache_write_tokens, reasoning_tokens, estimated_cost_usd,
  actual_cost_usd`

const USAGE_PER_SESSION = sql`select id as session_id, ${COUNTED} from all_sessions`

// An actual cost of 0 is one that was not reported. What helpers used beside the conversation (a task) is not in the
// columns of the session; the rest is, for sessions from before the table.
const usagePerModel = (hasTasks: boolean) => sql`
  select session_id, model, input_tokens, output_tokens, cache_read_tokens, cache_write_tokens, reasoning_tokens,
    estimated_cost_usd, nullif(actual_cost_usd, 0) as actual_cost_usd
  from main.session_model_usage
  union all
  select id as session_id, ${COUNTED} from all_sessions
  where id not in (select session_id from main.session_model_usage ${hasTasks ? sql`where task = ''` : sql``})`
