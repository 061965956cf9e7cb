-- The schema after 001_initial, as npm run schema reads it off a new database; columns by name.

create table messages (
  content TEXT,
  id INTEGER PRIMARY KEY AUTOINCREMENT,
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
  end_reason TEXT,
  ended_at REAL,
  id TEXT PRIMARY KEY,
  input_tokens INTEGER DEFAULT 0,
  message_count INTEGER DEFAULT 0,
  model TEXT,
  model_config TEXT,
  output_tokens INTEGER DEFAULT 0,
  parent_session_id TEXT REFERENCES sessions(id),
  source TEXT NOT NULL,
  started_at REAL NOT NULL,
  system_prompt TEXT,
  tool_call_count INTEGER DEFAULT 0,
  user_id TEXT
);

create index idx_messages_session on messages(session_id, timestamp);

create index idx_sessions_parent on sessions(parent_session_id);

create index idx_sessions_source on sessions(source);

create index idx_sessions_started on sessions(started_at desc);

create virtual table messages_fts using fts5(content, content = messages, content_rowid = id);

create trigger messages_fts_delete after delete on messages begin
  insert into messages_fts(messages_fts, rowid, content) values ('delete', old.id, old.content);
end;

create trigger messages_fts_insert after insert on messages begin
  insert into messages_fts(rowid, content) values (new.id, new.content);
end;

create trigger messages_fts_update after update on messages begin
  insert into messages_fts(messages_fts, rowid, content) values ('delete', old.id, old.content);
  insert into messages_fts(rowid, content) values (new.id, new.content);
end;
