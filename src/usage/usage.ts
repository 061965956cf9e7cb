import { type RawBuilder, sql } from 'kysely'
import { checkCount, checkId, checkObject, checkText } from '../arguments.ts'
import { build, fixedQuery, type Param } from '../database/fixed-query.ts'
import type { RepositoryContext } from '../database/repository.ts'
import type { SessionFields } from '../sessions/session-types.ts'
import {
  type DayUsage,
  type ModelUsage,
  readByDay,
  readByModel,
  readBySource,
  readTop,
  readTotals,
  type SourceUsage,
  type UsageTotals,
} from './reports.ts'

const TOKEN_COLUMNS = [
  'input_tokens',
  'output_tokens',
  'cache_read_tokens',
  'cache_write_tokens',
  'reasoning_tokens',
] as const
const COST_COLUMNS = ['estimated_cost_usd', 'actual_cost_usd'] as const
const LATEST_COLUMNS = ['cost_status', 'cost_source', 'pricing_version'] as const
const FIRST_COLUMNS = ['billing_provider', 'billing_base_url', 'billing_mode', 'model'] as const

type NumberColumn = (typeof TOKEN_COLUMNS)[number] | (typeof COST_COLUMNS)[number]
type TextColumn = (typeof LATEST_COLUMNS)[number] | (typeof FIRST_COLUMNS)[number]

/** Tokens and cost. A field that is left out leaves its column alone. */
export interface Usage extends Partial<Record<NumberColumn, number>>, Partial<Record<TextColumn, string>> {
  /** Whole numbers of tokens. */
  input_tokens?: number
  output_tokens?: number
  cache_read_tokens?: number
  cache_write_tokens?: number
  reasoning_tokens?: number
  /** US dollars by a price table. */
  estimated_cost_usd?: number
  /** US dollars as the provider reported them. */
  actual_cost_usd?: number
  /** How far the cost can be trusted, its source, the price table: the latest given value counts. */
  cost_status?: string
  cost_source?: string
  pricing_version?: string
  /** Who is billed and how, and the model: the first given value stays; `sessions.setModel` changes the model. */
  billing_provider?: string
  billing_base_url?: string
  billing_mode?: string
  model?: string
}

export interface SetUsageOptions {
  /** Never lower a number: totals that start over after a restart of the counting process are ignored. Default false. */
  monotonic?: boolean
}

/** Every column by name; null leaves the column alone. */
type UsageValues = Record<NumberColumn, number | null> & Record<TextColumn, string | null>
type UsageArgs = UsageValues & { id: string }

const add = updateUsage((column, value) => sql`coalesce(${column}, 0) + ${value}`)
const set = updateUsage((_, value) => sql`${value}`)
const raise = updateUsage((column, value) => sql`max(coalesce(${column}, 0), ${value})`)

function updateUsage(
  combine: (column: RawBuilder<unknown>, value: RawBuilder<number | null>) => RawBuilder<number>,
) {
  return fixedQuery((param: Param<UsageArgs>) => {
    const number = (name: NumberColumn) => {
      const column = sql.ref(name)
      return sql<number>`case when ${param(name)} is null then ${column} else ${combine(column, param(name))} end`
    }
    const latest = (name: TextColumn) => sql<string>`coalesce(${param(name)}, ${sql.ref(name)})`
    const first = (name: TextColumn) => sql<string>`coalesce(${sql.ref(name)}, ${param(name)})`
    return build
      .updateTable('sessions')
      .set({
        input_tokens: number('input_tokens'),
        output_tokens: number('output_tokens'),
        cache_read_tokens: number('cache_read_tokens'),
        cache_write_tokens: number('cache_write_tokens'),
        reasoning_tokens: number('reasoning_tokens'),
        estimated_cost_usd: number('estimated_cost_usd'),
        actual_cost_usd: number('actual_cost_usd'),
        cost_status: latest('cost_status'),
        cost_source: latest('cost_source'),
        pricing_version: latest('pricing_version'),
        billing_provider: first('billing_provider'),
        billing_base_url: first('billing_base_url'),
        billing_mode: first('billing_mode'),
        model: first('model'),
      })
      .where('id', '=', param('id'))
  })
}

/** Tokens and cost of sessions: `store.usage`, and `tx.usage` inside a transaction. */
export class UsageRepository {
  readonly #context: RepositoryContext

  /** @internal */
  constructor(context: RepositoryContext) {
    this.#context = context
  }

  /**
   * Adds what one API call used: numbers are deltas.
   *
   * @returns whether the session exists; nothing is recorded where it does not.
   * @throws TypeError for a number that is negative or, for tokens, not whole.
   */
  async add(sessionId: string, delta: Usage): Promise<boolean> {
    return this.#update(add, sessionId, delta)
  }

  /**
   * Sets the totals of a session: numbers are cumulative, as an agent that counts itself reports them.
   *
   * @returns whether the session exists.
   */
  async set(sessionId: string, totals: Usage, options: SetUsageOptions = {}): Promise<boolean> {
    return this.#update(options.monotonic ? raise : set, sessionId, totals)
  }

  /** Usage by model, the most expensive first (actual cost where known, else estimated). */
  async byModel(): Promise<ModelUsage[]> {
    return this.#context.executor.read(readByModel)
  }

  /** Usage by source, the most expensive first. */
  async bySource(): Promise<SourceUsage[]> {
    return this.#context.executor.read(readBySource)
  }

  /**
   * Usage by calendar day, latest first. A session counts wholly on the day it started.
   *
   * @param options.timeZone IANA name, for example `Europe/Berlin`. Default: the time zone of the process.
   */
  async byDay(options: { timeZone?: string } = {}): Promise<DayUsage[]> {
    const days = dayFormat(options.timeZone)
    return this.#context.executor.read((connection) => readByDay(connection, days))
  }

  /** The most expensive sessions, then those with the most tokens. */
  async topSessions(options: { limit?: number } = {}): Promise<SessionFields[]> {
    const limit = checkCount(options.limit ?? 10, 'limit')
    const { executor, events } = this.#context
    return executor.read((connection) => readTop(connection, limit, events))
  }

  /** Usage of the whole file. */
  async totals(): Promise<UsageTotals> {
    return this.#context.executor.read(readTotals)
  }

  async #update(query: typeof add, sessionId: string, usage: Usage): Promise<boolean> {
    const args = { id: checkId(sessionId, 'sessionId'), ...checkUsage(usage) }
    return this.#context.executor.write((connection) => connection.run(query, args).changes > 0)
  }
}

function checkUsage(usage: Usage): UsageValues {
  const fields = checkObject(usage, 'usage')
  const tokens = (name: NumberColumn) =>
    fields[name] === undefined ? null : checkCount(fields[name], `usage.${name}`)
  const cost = (name: NumberColumn) =>
    fields[name] === undefined ? null : checkCost(fields[name], `usage.${name}`)
  const text = (name: TextColumn) =>
    fields[name] === undefined ? null : checkText(fields[name], `usage.${name}`)
  return {
    input_tokens: tokens('input_tokens'),
    output_tokens: tokens('output_tokens'),
    cache_read_tokens: tokens('cache_read_tokens'),
    cache_write_tokens: tokens('cache_write_tokens'),
    reasoning_tokens: tokens('reasoning_tokens'),
    estimated_cost_usd: cost('estimated_cost_usd'),
    actual_cost_usd: cost('actual_cost_usd'),
    cost_status: text('cost_status'),
    cost_source: text('cost_source'),
    pricing_version: text('pricing_version'),
    billing_provider: text('billing_provider'),
    billing_base_url: text('billing_base_url'),
    billing_mode: text('billing_mode'),
    model: text('model'),
  }
}

function checkCost(value: unknown, name: string): number {
  if (typeof value !== 'number' || !Number.isFinite(value) || value < 0)
    throw new TypeError(`${name} must be an amount in US dollars of at least 0.`)
  return value
}

function dayFormat(timeZone: string | undefined): Intl.DateTimeFormat {
  try {
    // Sweden writes dates as 2026-12-01.
    return new Intl.DateTimeFormat('sv-SE', { timeZone, dateStyle: 'short' })
  } catch (error) {
    throw new TypeError(`timeZone must be an IANA name such as 'Europe/Berlin', not '${timeZone}'.`, {
      cause: error,
    })
  }
}
