import { type Kysely, sql } from 'kysely'

export async function up(db: Kysely<unknown>): Promise<void> {
  // The thinking of an assistant message as plain text.
  await db.schema.alterTable('messages').addColumn('reasoning', 'text').execute()
  // JSON, exactly as the provider sent it: it wants the blocks back unchanged on the next turn.
  await db.schema.alterTable('messages').addColumn('reasoning_details', 'text').execute()
  await db.schema.alterTable('messages').addColumn('codex_reasoning_items', 'text').execute()
  await sql`update schema_version set version = 6`.execute(db)
}

export async function down(db: Kysely<unknown>): Promise<void> {
  for (const name of ['reasoning', 'reasoning_details', 'codex_reasoning_items'])
    await db.schema.alterTable('messages').dropColumn(name).execute()
  await sql`update schema_version set version = 5`.execute(db)
}
