import { type Kysely, type RawBuilder, sql } from 'kysely'

// An addition of this package: schema_version stays, and so do the names of the index and of its triggers.

/** Up to so many messages the index is filled here; see finishRebuild in src/search/rebuild.ts for more. */
const AT_ONCE = 20_000

/** Characters of a tool's result that are indexed. */
const TOOL_RESULT = 8_192

/**
 * What is indexed of messages. Every place that adds a text to the index, or takes it away, has to use the very
 * same: FTS5 keeps no copy. Nothing newer than SQLite 3.34, for other programs run it too.
 */
function projection(messages: RawBuilder<unknown>): RawBuilder<unknown> {
  // Hermes's form of structured content begins with a NUL, at which SQLite's functions on text stop.
  const visible = sql`
    select id, role, tool_name, tool_calls, case when instr(content, char(0)) = 1
      then ${unescaped(sql`cast(substr(cast(content as blob), 2) as text)`, '\\\\')}
      else content end as visible
    from (${messages})`
  // An image or a sound is no text: what follows `;base64,` is left out.
  const media = sql`instr(visible, char(59) || 'base64' || char(44))`
  const text = sql`
    select id, role, tool_name, tool_calls, case when ${media}
      then substr(visible, 1, ${media} + 7) else visible end as text
    from (${visible})`
  // Arguments are JSON inside the JSON: their backslashes are four.
  const calls = unescaped(sql`tool_calls`, '\\\\\\\\')
  return sql`
    select id, case when role = 'tool' and length(cast(text as blob)) > ${sql.lit(TOOL_RESULT)}
      then substr(text, 1, ${sql.lit(TOOL_RESULT)}) else text end as content, tool_name,
      replace(${calls}, char(34), ' ') as tool_calls
    from (${text})`
}

/** JSON without the escapes whose letter would be glued to the next word: of white space, not the `\\new` of a path. */
function unescaped(json: RawBuilder<unknown>, backslash: string): RawBuilder<unknown> {
  return [backslash, '\\n', '\\t', '\\r'].reduce(
    (text, part) => sql`replace(${text}, ${sql.lit(part)}, ' ')`,
    json,
  )
}

/** The row of a trigger. */
function row(name: 'old' | 'new'): RawBuilder<unknown> {
  const columns = ['id', 'role', 'content', 'tool_name', 'tool_calls']
  return sql.raw(`select ${columns.map((column) => `${name}.${column} as ${column}`).join(', ')}`)
}

const ADD = sql`
  insert into messages_fts(rowid, content, tool_name, tool_calls) ${projection(row('new'))}`

const TAKE_AWAY = sql`
  insert into messages_fts(messages_fts, rowid, content, tool_name, tool_calls)
  select 'delete', id, content, tool_name, tool_calls from (${projection(row('old'))})`

export async function up(db: Kysely<unknown>): Promise<void> {
  await dropIndex(db)
  await sql`create view hs_message_text as ${projection(sql`select * from messages`)}`.execute(db)
  // Accents are the same to it, also two on one letter.
  await sql`
    create virtual table messages_fts using fts5(content, tool_name, tool_calls,
      content=hs_message_text, content_rowid=id, tokenize='unicode61 remove_diacritics 2')`.execute(db)
  await sql`create trigger messages_fts_insert after insert on messages begin ${ADD}; end`.execute(db)
  await sql`create trigger messages_fts_delete after delete on messages begin ${TAKE_AWAY}; end`.execute(db)
  await sql`
    create trigger messages_fts_update after update of id, role, content, tool_name, tool_calls on messages
    when old.id is not new.id or old.role is not new.role or old.content is not new.content
      or old.tool_name is not new.tool_name or old.tool_calls is not new.tool_calls
    begin ${TAKE_AWAY}; ${ADD}; end`.execute(db)
  const { rows } = await sql`select id from messages limit 1 offset ${sql.lit(AT_ONCE)}`.execute(db)
  if (rows.length === 0) await sql`insert into messages_fts(messages_fts) values ('rebuild')`.execute(db)
}

export async function down(db: Kysely<unknown>): Promise<void> {
  await dropIndex(db)
  await sql`drop view hs_message_text`.execute(db)
  // As migration 001 has it.
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
  await sql`insert into messages_fts(messages_fts) values ('rebuild')`.execute(db)
}

async function dropIndex(db: Kysely<unknown>): Promise<void> {
  for (const event of ['insert', 'delete', 'update'])
    await sql`drop trigger if exists ${sql.ref(`messages_fts_${event}`)}`.execute(db)
  await sql`drop table if exists messages_fts`.execute(db)
}
