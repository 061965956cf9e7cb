import { type Kysely, sql } from 'kysely'

const tokenColumns = ['cache_read_tokens', 'cache_write_tokens', 'reasoning_tokens'] as const

// Who is billed and how; fixed by the first API call of a session.
const billingColumns = ['billing_provider', 'billing_base_url', 'billing_mode'] as const

// US dollars: what our price table says, and what the provider reported.
const costColumns = ['estimated_cost_usd', 'actual_cost_usd'] as const

// How far the cost can be trusted, where it came from, and by which price table.
const costOriginColumns = ['cost_status', 'cost_source', 'pricing_version'] as const

export async function up(db: Kysely<unknown>): Promise<void> {
  for (const name of tokenColumns)
    await db.schema
      .alterTable('sessions')
      .addColumn(name, 'integer', (column) => column.defaultTo(0))
      .execute()
  for (const name of billingColumns) await db.schema.alterTable('sessions').addColumn(name, 'text').execute()
  for (const name of costColumns) await db.schema.alterTable('sessions').addColumn(name, 'real').execute()
  for (const name of costOriginColumns)
    await db.schema.alterTable('sessions').addColumn(name, 'text').execute()
  await sql`update schema_version set version = 5`.execute(db)
}

export async function down(db: Kysely<unknown>): Promise<void> {
  for (const name of [...tokenColumns, ...billingColumns, ...costColumns, ...costOriginColumns])
    await db.schema.alterTable('sessions').dropColumn(name).execute()
  await sql`update schema_version set version = 4`.execute(db)
}
