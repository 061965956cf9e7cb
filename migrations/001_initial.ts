import { type Kysely, sql } from 'kysely'

// Hermes schema 1. Table, column, index and trigger names are the file's contract: Hermes processes and
// every other reader find them by name.

export async function up(db: Kysely<unknown>): Promise<void> {
  // One integer; each Hermes migration raises it, our own additions never do.
  await db.schema
    .createTable('schema_version')
    .addColumn('version', 'integer', (column) => column.notNull())
    .execute()

  await db.schema
    .createTable('sessions')
    .addColumn('id', 'text', (column) => column.primaryKey())
    // Where the conversation takes place: cli, telegram, discord, cron, …
    .addColumn('source', 'text', (column) => column.notNull())
    .addColumn('user_id', 'text')
    .addColumn('model', 'text')
    // A JSON object.
    .addColumn('model_config', 'text')
    .addColumn('system_prompt', 'text')
    // The session this one continues, branches from or was delegated by.
    .addColumn('parent_session_id', 'text', (column) => column.references('sessions.id'))
    // Seconds since 1970, like every time in the file.
    .addColumn('started_at', 'real', (column) => column.notNull())
    .addColumn('ended_at', 'real')
    .addColumn('end_reason', 'text')
    // Kept by the writer, not by triggers: they can drift and can be counted again.
    .addColumn('message_count', 'integer', (column) => column.defaultTo(0))
    .addColumn('tool_call_count', 'integer', (column) => column.defaultTo(0))
    .addColumn('input_tokens', 'integer', (column) => column.defaultTo(0))
    .addColumn('output_tokens', 'integer', (column) => column.defaultTo(0))
    .execute()

  await db.schema
    .createTable('messages')
    // Never reused, and the order of a conversation.
    .addColumn('id', 'integer', (column) => column.primaryKey().autoIncrement())
    .addColumn('session_id', 'text', (column) => column.notNull().references('sessions.id'))
    .addColumn('role', 'text', (column) => column.notNull())
    .addColumn('content', 'text')
    // On a tool result: the call it answers.
    .addColumn('tool_call_id', 'text')
    // On an assistant message: a JSON array of calls. NULL rather than [], which providers refuse on replay.
    .addColumn('tool_calls', 'text')
    .addColumn('tool_name', 'text')
    // Data, not order: clocks step back.
    .addColumn('timestamp', 'real', (column) => column.notNull())
    .addColumn('token_count', 'integer')
    .execute()

  await db.schema.createIndex('idx_sessions_source').on('sessions').column('source').execute()
  await db.schema.createIndex('idx_sessions_parent').on('sessions').column('parent_session_id').execute()
  await db.schema.createIndex('idx_sessions_started').on('sessions').column('started_at desc').execute()
  await db.schema
    .createIndex('idx_messages_session')
    .on('messages')
    .columns(['session_id', 'timestamp'])
    .execute()

  // The word index keeps no text of its own: it reads content from messages by rowid.
  await sql`create virtual table messages_fts using fts5(content, content=messages, content_rowid=id)`.execute(
    db,
  )
  await sql`
    create trigger messages_fts_insert after insert on messages begin
      insert into messages_fts(rowid, content) values (new.id, new.content);
    end`.execute(db)
  await sql`
    create trigger messages_fts_delete after delete on messages begin
      insert into messages_fts(messages_fts, rowid, content) values('delete', old.id, old.content);
    end`.execute(db)
  await sql`
    create trigger messages_fts_update after update on messages begin
      insert into messages_fts(messages_fts, rowid, content) values('delete', old.id, old.content);
      insert into messages_fts(rowid, content) values (new.id, new.content);
    end`.execute(db)

  await sql`insert into schema_version (version) values (1)`.execute(db)
}

export async function down(db: Kysely<unknown>): Promise<void> {
  await db.schema.dropTable('messages_fts').execute()
  await db.schema.dropTable('messages').execute()
  await db.schema.dropTable('sessions').execute()
  await db.schema.dropTable('schema_version').execute()
}
