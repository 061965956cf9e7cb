import { type RawBuilder, sql } from 'kysely'
import { checkId, checkObject, checkOptionalText, checkTime, checkWord, now } from '../arguments.ts'
import type { Connection } from '../database/connection.ts'
import { build, fixedQuery, type Param } from '../database/fixed-query.ts'
import type { SessionRow } from '../database/schema.ts'
import { LineageCycleError, ParentNotFoundError } from '../errors.ts'
import { toJson } from '../json.ts'
import type { NewSession } from './session-types.ts'

/** The source of a session that was only recovered: counts as missing. */
export const UNKNOWN_SOURCE = 'unknown'

/** A session as its INSERT takes it. */
export type SessionValues = Pick<
  SessionRow,
  | 'id'
  | 'source'
  | 'user_id'
  | 'model'
  | 'model_config'
  | 'system_prompt'
  | 'parent_session_id'
  | 'started_at'
>

/** @throws TypeError naming the field and what it must be. */
export function checkSession(session: NewSession): SessionValues {
  const fields = checkObject(session, 'session')
  const { model_config } = session
  if (model_config !== undefined && model_config !== null) checkObject(model_config, 'session.model_config')
  const parent = fields.parent_session_id
  return {
    id: fields.id === undefined ? crypto.randomUUID() : checkId(fields.id, 'session.id'),
    source: checkWord(fields.source, 'session.source'),
    user_id: checkOptionalText(fields.user_id, 'session.user_id'),
    model: checkOptionalText(fields.model, 'session.model'),
    model_config: model_config ? toJson(model_config, 'session.model_config') : null,
    system_prompt: checkOptionalText(fields.system_prompt, 'session.system_prompt'),
    parent_session_id:
      parent === undefined || parent === null ? null : checkId(parent, 'session.parent_session_id'),
    started_at: fields.started_at === undefined ? now() : checkTime(fields.started_at, 'session.started_at'),
  }
}

const parentOf = fixedQuery((param: Param<{ id: string }>) =>
  build.selectFrom('sessions').select(['id', 'parent_session_id']).where('id', '=', param('id')),
)

const promptOf = fixedQuery((param: Param<{ id: string }>) =>
  build.selectFrom('all_sessions').select('system_prompt').where('id', '=', param('id')),
)

const descendsFrom = fixedQuery((param: Param<{ id: string; ancestor: string }>) =>
  build
    // UNION drops what was seen: a circle in somebody's file ends the walk.
    .withRecursive('line(id)', (db) =>
      db
        .selectFrom('sessions')
        .where('id', '=', param('id'))
        .select('id')
        .union(
          db
            .selectFrom('line')
            .innerJoin('sessions', 'sessions.id', 'line.id')
            .where('sessions.parent_session_id', 'is not', null)
            .select(sql<string>`sessions.parent_session_id`.as('id')),
        ),
    )
    .selectFrom('line')
    .select('id')
    .where('id', '=', param('ancestor')),
)

// Fills what is missing and overwrites nothing: an early bare row must not swallow the full one.
const kept = <T>(column: string): RawBuilder<T> =>
  sql`coalesce(${sql.ref(`sessions.${column}`)}, ${sql.ref(`excluded.${column}`)})`

const upsert = (columns: { system_prompt?: RawBuilder<string | null> }) =>
  fixedQuery((param: Param<SessionValues>) =>
    build
      .insertInto('sessions')
      .values({
        id: param('id'),
        source: param('source'),
        user_id: param('user_id'),
        model: param('model'),
        model_config: param('model_config'),
        system_prompt: param('system_prompt'),
        parent_session_id: param('parent_session_id'),
        started_at: param('started_at'),
      })
      .onConflict((conflict) =>
        conflict.column('id').doUpdateSet({
          source: sql`case when sessions.source = ${sql.lit(UNKNOWN_SOURCE)} then excluded.source else sessions.source end`,
          user_id: kept('user_id'),
          model: kept('model'),
          model_config: kept('model_config'),
          parent_session_id: kept('parent_session_id'),
          ...columns,
        }),
      ),
  )

// A later Hermes keeps prompts by their hash, where only reading tells whether there is one: naming the column
// would make this the prompt.
const fill = upsert({})
const fillWithPrompt = upsert({ system_prompt: kept('system_prompt') })

const insertWhole = fixedQuery((param: Param<SessionRow>) =>
  build.insertInto('sessions').values({
    id: param('id'),
    source: param('source'),
    user_id: param('user_id'),
    model: param('model'),
    model_config: param('model_config'),
    system_prompt: param('system_prompt'),
    parent_session_id: param('parent_session_id'),
    started_at: param('started_at'),
    ended_at: param('ended_at'),
    end_reason: param('end_reason'),
    title: param('title'),
    message_count: param('message_count'),
    tool_call_count: param('tool_call_count'),
    input_tokens: param('input_tokens'),
    output_tokens: param('output_tokens'),
    cache_read_tokens: param('cache_read_tokens'),
    cache_write_tokens: param('cache_write_tokens'),
    reasoning_tokens: param('reasoning_tokens'),
    billing_provider: param('billing_provider'),
    billing_base_url: param('billing_base_url'),
    billing_mode: param('billing_mode'),
    estimated_cost_usd: param('estimated_cost_usd'),
    actual_cost_usd: param('actual_cost_usd'),
    cost_status: param('cost_status'),
    cost_source: param('cost_source'),
    pricing_version: param('pricing_version'),
  } satisfies { [Column in keyof SessionRow]: unknown }),
)

/** Whether a session is an ancestor of another one, or that one itself. */
export function descends(connection: Connection, id: string, ancestor: string): boolean {
  return connection.get(descendsFrom, { id, ancestor }) !== undefined
}

/** Inserts a session as it was in another file. Its id is free, its title too, and its parent is there. */
export function insertSession(connection: Connection, row: SessionRow): void {
  connection.run(insertWhole, row)
}

/**
 * Inserts a session, or fills what an existing row of that id lacks.
 *
 * @throws ParentNotFoundError, LineageCycleError
 */
export function createSession(connection: Connection, values: SessionValues): void {
  const { id, parent_session_id } = values
  if (parent_session_id !== null) {
    const existing = connection.get(parentOf, { id })
    // A parent that is there already stays: the given one is not used.
    if (!existing?.parent_session_id) {
      if (parent_session_id === id) throw new LineageCycleError(id, parent_session_id)
      if (!connection.get(parentOf, { id: parent_session_id }))
        throw new ParentNotFoundError(id, parent_session_id)
      if (existing && descends(connection, parent_session_id, id))
        throw new LineageCycleError(id, parent_session_id)
    }
  }
  const prompted = values.system_prompt === null || connection.get(promptOf, { id })?.system_prompt
  connection.run(prompted ? fill : fillWithPrompt, values)
}
