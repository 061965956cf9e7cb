import { type Kysely, sql } from 'kysely'

export async function up(db: Kysely<unknown>): Promise<void> {
  // Why the model stopped: stop, length, tool_calls, … as the provider named it.
  await db.schema.alterTable('messages').addColumn('finish_reason', 'text').execute()
  await sql`update schema_version set version = 2`.execute(db)
}

export async function down(db: Kysely<unknown>): Promise<void> {
  await db.schema.alterTable('messages').dropColumn('finish_reason').execute()
  await sql`update schema_version set version = 1`.execute(db)
}
