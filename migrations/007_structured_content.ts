import { type Kysely, sql } from 'kysely'

// An addition of this package: schema_version stays.

export async function up(db: Kysely<unknown>): Promise<void> {
  // The JSON of content that is not plain text (an array of parts, an object). messages.content holds its
  // visible text, so that every other reader, preview and search sees words.
  await db.schema
    .createTable('hs_structured_content')
    .addColumn('message_id', 'integer', (column) => column.primaryKey())
    .addColumn('content', 'text', (column) => column.notNull())
    .execute()

  // Triggers rather than a foreign key: other writers of the file may have foreign keys switched off, and
  // whoever rewrites the text makes the JSON wrong.
  await sql`
    create trigger hs_structured_content_delete after delete on messages begin
      delete from hs_structured_content where message_id = old.id;
    end`.execute(db)
  await sql`
    create trigger hs_structured_content_update after update of id, content on messages
    when old.id is not new.id or old.content is not new.content begin
      delete from hs_structured_content where message_id = old.id;
    end`.execute(db)
}

export async function down(db: Kysely<unknown>): Promise<void> {
  // Keep what only this table holds, in the form Hermes itself reads: NUL, 'json:', the JSON.
  await sql`drop trigger hs_structured_content_update`.execute(db)
  await sql`
    update messages set content = char(0) || 'json:' || structured.content
    from hs_structured_content as structured where structured.message_id = messages.id`.execute(db)
  await sql`drop trigger hs_structured_content_delete`.execute(db)
  await db.schema.dropTable('hs_structured_content').execute()
}
