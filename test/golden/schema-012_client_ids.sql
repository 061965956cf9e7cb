-- The schema after 012_client_ids, as npm run schema reads it off a new database; columns by name.

create table hs_bigrams_pending (
  message_id INTEGER PRIMARY KEY
);

create table hs_bigrams_state (
  id INTEGER PRIMARY KEY,
  watermark INTEGER NOT NULL
);

create table hs_client_ids (
  client_id TEXT NOT NULL,
  message_id INTEGER PRIMARY KEY,
  session_id TEXT NOT NULL
);

create table hs_session_activity (
  is_root INTEGER NOT NULL,
  last_active REAL NOT NULL,
  session_id TEXT NOT NULL PRIMARY KEY,
  source TEXT NOT NULL
) without rowid;

create table hs_structured_content (
  content TEXT NOT NULL,
  message_id INTEGER PRIMARY KEY
);

create table messages (
  codex_reasoning_items TEXT,
  content TEXT,
  finish_reason TEXT,
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  reasoning TEXT,
  reasoning_details TEXT,
  role TEXT NOT NULL,
  session_id TEXT NOT NULL REFERENCES sessions(id),
  timestamp REAL NOT NULL,
  token_count INTEGER,
  tool_call_id TEXT,
  tool_calls TEXT,
  tool_name TEXT
);

create table schema_version (
  version INTEGER NOT NULL
);

create table sessions (
  actual_cost_usd REAL,
  billing_base_url TEXT,
  billing_mode TEXT,
  billing_provider TEXT,
  cache_read_tokens INTEGER DEFAULT 0,
  cache_write_tokens INTEGER DEFAULT 0,
  cost_source TEXT,
  cost_status TEXT,
  end_reason TEXT,
  ended_at REAL,
  estimated_cost_usd REAL,
  id TEXT PRIMARY KEY,
  input_tokens INTEGER DEFAULT 0,
  message_count INTEGER DEFAULT 0,
  model TEXT,
  model_config TEXT,
  output_tokens INTEGER DEFAULT 0,
  parent_session_id TEXT REFERENCES sessions(id),
  pricing_version TEXT,
  reasoning_tokens INTEGER DEFAULT 0,
  source TEXT NOT NULL,
  started_at REAL NOT NULL,
  system_prompt TEXT,
  title TEXT,
  tool_call_count INTEGER DEFAULT 0,
  user_id TEXT
);

create unique index hs_client_ids_order on hs_client_ids(session_id, client_id);

create index hs_session_activity_order on hs_session_activity(source, is_root, last_active, session_id);

create index hs_sessions_started_order on sessions(source, (parent_session_id is null), started_at, id);

create index idx_messages_session on messages(session_id, timestamp);

create index idx_messages_session_id on messages(session_id, id);

create index idx_sessions_parent on sessions(parent_session_id);

create index idx_sessions_source on sessions(source);

create index idx_sessions_started on sessions(started_at desc);

create unique index idx_sessions_title_unique on sessions(title) where title is not null;

create virtual table hs_bigrams using fts5(text, content = '', contentless_delete = 1, tokenize = 'ascii');

create virtual table messages_fts using fts5(content, tool_name, tool_calls, content = hs_message_text, content_rowid = id, tokenize = 'unicode61 remove_diacritics 2');

create trigger hs_bigrams_delete after delete on messages when old.id <=(select watermark from hs_bigrams_state) begin
  insert or ignore into hs_bigrams_pending(message_id) values (old.id);
end;

create trigger hs_bigrams_insert after insert on messages when new.id <=(select watermark from hs_bigrams_state) begin
  insert or ignore into hs_bigrams_pending(message_id) values (new.id);
end;

create trigger hs_bigrams_update after update of id, role, content, tool_name, tool_calls on messages when old.id is not new.id or old.role is not new.role or old.content is not new.content or old.tool_name is not new.tool_name or old.tool_calls is not new.tool_calls begin
  insert or ignore into hs_bigrams_pending(message_id) select old.id where old.id <=(select watermark from hs_bigrams_state);
  insert or ignore into hs_bigrams_pending(message_id) select new.id where new.id <=(select watermark from hs_bigrams_state);
end;

create trigger hs_client_ids_delete after delete on messages begin
  delete from hs_client_ids where message_id = old.id;
end;

create trigger hs_client_ids_update after update of id, session_id on messages when old.id is not new.id or old.session_id is not new.session_id begin
  delete from hs_client_ids where message_id = new.id and message_id <> old.id;
  delete from hs_client_ids where message_id = old.id and exists(select 1 from hs_client_ids as taken where taken.session_id = new.session_id and taken.client_id = hs_client_ids.client_id and taken.message_id <> old.id);
  update hs_client_ids set message_id = new.id, session_id = new.session_id where message_id = old.id;
end;

create trigger hs_session_activity_message_delete after delete on messages begin
  update hs_session_activity set last_active = (select min(coalesce((select max(timestamp) from messages where session_id = sessions.id), sessions.started_at), (julianday('now') - 2440587.5) * 86400.0 + 60.0) from sessions where sessions.id = old.session_id) where session_id = old.session_id;
end;

create trigger hs_session_activity_message_insert after insert on messages begin
  update hs_session_activity set last_active = (select min(coalesce((select max(timestamp) from messages where session_id = sessions.id), sessions.started_at), (julianday('now') - 2440587.5) * 86400.0 + 60.0) from sessions where sessions.id = new.session_id) where session_id = new.session_id;
end;

create trigger hs_session_activity_message_update after update of session_id, timestamp on messages when old.session_id is not new.session_id or old.timestamp is not new.timestamp begin
  update hs_session_activity set last_active = (select min(coalesce((select max(timestamp) from messages where session_id = sessions.id), sessions.started_at), (julianday('now') - 2440587.5) * 86400.0 + 60.0) from sessions where sessions.id = old.session_id) where session_id = old.session_id;
  update hs_session_activity set last_active = (select min(coalesce((select max(timestamp) from messages where session_id = sessions.id), sessions.started_at), (julianday('now') - 2440587.5) * 86400.0 + 60.0) from sessions where sessions.id = new.session_id) where session_id = new.session_id;
end;

create trigger hs_session_activity_session_delete after delete on sessions begin
  delete from hs_session_activity where session_id = old.id;
end;

create trigger hs_session_activity_session_insert after insert on sessions when new.id is not null begin
  delete from hs_session_activity where session_id = new.id;
  insert into hs_session_activity(session_id, source, is_root, last_active) values (new.id, new.source, new.parent_session_id is null, min(coalesce((select max(timestamp) from messages where session_id = new.id), new.started_at), (julianday('now') - 2440587.5) * 86400.0 + 60.0));
end;

create trigger hs_session_activity_session_update after update of id, source, parent_session_id, started_at on sessions when new.id is not null and (old.id is not new.id or old.source is not new.source or old.parent_session_id is not new.parent_session_id or old.started_at is not new.started_at) begin
  delete from hs_session_activity where session_id in (old.id, new.id);
  insert into hs_session_activity(session_id, source, is_root, last_active) values (new.id, new.source, new.parent_session_id is null, min(coalesce((select max(timestamp) from messages where session_id = new.id), new.started_at), (julianday('now') - 2440587.5) * 86400.0 + 60.0));
end;

create trigger hs_structured_content_delete after delete on messages begin
  delete from hs_structured_content where message_id = old.id;
end;

create trigger hs_structured_content_update after update of id, content on messages when old.id is not new.id or old.content is not new.content begin
  delete from hs_structured_content where message_id = old.id;
end;

create trigger messages_fts_delete after delete on messages begin
  insert into messages_fts(messages_fts, rowid, content, tool_name, tool_calls) select 'delete', id, content, tool_name, tool_calls from(select id, case when role = 'tool' and length(cast(text as blob)) > 8192 then substr(text, 1, 8192) else text end as content, tool_name, replace(replace(replace(replace(replace(tool_calls, '\\\\', ' '), '\n', ' '), '\t', ' '), '\r', ' '), char(34), ' ') as tool_calls from(select id, role, tool_name, tool_calls, case when instr(visible, char(59) || 'base64' || char(44)) then substr(visible, 1, instr(visible, char(59) || 'base64' || char(44)) + 7) else visible end as text from(select id, role, tool_name, tool_calls, case when instr(content, char(0))  = 1 then replace(replace(replace(replace(cast(substr(cast(content as blob), 2) as text), '\\', ' '), '\n', ' '), '\t', ' '), '\r', ' ') else content end as visible from(select old.id as id, old.role as role, old.content as content, old.tool_name as tool_name, old.tool_calls as tool_calls))));
end;

create trigger messages_fts_insert after insert on messages begin
  insert into messages_fts(rowid, content, tool_name, tool_calls) select id, case when role = 'tool' and length(cast(text as blob)) > 8192 then substr(text, 1, 8192) else text end as content, tool_name, replace(replace(replace(replace(replace(tool_calls, '\\\\', ' '), '\n', ' '), '\t', ' '), '\r', ' '), char(34), ' ') as tool_calls from(select id, role, tool_name, tool_calls, case when instr(visible, char(59) || 'base64' || char(44)) then substr(visible, 1, instr(visible, char(59) || 'base64' || char(44)) + 7) else visible end as text from(select id, role, tool_name, tool_calls, case when instr(content, char(0))  = 1 then replace(replace(replace(replace(cast(substr(cast(content as blob), 2) as text), '\\', ' '), '\n', ' '), '\t', ' '), '\r', ' ') else content end as visible from(select new.id as id, new.role as role, new.content as content, new.tool_name as tool_name, new.tool_calls as tool_calls)));
end;

create trigger messages_fts_update after update of id, role, content, tool_name, tool_calls on messages when old.id is not new.id or old.role is not new.role or old.content is not new.content or old.tool_name is not new.tool_name or old.tool_calls is not new.tool_calls begin
  insert into messages_fts(messages_fts, rowid, content, tool_name, tool_calls) select 'delete', id, content, tool_name, tool_calls from(select id, case when role = 'tool' and length(cast(text as blob)) > 8192 then substr(text, 1, 8192) else text end as content, tool_name, replace(replace(replace(replace(replace(tool_calls, '\\\\', ' '), '\n', ' '), '\t', ' '), '\r', ' '), char(34), ' ') as tool_calls from(select id, role, tool_name, tool_calls, case when instr(visible, char(59) || 'base64' || char(44)) then substr(visible, 1, instr(visible, char(59) || 'base64' || char(44)) + 7) else visible end as text from(select id, role, tool_name, tool_calls, case when instr(content, char(0))  = 1 then replace(replace(replace(replace(cast(substr(cast(content as blob), 2) as text), '\\', ' '), '\n', ' '), '\t', ' '), '\r', ' ') else content end as visible from(select old.id as id, old.role as role, old.content as content, old.tool_name as tool_name, old.tool_calls as tool_calls))));
  insert into messages_fts(rowid, content, tool_name, tool_calls) select id, case when role = 'tool' and length(cast(text as blob)) > 8192 then substr(text, 1, 8192) else text end as content, tool_name, replace(replace(replace(replace(replace(tool_calls, '\\\\', ' '), '\n', ' '), '\t', ' '), '\r', ' '), char(34), ' ') as tool_calls from(select id, role, tool_name, tool_calls, case when instr(visible, char(59) || 'base64' || char(44)) then substr(visible, 1, instr(visible, char(59) || 'base64' || char(44)) + 7) else visible end as text from(select id, role, tool_name, tool_calls, case when instr(content, char(0))  = 1 then replace(replace(replace(replace(cast(substr(cast(content as blob), 2) as text), '\\', ' '), '\n', ' '), '\t', ' '), '\r', ' ') else content end as visible from(select new.id as id, new.role as role, new.content as content, new.tool_name as tool_name, new.tool_calls as tool_calls)));
end;

create view hs_message_text as select id, case when role = 'tool' and length(cast(text as blob)) > 8192 then substr(text, 1, 8192) else text end as content, tool_name, replace(replace(replace(replace(replace(tool_calls, '\\\\', ' '), '\n', ' '), '\t', ' '), '\r', ' '), char(34), ' ') as tool_calls from(select id, role, tool_name, tool_calls, case when instr(visible, char(59) || 'base64' || char(44)) then substr(visible, 1, instr(visible, char(59) || 'base64' || char(44)) + 7) else visible end as text from(select id, role, tool_name, tool_calls, case when instr(content, char(0))  = 1 then replace(replace(replace(replace(cast(substr(cast(content as blob), 2) as text), '\\', ' '), '\n', ' '), '\t', ' '), '\r', ' ') else content end as visible from(select * from messages)));
