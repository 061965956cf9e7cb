import { createHash } from 'node:crypto'
import { chmodSync } from 'node:fs'
import Database from 'better-sqlite3'
import { newPath } from './stores.ts'

/** Later Hermes schemas that a file can have. */
export const NEWER = [8, 11, 16, 25, 26] as const

export type NewerSchema = (typeof NEWER)[number]

/** What only some schemas have, and from which on. */
const SINCE = {
  ownCopy: 11,
  flags: 16,
  archived: 16,
  external: 25,
  prompts: 25,
  usage: 25,
  hidden: 26,
} as const

export function has(schema: NewerSchema, feature: keyof typeof SINCE): boolean {
  return schema >= SINCE[feature]
}

/**
 * Writes a file of a later Hermes schema, with what this package reads of it:
 *
 * - `root` (cli, titled Herd, ended by compression) has the messages 1 to 3, its continuation `tip` 4 and 5, and
 *   `chat` (telegram) 6 to 9; from schema 16 on 6 is summarised away, and 8 taken back;
 * - `away` (cli, archived, message 10) from schema 16 on, `secret` (telegram, hidden, message 11) from 26 on;
 * - from schema 25 on the prompt of `root` is found by its hash, and its usage is told by model.
 */
export function writeNewerFile(
  path: string,
  schema: NewerSchema,
  journalMode: 'wal' | 'delete' = 'wal',
): void {
  const db = new Database(path)
  db.pragma(`journal_mode = ${journalMode}`)
  db.exec(tables(schema))
  db.exec(has(schema, 'external') ? EXTERNAL : has(schema, 'ownCopy') ? OWN_COPY : ONE_COLUMN)
  db.exec(ROWS)
  if (has(schema, 'flags')) db.exec(FLAGGED)
  if (has(schema, 'hidden')) db.exec(HIDDEN)
  if (has(schema, 'prompts')) db.exec(PROMPTS)
  if (has(schema, 'usage')) db.exec(USAGE)
  db.prepare('INSERT INTO schema_version (version) VALUES (?)').run(schema)
  db.close()
  chmodSync(path, 0o600)
}

/** Writes such a file for the running test, and runs SQL on it. Returns its path. */
export function newerFile(schema: NewerSchema, sql = ''): string {
  const path = newPath()
  writeNewerFile(path, schema)
  if (sql !== '') changeFile(path, sql)
  return path
}

/** Runs SQL on a file as another program would. */
export function changeFile(path: string, sql: string): void {
  const db = new Database(path)
  try {
    db.exec(sql)
  } finally {
    db.close()
  }
}

/** The tokenizer of an FTS5 table in a file that came from a process which had loaded one. */
export const UNKNOWN_TOKENIZER = 'cjk_unicode61'

export function useUnknownTokenizer(path: string, table: string): void {
  const db = new Database(path)
  try {
    db.unsafeMode(true)
    db.pragma('writable_schema = on')
    db.prepare(
      "UPDATE sqlite_schema SET sql = rtrim(sql, ') ' || char(10)) || ', tokenize=' || quote(?) || ')' WHERE name = ?",
    ).run(UNKNOWN_TOKENIZER, table)
  } finally {
    db.close()
  }
}

/** Compares the word index, and that of trigrams where there is one, with the messages; throws where they differ. */
export function checkIndexes(path: string): void {
  const db = new Database(path)
  try {
    const indexes = db
      .prepare("SELECT name FROM sqlite_schema WHERE sql LIKE 'CREATE VIRTUAL TABLE%'")
      .pluck()
      .all()
    for (const name of indexes) db.exec(`INSERT INTO ${name}(${name}, rank) VALUES ('integrity-check', 1)`)
  } finally {
    db.close()
  }
}

const tables = (schema: NewerSchema) => {
  const from = (feature: keyof typeof SINCE, sql: string) => (has(schema, feature) ? sql : '')
  return `
CREATE TABLE schema_version (
    version INTEGER NOT NULL
);
${from('prompts', 'CREATE TABLE system_prompts (hash TEXT PRIMARY KEY, prompt TEXT NOT NULL);')}
CREATE TABLE sessions (
    id TEXT PRIMARY KEY,
    source TEXT NOT NULL,
    user_id TEXT,
    model TEXT,
    model_config TEXT,
    system_prompt TEXT,
    ${from('prompts', 'system_prompt_hash TEXT,')}
    parent_session_id TEXT,
    started_at REAL NOT NULL,
    ended_at REAL,
    end_reason TEXT,
    message_count INTEGER DEFAULT 0,
    tool_call_count INTEGER DEFAULT 0,
    input_tokens INTEGER DEFAULT 0,
    output_tokens INTEGER DEFAULT 0,
    cache_read_tokens INTEGER DEFAULT 0,
    cache_write_tokens INTEGER DEFAULT 0,
    reasoning_tokens INTEGER DEFAULT 0,
    billing_provider TEXT,
    billing_base_url TEXT,
    billing_mode TEXT,
    estimated_cost_usd REAL,
    actual_cost_usd REAL,
    cost_status TEXT,
    cost_source TEXT,
    pricing_version TEXT,
    title TEXT,
    api_call_count INTEGER DEFAULT 0,
    ${from('archived', 'archived INTEGER NOT NULL DEFAULT 0,')}
    ${from('hidden', 'hidden INTEGER NOT NULL DEFAULT 0,')}
    ${from('prompts', 'FOREIGN KEY (system_prompt_hash) REFERENCES system_prompts(hash),')}
    FOREIGN KEY (parent_session_id) REFERENCES sessions(id)
);
CREATE TABLE messages (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    session_id TEXT NOT NULL REFERENCES sessions(id),
    role TEXT NOT NULL,
    content TEXT,
    tool_call_id TEXT,
    tool_calls TEXT,
    tool_name TEXT,
    timestamp REAL NOT NULL,
    token_count INTEGER,
    finish_reason TEXT,
    reasoning TEXT,
    reasoning_content TEXT,
    reasoning_details TEXT,
    codex_reasoning_items TEXT
    ${from('flags', ', active INTEGER NOT NULL DEFAULT 1, compacted INTEGER NOT NULL DEFAULT 0')}
);
CREATE TABLE state_meta (
    key TEXT PRIMARY KEY,
    value TEXT
);
${from('usage', usageTable('task'))}
CREATE INDEX idx_sessions_source ON sessions(source);
CREATE INDEX idx_sessions_parent ON sessions(parent_session_id);
CREATE INDEX idx_sessions_started ON sessions(started_at DESC);
CREATE INDEX idx_messages_session ON messages(session_id, timestamp);
CREATE UNIQUE INDEX idx_sessions_title_unique ON sessions(title) WHERE title IS NOT NULL;`
}

/** `session_model_usage` as it is from schema 22 on, or as it was before tasks were counted. */
export function usageTable(upTo: 'billing_mode' | 'task'): string {
  const task = upTo === 'task'
  return `
CREATE TABLE session_model_usage (
    session_id TEXT NOT NULL REFERENCES sessions(id) ON DELETE CASCADE,
    model TEXT NOT NULL,
    billing_provider TEXT NOT NULL DEFAULT '',
    billing_base_url TEXT NOT NULL DEFAULT '',
    billing_mode TEXT NOT NULL DEFAULT '',
    ${task ? "task TEXT NOT NULL DEFAULT ''," : ''}
    api_call_count INTEGER NOT NULL DEFAULT 0,
    input_tokens INTEGER NOT NULL DEFAULT 0,
    output_tokens INTEGER NOT NULL DEFAULT 0,
    cache_read_tokens INTEGER NOT NULL DEFAULT 0,
    cache_write_tokens INTEGER NOT NULL DEFAULT 0,
    reasoning_tokens INTEGER NOT NULL DEFAULT 0,
    estimated_cost_usd REAL NOT NULL DEFAULT 0,
    actual_cost_usd REAL NOT NULL DEFAULT 0,
    cost_status TEXT,
    cost_source TEXT,
    first_seen REAL,
    last_seen REAL,
    PRIMARY KEY (session_id, model, billing_provider, billing_base_url, billing_mode${task ? ', task' : ''})
);`
}

const ROWS = `
INSERT INTO sessions (id, source, user_id, model, model_config, system_prompt, parent_session_id, started_at,
  ended_at, end_reason, message_count, tool_call_count, input_tokens, output_tokens, estimated_cost_usd, title)
VALUES
  ('root', 'cli', 'ada', 'model-a', '{"temperature": 0.5}', 'Be brief.', NULL, 1000.5, 1900.0, 'compression',
   3, 1, 100, 50, 0.5, 'Herd'),
  ('tip', 'cli', NULL, 'model-a', NULL, 'Be kind.', 'root', 2000.0, NULL, NULL, 2, 0, 10, 5, 0.125, NULL),
  ('chat', 'telegram', NULL, NULL, NULL, NULL, NULL, 3000.0, NULL, NULL, 4, 0, 0, 0, NULL, NULL);
INSERT INTO messages (session_id, role, content, tool_call_id, tool_calls, tool_name, timestamp, token_count)
VALUES
  ('root', 'user', 'Count the walrus herd', NULL, NULL, NULL, 1001.0, 5),
  ('root', 'assistant', NULL, NULL,
   '[{"id": "call-1", "function": {"name": "census", "arguments": "{\\"place\\": \\"lagoon\\"}"}}]',
   NULL, 1002.0, NULL),
  ('root', 'tool', 'forty walrus', 'call-1', NULL, 'census', 2500.0, NULL),
  ('tip', 'user', char(0) || 'json:[{"type": "text", "text": "A seal, photographed"}, {"type": "image"}]',
   NULL, NULL, NULL, 2001.0, NULL),
  ('tip', 'assistant', 'It is a seal.', NULL, NULL, NULL, 2002.0, NULL),
  ('chat', 'user', 'old otter question', NULL, NULL, NULL, 3001.0, NULL),
  ('chat', 'assistant', 'otter summary', NULL, NULL, NULL, 3002.0, NULL),
  ('chat', 'user', 'wrong otter question', NULL, NULL, NULL, 3003.0, NULL),
  ('chat', 'user', 'right otter question', NULL, NULL, NULL, 3004.0, NULL);
UPDATE messages SET finish_reason = 'tool_calls', reasoning = 'Ask the tool.', reasoning_content = 'Ask.',
  reasoning_details = '[{"text": "Ask"}]', codex_reasoning_items = '[{"id": "rs-1"}]' WHERE id = 2;`

const FLAGGED = `
UPDATE messages SET active = 0, compacted = 1 WHERE id = 6;
UPDATE messages SET active = 0 WHERE id = 8;
INSERT INTO sessions (id, source, started_at, message_count, archived) VALUES ('away', 'cli', 2200.0, 1, 1);
INSERT INTO messages (session_id, role, content, timestamp) VALUES ('away', 'user', 'archived beaver', 2600.0);`

const HIDDEN = `
INSERT INTO sessions (id, source, started_at, message_count, hidden) VALUES ('secret', 'telegram', 1500.0, 1, 1);
INSERT INTO messages (session_id, role, content, timestamp) VALUES ('secret', 'user', 'hidden beaver', 2550.0);`

const PROMPT_HASH = createHash('sha256').update('Be brief.').digest('hex')

const PROMPTS = `
INSERT INTO system_prompts VALUES ('${PROMPT_HASH}', 'Be brief.');
UPDATE sessions SET system_prompt = NULL, system_prompt_hash = '${PROMPT_HASH}' WHERE id = 'root';`

const USAGE = `
INSERT INTO session_model_usage (session_id, model, input_tokens, output_tokens, estimated_cost_usd, first_seen,
  last_seen)
VALUES ('root', 'model-a', 80, 40, 0.25, 1001.0, 1002.0), ('root', 'model-b', 20, 10, 0.25, 1003.0, 1004.0);`

/** The trigger that an index with a text of its own has. */
export const COPY_UPDATE_TRIGGER = copyTriggers('messages_fts').update

const ONE_COLUMN = `
CREATE VIRTUAL TABLE messages_fts USING fts5(
    content,
    content=messages,
    content_rowid=id
);
CREATE TRIGGER messages_fts_insert AFTER INSERT ON messages BEGIN
    INSERT INTO messages_fts(rowid, content) VALUES (new.id, new.content);
END;
CREATE TRIGGER messages_fts_delete AFTER DELETE ON messages BEGIN
    INSERT INTO messages_fts(messages_fts, rowid, content) VALUES('delete', old.id, old.content);
END;
CREATE TRIGGER messages_fts_update AFTER UPDATE ON messages BEGIN
    INSERT INTO messages_fts(messages_fts, rowid, content) VALUES('delete', old.id, old.content);
    INSERT INTO messages_fts(rowid, content) VALUES (new.id, new.content);
END;`

function copyTriggers(table: string): { insert: string; remove: string; update: string } {
  const add = `
    INSERT INTO ${table}(rowid, content) VALUES (
        new.id,
        COALESCE(new.content, '') || ' ' || COALESCE(new.tool_name, '') || ' ' || COALESCE(new.tool_calls, '')
    );`
  const remove = `
    DELETE FROM ${table} WHERE rowid = old.id;`
  return {
    insert: `CREATE TRIGGER ${table}_insert AFTER INSERT ON messages BEGIN${add}\nEND;`,
    remove: `CREATE TRIGGER ${table}_delete AFTER DELETE ON messages BEGIN${remove}\nEND;`,
    update: `CREATE TRIGGER ${table}_update AFTER UPDATE ON messages BEGIN${remove}${add}\nEND;`,
  }
}

const OWN_COPY = `
CREATE VIRTUAL TABLE messages_fts USING fts5(
    content
);
${Object.values(copyTriggers('messages_fts')).join('\n')}
CREATE VIRTUAL TABLE messages_fts_trigram USING fts5(
    content,
    tokenize='trigram'
);
${Object.values(copyTriggers('messages_fts_trigram')).join('\n')}`

const EXTERNAL = `
CREATE VIRTUAL TABLE messages_fts USING fts5(
    content,
    tool_name,
    tool_calls,
    content='messages',
    content_rowid='id'
);
CREATE TRIGGER messages_fts_insert AFTER INSERT ON messages
WHEN (new.id > COALESCE((SELECT CAST(value AS INTEGER) FROM state_meta
                         WHERE key = 'fts_rebuild_high_water'), -1)
   OR new.id <= COALESCE((SELECT CAST(value AS INTEGER) FROM state_meta
                          WHERE key = 'fts_rebuild_progress'), -1))
BEGIN
    INSERT INTO messages_fts(rowid, content, tool_name, tool_calls)
    VALUES (new.id, new.content, new.tool_name, new.tool_calls);
END;
CREATE TRIGGER messages_fts_delete AFTER DELETE ON messages
WHEN (old.id > COALESCE((SELECT CAST(value AS INTEGER) FROM state_meta
                         WHERE key = 'fts_rebuild_high_water'), -1)
   OR old.id <= COALESCE((SELECT CAST(value AS INTEGER) FROM state_meta
                          WHERE key = 'fts_rebuild_progress'), -1))
BEGIN
    INSERT INTO messages_fts(messages_fts, rowid, content, tool_name, tool_calls)
    VALUES ('delete', old.id, old.content, old.tool_name, old.tool_calls);
END;
CREATE TRIGGER messages_fts_update
AFTER UPDATE OF content, tool_name, tool_calls ON messages
WHEN (old.content IS NOT new.content
    OR old.tool_name IS NOT new.tool_name
    OR old.tool_calls IS NOT new.tool_calls)
   AND (old.id > COALESCE((SELECT CAST(value AS INTEGER) FROM state_meta
                           WHERE key = 'fts_rebuild_high_water'), -1)
     OR old.id <= COALESCE((SELECT CAST(value AS INTEGER) FROM state_meta
                            WHERE key = 'fts_rebuild_progress'), -1))
BEGIN
    INSERT INTO messages_fts(messages_fts, rowid, content, tool_name, tool_calls)
    VALUES ('delete', old.id, old.content, old.tool_name, old.tool_calls);
    INSERT INTO messages_fts(rowid, content, tool_name, tool_calls)
    VALUES (new.id, new.content, new.tool_name, new.tool_calls);
END;
CREATE VIEW messages_fts_trigram_src AS
    SELECT id, role, content, tool_name, tool_calls
    FROM messages
    WHERE role <> 'tool';
CREATE VIRTUAL TABLE messages_fts_trigram USING fts5(
    content,
    tool_name,
    tool_calls,
    content='messages_fts_trigram_src',
    content_rowid='id',
    tokenize='trigram'
);
CREATE TRIGGER messages_fts_trigram_insert AFTER INSERT ON messages
WHEN new.role <> 'tool'
   AND (new.id > COALESCE((SELECT CAST(value AS INTEGER) FROM state_meta
                           WHERE key = 'fts_rebuild_high_water'), -1)
     OR new.id <= COALESCE((SELECT CAST(value AS INTEGER) FROM state_meta
                            WHERE key = 'fts_rebuild_progress'), -1))
BEGIN
    INSERT INTO messages_fts_trigram(rowid, content, tool_name, tool_calls)
    VALUES (new.id, new.content, new.tool_name, new.tool_calls);
END;
CREATE TRIGGER messages_fts_trigram_delete AFTER DELETE ON messages
WHEN old.role <> 'tool'
   AND (old.id > COALESCE((SELECT CAST(value AS INTEGER) FROM state_meta
                           WHERE key = 'fts_rebuild_high_water'), -1)
     OR old.id <= COALESCE((SELECT CAST(value AS INTEGER) FROM state_meta
                            WHERE key = 'fts_rebuild_progress'), -1))
BEGIN
    INSERT INTO messages_fts_trigram(messages_fts_trigram, rowid, content, tool_name, tool_calls)
    VALUES ('delete', old.id, old.content, old.tool_name, old.tool_calls);
END;
CREATE TRIGGER messages_fts_trigram_update
AFTER UPDATE OF content, tool_name, tool_calls, role ON messages
WHEN (old.content IS NOT new.content
    OR old.tool_name IS NOT new.tool_name
    OR old.tool_calls IS NOT new.tool_calls
    OR old.role IS NOT new.role)
   AND (old.id > COALESCE((SELECT CAST(value AS INTEGER) FROM state_meta
                           WHERE key = 'fts_rebuild_high_water'), -1)
     OR old.id <= COALESCE((SELECT CAST(value AS INTEGER) FROM state_meta
                            WHERE key = 'fts_rebuild_progress'), -1))
BEGIN
    INSERT INTO messages_fts_trigram(messages_fts_trigram, rowid, content, tool_name, tool_calls)
    SELECT 'delete', old.id, old.content, old.tool_name, old.tool_calls
    WHERE old.role <> 'tool';
    INSERT INTO messages_fts_trigram(rowid, content, tool_name, tool_calls)
    SELECT new.id, new.content, new.tool_name, new.tool_calls
    WHERE new.role <> 'tool';
END;`
