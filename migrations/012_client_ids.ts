import { type Kysely, sql } from 'kysely'

// An addition of this package: schema_version stays.

export async function up(db: Kysely<unknown>): Promise<void> {
  // The name that its sender gave a message, by which an append that is sent again is known. By message, so that
  // whoever deletes messages pays for one look-up of a key; only messages with such a name have a row.
  await db.schema
    .createTable('hs_client_ids')
    .addColumn('message_id', 'integer', (column) => column.primaryKey())
    .addColumn('session_id', 'text', (column) => column.notNull())
    .addColumn('client_id', 'text', (column) => column.notNull())
    .execute()
  await db.schema
    .createIndex('hs_client_ids_order')
    .unique()
    .on('hs_client_ids')
    .columns(['session_id', 'client_id'])
    .execute()

  // Triggers rather than a foreign key: other writers of the file may have foreign keys switched off. None of
  // their statements may fail here, and `or ignore` is not heeded in a trigger: a message that comes to a session
  // with its name taken loses it first, and so does whatever was left behind under its new id.
  await sql`
    create trigger hs_client_ids_delete after delete on messages begin
      delete from hs_client_ids where message_id = old.id;
    end`.execute(db)
  await sql`
    create trigger hs_client_ids_update after update of id, session_id on messages
    when old.id is not new.id or old.session_id is not new.session_id begin
      delete from hs_client_ids where message_id = new.id and message_id <> old.id;
      delete from hs_client_ids where message_id = old.id and exists (
        select 1 from hs_client_ids as taken
        where taken.session_id = new.session_id and taken.client_id = hs_client_ids.client_id
          and taken.message_id <> old.id);
      update hs_client_ids set message_id = new.id, session_id = new.session_id where message_id = old.id;
    end`.execute(db)
}

export async function down(db: Kysely<unknown>): Promise<void> {
  for (const event of ['update', 'delete'])
    await sql`drop trigger ${sql.ref(`hs_client_ids_${event}`)}`.execute(db)
  await db.schema.dropTable('hs_client_ids').execute()
}
