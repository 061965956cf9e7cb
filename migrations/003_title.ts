import { type Kysely, sql } from 'kysely'

export async function up(db: Kysely<unknown>): Promise<void> {
  // A name people give a session to find it again.
  await db.schema.alterTable('sessions').addColumn('title', 'text').execute()
  await sql`update schema_version set version = 3`.execute(db)
}

export async function down(db: Kysely<unknown>): Promise<void> {
  await db.schema.alterTable('sessions').dropColumn('title').execute()
  await sql`update schema_version set version = 2`.execute(db)
}
