import { json, reportIllFormed, text } from '../database/cells.ts'
import type { Connection } from '../database/connection.ts'
import { build, fixedQuery, type Param } from '../database/fixed-query.ts'
import type { SessionRow } from '../database/schema.ts'
import type { EventHandler } from '../events.ts'
import type { JsonObject } from '../json.ts'
import { dollars } from '../usage/dollars.ts'
import type { Session, SessionFields } from './session-types.ts'

/** The columns that lists read: all but the system prompt. */
export const FIELD_COLUMNS = [
  'sessions.id',
  'sessions.source',
  'sessions.user_id',
  'sessions.model',
  'sessions.model_config',
  'sessions.parent_session_id',
  'sessions.started_at',
  'sessions.ended_at',
  'sessions.end_reason',
  'sessions.title',
  'sessions.message_count',
  'sessions.tool_call_count',
  'sessions.input_tokens',
  'sessions.output_tokens',
  'sessions.cache_read_tokens',
  'sessions.cache_write_tokens',
  'sessions.reasoning_tokens',
  'sessions.billing_provider',
  'sessions.billing_base_url',
  'sessions.billing_mode',
  'sessions.estimated_cost_usd',
  'sessions.actual_cost_usd',
  'sessions.cost_status',
  'sessions.cost_source',
  'sessions.pricing_version',
] as const

/** All columns. */
export const WHOLE_COLUMNS = [...FIELD_COLUMNS, 'sessions.system_prompt'] as const

export const sessionById = fixedQuery((param: Param<{ id: string }>) =>
  build.selectFrom('all_sessions as sessions').select(WHOLE_COLUMNS).where('id', '=', param('id')),
)

/** The one mapper that every reader of sessions goes through. */
export function toFields(
  connection: Connection,
  row: Omit<SessionRow, 'system_prompt'>,
  events: EventHandler,
): SessionFields {
  if (row.title?.includes('\uFFFD'))
    reportIllFormed(connection, ['title'], { table: 'sessions', id: row.id }, events)
  return {
    id: text(row.id) ?? '',
    source: text(row.source) ?? '',
    user_id: text(row.user_id),
    model: text(row.model),
    model_config: modelConfigOf(row, events),
    parent_session_id: text(row.parent_session_id),
    started_at: row.started_at,
    ended_at: row.ended_at,
    end_reason: text(row.end_reason),
    title: text(row.title),
    message_count: row.message_count ?? 0,
    tool_call_count: row.tool_call_count ?? 0,
    input_tokens: row.input_tokens ?? 0,
    output_tokens: row.output_tokens ?? 0,
    cache_read_tokens: row.cache_read_tokens ?? 0,
    cache_write_tokens: row.cache_write_tokens ?? 0,
    reasoning_tokens: row.reasoning_tokens ?? 0,
    billing_provider: text(row.billing_provider),
    billing_base_url: text(row.billing_base_url),
    billing_mode: text(row.billing_mode),
    estimated_cost_usd: cost(row.estimated_cost_usd),
    actual_cost_usd: cost(row.actual_cost_usd),
    cost_status: text(row.cost_status),
    cost_source: text(row.cost_source),
    pricing_version: text(row.pricing_version),
  }
}

export function toSession(connection: Connection, row: SessionRow, events: EventHandler): Session {
  return Object.assign(toFields(connection, row, events), { system_prompt: text(row.system_prompt) })
}

function cost(amount: number | null): number | null {
  return typeof amount === 'number' ? dollars(amount) : null
}

function modelConfigOf(
  { id, model_config }: Pick<SessionRow, 'id' | 'model_config'>,
  events: EventHandler,
): JsonObject | null {
  const value = json(model_config, 'model_config', { table: 'sessions', id }, events)
  return typeof value === 'object' && !Array.isArray(value) ? value : null
}
