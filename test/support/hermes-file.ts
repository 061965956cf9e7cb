import { chmodSync } from 'node:fs'
import Database from 'better-sqlite3'

/** The Hermes schemas that a file can have. */
export const VERSIONS = [1, 2, 3, 4, 5, 6] as const

/** What brings an empty file to schema 1, schema 1 to 2, and so on, written as Hermes writes it. */
const STEPS = [
  `CREATE TABLE schema_version (version INTEGER NOT NULL);
   CREATE TABLE sessions (
     id TEXT PRIMARY KEY, source TEXT NOT NULL, user_id TEXT, model TEXT, model_config TEXT, system_prompt TEXT,
     parent_session_id TEXT, started_at REAL NOT NULL, ended_at REAL, end_reason TEXT,
     message_count INTEGER DEFAULT 0, tool_call_count INTEGER DEFAULT 0,
     input_tokens INTEGER DEFAULT 0, output_tokens INTEGER DEFAULT 0,
     FOREIGN KEY (parent_session_id) REFERENCES sessions(id)
   );
   CREATE TABLE messages (
     id INTEGER PRIMARY KEY AUTOINCREMENT, session_id TEXT NOT NULL REFERENCES sessions(id), role TEXT NOT NULL,
     content TEXT, tool_call_id TEXT, tool_calls TEXT, tool_name TEXT, timestamp REAL NOT NULL, token_count INTEGER
   );
   CREATE INDEX IF NOT EXISTS idx_sessions_source ON sessions(source);
   CREATE INDEX IF NOT EXISTS idx_sessions_parent ON sessions(parent_session_id);
   CREATE INDEX IF NOT EXISTS idx_sessions_started ON sessions(started_at DESC);
   CREATE INDEX IF NOT EXISTS idx_messages_session ON messages(session_id, timestamp);
   CREATE VIRTUAL TABLE messages_fts USING fts5(content, content=messages, content_rowid=id);
   CREATE TRIGGER messages_fts_insert AFTER INSERT ON messages BEGIN
     INSERT INTO messages_fts(rowid, content) VALUES (new.id, new.content);
   END;
   CREATE TRIGGER messages_fts_delete AFTER DELETE ON messages BEGIN
     INSERT INTO messages_fts(messages_fts, rowid, content) VALUES('delete', old.id, old.content);
   END;
   CREATE TRIGGER messages_fts_update AFTER UPDATE ON messages BEGIN
     INSERT INTO messages_fts(messages_fts, rowid, content) VALUES('delete', old.id, old.content);
     INSERT INTO messages_fts(rowid, content) VALUES (new.id, new.content);
   END;
   INSERT INTO schema_version (version) VALUES (1)`,

  `ALTER TABLE messages ADD COLUMN finish_reason TEXT;
   UPDATE schema_version SET version = 2`,

  `ALTER TABLE sessions ADD COLUMN "title" TEXT;
   UPDATE schema_version SET version = 3`,

  `CREATE UNIQUE INDEX IF NOT EXISTS idx_sessions_title_unique ON sessions(title) WHERE title IS NOT NULL;
   UPDATE schema_version SET version = 4`,

  `ALTER TABLE sessions ADD COLUMN "cache_read_tokens" INTEGER DEFAULT 0;
   ALTER TABLE sessions ADD COLUMN "cache_write_tokens" INTEGER DEFAULT 0;
   ALTER TABLE sessions ADD COLUMN "reasoning_tokens" INTEGER DEFAULT 0;
   ALTER TABLE sessions ADD COLUMN "billing_provider" TEXT;
   ALTER TABLE sessions ADD COLUMN "billing_base_url" TEXT;
   ALTER TABLE sessions ADD COLUMN "billing_mode" TEXT;
   ALTER TABLE sessions ADD COLUMN "estimated_cost_usd" REAL;
   ALTER TABLE sessions ADD COLUMN "actual_cost_usd" REAL;
   ALTER TABLE sessions ADD COLUMN "cost_status" TEXT;
   ALTER TABLE sessions ADD COLUMN "cost_source" TEXT;
   ALTER TABLE sessions ADD COLUMN "pricing_version" TEXT;
   UPDATE schema_version SET version = 5`,

  `ALTER TABLE messages ADD COLUMN reasoning TEXT;
   ALTER TABLE messages ADD COLUMN reasoning_details TEXT;
   ALTER TABLE messages ADD COLUMN codex_reasoning_items TEXT;
   UPDATE schema_version SET version = 6`,
]

/** Rows for the columns of schema 1, and for what each later schema added. */
const ROWS = [
  `INSERT INTO sessions VALUES
     ('alpha', 'cli', 'ada', 'model-a', '{"temperature": 0.5}', 'Be brief.', NULL, 1000.5, 1500.0, 'compression',
      3, 1, 100, 50),
     ('beta', 'telegram', NULL, NULL, NULL, NULL, 'alpha', 2000.0, NULL, NULL, 2, 0, 0, 0),
     ('gamma', 'cli', NULL, NULL, NULL, NULL, NULL, 3000.0, NULL, NULL, 0, 0, 0, 0);
   INSERT INTO messages (session_id, role, content, tool_call_id, tool_calls, tool_name, timestamp, token_count)
   VALUES
     ('alpha', 'user', 'Count the walrus herd', NULL, NULL, NULL, 1001.0, 5),
     ('alpha', 'assistant', NULL, NULL,
      '[{"id": "call-1", "function": {"name": "count", "arguments": "{}"}}]', NULL, 1002.0, NULL),
     ('alpha', 'tool', 'forty walrus', 'call-1', NULL, 'count', 1003.0, NULL),
     ('beta', 'user', '海象 naïve 🦭', NULL, NULL, NULL, 2100.0, NULL),
     ('beta', 'assistant', '', NULL, NULL, NULL, 2050.0, 1)`,
  `UPDATE messages SET finish_reason = 'tool_calls' WHERE id = 2`,
  `UPDATE sessions SET title = 'Herd' WHERE id = 'alpha'`,
  '',
  `UPDATE sessions SET cache_read_tokens = 7, cache_write_tokens = 8, reasoning_tokens = 9, billing_provider = 'p',
     billing_base_url = 'https://p.example', billing_mode = 'metered', estimated_cost_usd = 0.25,
     actual_cost_usd = 0.125, cost_status = 'final', cost_source = 'provider', pricing_version = '2026-01'
   WHERE id = 'alpha'`,
  `UPDATE messages SET reasoning = 'Ask the tool.', reasoning_details = '[{"text": "Ask"}]',
     codex_reasoning_items = '[{"id": "rs-1"}]' WHERE id = 2`,
]

/** Writes a file of a Hermes schema that nothing but Hermes has opened, with the rows of {@link hermesRows}. */
export function writeHermesFile(path: string, version: number): void {
  const db = new Database(path)
  db.pragma('journal_mode = wal')
  for (let index = 0; index < version; index++) {
    hermesStep(db, index + 1)
    db.exec(ROWS[index]!)
  }
  db.close()
  chmodSync(path, 0o600)
}

/** Does what Hermes does to bring a file from schema `version - 1` to `version`. */
export function hermesStep(db: Database.Database, version: number): void {
  db.exec(STEPS[version - 1]!)
}

/** What a store reads from such a file: later columns are null, and later counts 0. */
export function hermesRows(version: number) {
  const has = <T>(since: number, value: T) => (version >= since ? value : null)
  const count = (value: number) => (version >= 5 ? value : 0)
  const session = {
    user_id: null,
    model: null,
    model_config: null,
    system_prompt: null,
    parent_session_id: null,
    ended_at: null,
    end_reason: null,
    title: null,
    message_count: 0,
    tool_call_count: 0,
    input_tokens: 0,
    output_tokens: 0,
    cache_read_tokens: 0,
    cache_write_tokens: 0,
    reasoning_tokens: 0,
    billing_provider: null,
    billing_base_url: null,
    billing_mode: null,
    estimated_cost_usd: null,
    actual_cost_usd: null,
    cost_status: null,
    cost_source: null,
    pricing_version: null,
  }
  const message = {
    content: null,
    tool_call_id: null,
    tool_calls: null,
    tool_name: null,
    token_count: null,
    finish_reason: null,
    reasoning: null,
    reasoning_details: null,
    codex_reasoning_items: null,
  }
  return {
    sessions: [
      {
        ...session,
        id: 'alpha',
        source: 'cli',
        user_id: 'ada',
        model: 'model-a',
        model_config: { temperature: 0.5 },
        system_prompt: 'Be brief.',
        started_at: 1000.5,
        ended_at: 1500,
        end_reason: 'compression',
        message_count: 3,
        tool_call_count: 1,
        input_tokens: 100,
        output_tokens: 50,
        title: has(3, 'Herd'),
        cache_read_tokens: count(7),
        cache_write_tokens: count(8),
        reasoning_tokens: count(9),
        billing_provider: has(5, 'p'),
        billing_base_url: has(5, 'https://p.example'),
        billing_mode: has(5, 'metered'),
        estimated_cost_usd: has(5, 0.25),
        actual_cost_usd: has(5, 0.125),
        cost_status: has(5, 'final'),
        cost_source: has(5, 'provider'),
        pricing_version: has(5, '2026-01'),
      },
      {
        ...session,
        id: 'beta',
        source: 'telegram',
        parent_session_id: 'alpha',
        started_at: 2000,
        message_count: 2,
      },
      { ...session, id: 'gamma', source: 'cli', started_at: 3000 },
    ],
    messages: [
      {
        ...message,
        id: 1,
        session_id: 'alpha',
        role: 'user',
        content: 'Count the walrus herd',
        timestamp: 1001,
        token_count: 5,
      },
      {
        ...message,
        id: 2,
        session_id: 'alpha',
        role: 'assistant',
        timestamp: 1002,
        tool_calls: [{ id: 'call-1', function: { name: 'count', arguments: '{}' } }],
        finish_reason: has(2, 'tool_calls'),
        reasoning: has(6, 'Ask the tool.'),
        reasoning_details: has(6, [{ text: 'Ask' }]),
        codex_reasoning_items: has(6, [{ id: 'rs-1' }]),
      },
      {
        ...message,
        id: 3,
        session_id: 'alpha',
        role: 'tool',
        content: 'forty walrus',
        timestamp: 1003,
        tool_call_id: 'call-1',
        tool_name: 'count',
      },
      { ...message, id: 4, session_id: 'beta', role: 'user', content: '海象 naïve 🦭', timestamp: 2100 },
      {
        ...message,
        id: 5,
        session_id: 'beta',
        role: 'assistant',
        content: '',
        timestamp: 2050,
        token_count: 1,
      },
    ],
  }
}

/** Every object of a file's schema and every row of its tables, to compare before and after. */
export function dump(path: string): { schema: unknown[]; rows: Record<string, unknown[]> } {
  const db = new Database(path, { readonly: true })
  try {
    const schema = db
      .prepare('select type, name, tbl_name, sql from sqlite_schema order by type, name')
      .all() as {
      type: string
      name: string
    }[]
    const tables = schema.filter(({ type }) => type === 'table').map(({ name }) => name)
    return {
      schema,
      rows: Object.fromEntries(tables.map((name) => [name, db.prepare(`select * from "${name}"`).all()])),
    }
  } finally {
    db.close()
  }
}
