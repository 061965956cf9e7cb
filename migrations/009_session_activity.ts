import { type Kysely, type RawBuilder, sql } from 'kysely'

// An addition of this package: schema_version stays.

/**
 * The time a session was last active: its latest message, else its start. A message stamped in the future
 * counts as written now, with a minute for clocks that differ, or it would stay on top for ever.
 */
function lastActive(sessionId: string, startedAt: string): RawBuilder<unknown> {
  return sql`min(
    coalesce((select max(timestamp) from messages where session_id = ${sql.ref(sessionId)}), ${sql.ref(startedAt)}),
    (julianday('now') - 2440587.5) * 86400.0 + 60.0)`
}

/** Brings a session's row in line with its messages. */
function refresh(sessionId: string): RawBuilder<unknown> {
  return sql`
    update hs_session_activity set last_active = (
      select ${lastActive('sessions.id', 'sessions.started_at')} from sessions where sessions.id = ${sql.ref(sessionId)})
    where session_id = ${sql.ref(sessionId)}`
}

export async function up(db: Kysely<unknown>): Promise<void> {
  // What lists of sessions are filtered and ordered by, in one narrow row per session. Other writers keep it
  // up without knowing it: through triggers that use nothing newer than SQLite 3.34.
  await sql`
    create table hs_session_activity (
      session_id text primary key not null,
      source text not null,
      is_root integer not null,
      last_active real not null
    ) without rowid`.execute(db)
  await sql`
    insert into hs_session_activity (session_id, source, is_root, last_active)
    select id, source, parent_session_id is null, ${lastActive('sessions.id', 'sessions.started_at')}
    from sessions where id is not null`.execute(db)

  // A page of a list is a range of one of these, whatever the filter: see sessions/list.ts.
  await db.schema
    .createIndex('hs_session_activity_order')
    .on('hs_session_activity')
    .columns(['source', 'is_root', 'last_active', 'session_id'])
    .execute()
  await sql`
    create index hs_sessions_started_order on sessions (source, (parent_session_id is null), started_at, id)
  `.execute(db)

  await sql`
    create trigger hs_session_activity_session_insert after insert on sessions when new.id is not null begin
      delete from hs_session_activity where session_id = new.id;
      insert into hs_session_activity (session_id, source, is_root, last_active)
      values (new.id, new.source, new.parent_session_id is null, ${lastActive('new.id', 'new.started_at')});
    end`.execute(db)
  await sql`
    create trigger hs_session_activity_session_update after update of id, source, parent_session_id, started_at on sessions
    when new.id is not null and (old.id is not new.id or old.source is not new.source
      or old.parent_session_id is not new.parent_session_id or old.started_at is not new.started_at)
    begin
      delete from hs_session_activity where session_id in (old.id, new.id);
      insert into hs_session_activity (session_id, source, is_root, last_active)
      values (new.id, new.source, new.parent_session_id is null, ${lastActive('new.id', 'new.started_at')});
    end`.execute(db)
  await sql`
    create trigger hs_session_activity_session_delete after delete on sessions begin
      delete from hs_session_activity where session_id = old.id;
    end`.execute(db)
  await sql`
    create trigger hs_session_activity_message_insert after insert on messages begin
      ${refresh('new.session_id')};
    end`.execute(db)
  await sql`
    create trigger hs_session_activity_message_update after update of session_id, timestamp on messages
    when old.session_id is not new.session_id or old.timestamp is not new.timestamp begin
      ${refresh('old.session_id')};
      ${refresh('new.session_id')};
    end`.execute(db)
  await sql`
    create trigger hs_session_activity_message_delete after delete on messages begin
      ${refresh('old.session_id')};
    end`.execute(db)
}

export async function down(db: Kysely<unknown>): Promise<void> {
  for (const event of ['insert', 'update', 'delete']) {
    await sql`drop trigger ${sql.ref(`hs_session_activity_message_${event}`)}`.execute(db)
    await sql`drop trigger ${sql.ref(`hs_session_activity_session_${event}`)}`.execute(db)
  }
  await db.schema.dropIndex('hs_sessions_started_order').execute()
  await db.schema.dropTable('hs_session_activity').execute()
}
