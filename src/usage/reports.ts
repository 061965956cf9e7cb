import { type RawBuilder, sql } from 'kysely'
import type { Connection } from '../database/connection.ts'
import { build, fixedQuery, type Param } from '../database/fixed-query.ts'
import type { EventHandler } from '../events.ts'
import { FIELD_COLUMNS, toFields } from '../sessions/session-row.ts'
import type { SessionFields } from '../sessions/session-types.ts'
import { dollars } from './dollars.ts'

/** Sums over sessions. */
export interface UsageTotals {
  /** How many sessions. */
  sessions: number
  input_tokens: number
  output_tokens: number
  cache_read_tokens: number
  cache_write_tokens: number
  reasoning_tokens: number
  /** US dollars. */
  estimated_cost_usd: number
  actual_cost_usd: number
}

export interface ModelUsage extends UsageTotals {
  model: string | null
}

export interface SourceUsage extends UsageTotals {
  source: string
}

export interface DayUsage extends UsageTotals {
  /** As `2026-12-01`; null for sessions whose start no calendar reaches (microseconds taken for seconds, say). */
  day: string | null
}

// Every offset from UTC since 1972 is a multiple of a quarter of an hour: days of any time zone are made of these.
const QUARTER = 900

/** The furthest a JavaScript date reaches from 1970, in milliseconds. */
const LAST_DATE = 8.64e15

const sum = (column: keyof UsageTotals): RawBuilder<number> => sql`coalesce(sum(${sql.ref(column)}), 0)`

const SUMS = [
  sum('input_tokens').as('input_tokens'),
  sum('output_tokens').as('output_tokens'),
  sum('cache_read_tokens').as('cache_read_tokens'),
  sum('cache_write_tokens').as('cache_write_tokens'),
  sum('reasoning_tokens').as('reasoning_tokens'),
  sum('estimated_cost_usd').as('estimated_cost_usd'),
  sum('actual_cost_usd').as('actual_cost_usd'),
] as const

const SESSIONS = sql<number>`count(*)`.as('sessions')

const cost = sql<number>`coalesce(actual_cost_usd, estimated_cost_usd, 0)`
const tokens = sql<number>`coalesce(input_tokens, 0) + coalesce(output_tokens, 0)`

const totals = fixedQuery((_: Param<object>) =>
  build.selectFrom('all_sessions').select(SESSIONS).select(SUMS),
)

const byModel = fixedQuery((_: Param<object>) =>
  build
    .selectFrom('model_usage')
    .select('model')
    // A session that used several models has a row for each, and some for tasks beside the conversation.
    .select(sql<number>`count(distinct session_id)`.as('sessions'))
    .select(SUMS)
    .groupBy('model')
    .orderBy(sql`sum(${cost})`, 'desc')
    .orderBy(sql`sum(${tokens})`, 'desc')
    .orderBy('model'),
)

const bySource = fixedQuery((_: Param<object>) =>
  build
    .selectFrom('all_sessions')
    .select('source')
    .select(SESSIONS)
    .select(SUMS)
    .groupBy('source')
    .orderBy(sql`sum(${cost})`, 'desc')
    .orderBy(sql`sum(${tokens})`, 'desc')
    .orderBy('source'),
)

const byQuarter = fixedQuery((_: Param<object>) =>
  build
    .selectFrom('all_sessions')
    .select(sql<number>`cast(floor(started_at / ${sql.lit(QUARTER)}) as integer)`.as('quarter'))
    .select(SESSIONS)
    .select(SUMS)
    .groupBy('quarter')
    .orderBy('quarter', 'desc'),
)

const top = fixedQuery((param: Param<{ limit: number }>) =>
  build
    .selectFrom('all_sessions as sessions')
    .select(FIELD_COLUMNS)
    .orderBy(cost, 'desc')
    .orderBy(tokens, 'desc')
    .orderBy('id')
    .limit(param('limit')),
)

export function readTotals(connection: Connection): UsageTotals {
  return rounded(connection.all(totals, {})[0]!)
}

export function readByModel(connection: Connection): ModelUsage[] {
  return connection.all(byModel, {}).map(rounded)
}

export function readBySource(connection: Connection): SourceUsage[] {
  return connection.all(bySource, {}).map(rounded)
}

export function readByDay(connection: Connection, format: Intl.DateTimeFormat): DayUsage[] {
  const days = new Map<string | null, DayUsage>()
  for (const { quarter, ...usage } of connection.all(byQuarter, {})) {
    const started = quarter * QUARTER * 1000
    const day = Math.abs(started) <= LAST_DATE ? format.format(started) : null
    const known = days.get(day)
    if (known) for (const name of SUMMED) known[name] += usage[name]
    else days.set(day, { day, ...usage })
  }
  return Array.from(days.values(), rounded)
}

export function readTop(connection: Connection, limit: number, events: EventHandler): SessionFields[] {
  return connection.all(top, { limit }).map((row) => toFields(connection, row, events))
}

const SUMMED = [
  'sessions',
  'input_tokens',
  'output_tokens',
  'cache_read_tokens',
  'cache_write_tokens',
  'reasoning_tokens',
  'estimated_cost_usd',
  'actual_cost_usd',
] as const satisfies (keyof UsageTotals)[]

function rounded<Row extends UsageTotals>(row: Row): Row {
  return {
    ...row,
    estimated_cost_usd: dollars(row.estimated_cost_usd),
    actual_cost_usd: dollars(row.actual_cost_usd),
  }
}
