import { type Kysely, sql } from 'kysely'

// An addition of this package: schema_version stays.

export async function up(db: Kysely<unknown>): Promise<void> {
  // Pairs of characters of the scripts that put no spaces between words, which the word index keeps as one word.
  // Only this package reads and writes it: a contentless table that rows can be deleted from needs SQLite 3.43.
  // The tokenizer is the one that leaves everything beside ASCII alone; unicode61 drops Thai vowels.
  await sql`
    create virtual table hs_bigrams using fts5(text, content='', contentless_delete=1, tokenize='ascii')`.execute(
    db,
  )

  // Everything up to the watermark is indexed, but for what is pending. Others write messages without knowing it.
  await db.schema
    .createTable('hs_bigrams_state')
    .addColumn('id', 'integer', (column) => column.primaryKey().check(sql`id = 1`))
    .addColumn('watermark', 'integer', (column) => column.notNull())
    .execute()
  await sql`insert into hs_bigrams_state (id, watermark) values (1, 0)`.execute(db)
  await db.schema
    .createTable('hs_bigrams_pending')
    .addColumn('message_id', 'integer', (column) => column.primaryKey())
    .execute()

  const known = (row: 'old' | 'new') =>
    sql`select ${sql.ref(`${row}.id`)} where ${sql.ref(`${row}.id`)} <= (select watermark from hs_bigrams_state)`
  await sql`
    create trigger hs_bigrams_insert after insert on messages
    when new.id <= (select watermark from hs_bigrams_state) begin
      insert or ignore into hs_bigrams_pending (message_id) values (new.id);
    end`.execute(db)
  await sql`
    create trigger hs_bigrams_delete after delete on messages
    when old.id <= (select watermark from hs_bigrams_state) begin
      insert or ignore into hs_bigrams_pending (message_id) values (old.id);
    end`.execute(db)
  await sql`
    create trigger hs_bigrams_update after update of id, role, content, tool_name, tool_calls on messages
    when old.id is not new.id or old.role is not new.role or old.content is not new.content
      or old.tool_name is not new.tool_name or old.tool_calls is not new.tool_calls
    begin
      insert or ignore into hs_bigrams_pending (message_id) ${known('old')};
      insert or ignore into hs_bigrams_pending (message_id) ${known('new')};
    end`.execute(db)
}

export async function down(db: Kysely<unknown>): Promise<void> {
  for (const event of ['insert', 'delete', 'update'])
    await sql`drop trigger ${sql.ref(`hs_bigrams_${event}`)}`.execute(db)
  for (const table of ['hs_bigrams', 'hs_bigrams_state', 'hs_bigrams_pending'])
    await db.schema.dropTable(table).execute()
}
