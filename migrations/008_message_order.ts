import type { Kysely } from 'kysely'

// An addition of this package: schema_version stays.

export async function up(db: Kysely<unknown>): Promise<void> {
  // Conversations are read in id order; Hermes's own index is in clock order. The name is the one later
  // Hermes versions give the same index, so that a file never carries it twice.
  await db.schema
    .createIndex('idx_messages_session_id')
    .ifNotExists()
    .on('messages')
    .columns(['session_id', 'id'])
    .execute()
}

export async function down(db: Kysely<unknown>): Promise<void> {
  await db.schema.dropIndex('idx_messages_session_id').execute()
}
