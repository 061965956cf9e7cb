import Database from 'better-sqlite3'
import { hermesStep, writeHermesFile } from './hermes-file.ts'
import { useUnknownTokenizer } from './newer-file.ts'

/** A file of Hermes schema 1 to 6 that is not what its number says. */
export interface Flaw {
  name: string
  /** The schema whose rows it has. */
  rows: number
  /** What mending names: each of these is in one of its entries, and each entry has one of these in it. */
  mended: string[]
  /** Where only comparing every word shows the flaw: what a search for `walrus` finds in the file as it is. */
  hitsUnmended?: number[]
  write(path: string): void
}

type Change = string | ((db: Database.Database) => void)

/** Runs SQL on a file, also such as SQLite allows in unsafe mode only. */
export function change(path: string, what: Change): void {
  const db = new Database(path)
  try {
    db.unsafeMode(true)
    if (typeof what === 'string') db.exec(what)
    else what(db)
  } finally {
    db.close()
  }
}

/** Makes changes that the word index of a file does not hear of. */
export function unheard(text: string): (db: Database.Database) => void {
  return (db) => {
    const triggers = db
      .prepare(
        "SELECT name, sql FROM sqlite_schema WHERE name LIKE 'messages\\_fts\\_%' ESCAPE '\\' AND type = 'trigger'",
      )
      .all() as { name: string; sql: string }[]
    for (const { name } of triggers) db.exec(`DROP TRIGGER ${name}`)
    db.exec(text)
    for (const { sql } of triggers) db.exec(sql)
  }
}

const flaw = (name: string, rows: number, mended: string[], what: Change, hitsUnmended?: number[]): Flaw => ({
  name,
  rows,
  mended,
  hitsUnmended,
  write(path) {
    writeHermesFile(path, rows)
    change(path, what)
  },
})

const DROP_TRIGGERS = `DROP TRIGGER messages_fts_insert; DROP TRIGGER messages_fts_delete;
  DROP TRIGGER messages_fts_update;`

const DROP_INDEX = `${DROP_TRIGGERS} DROP TABLE messages_fts;`

const MESSAGE_3 = `INSERT INTO messages (id, session_id, role, content, tool_call_id, tool_name, timestamp)
  VALUES (3, 'alpha', 'tool', 'forty walrus', 'call-1', 'count', 1003.0);`

const GHOSTS = `INSERT INTO messages (id, session_id, role, content, timestamp)
  VALUES (8, 'gamma', 'user', 'walrus ghost', 3001.0), (9, 'gamma', 'user', 'walrus ghost', 3002.0);`

const OWN_COPY = `DROP TABLE messages_fts;
  CREATE VIRTUAL TABLE messages_fts USING fts5(content);
  INSERT INTO messages_fts(rowid, content) SELECT id, content FROM messages;`

/** What can become of the block that says which segments an index has. */
export const STRUCTURE = {
  unreadable: "UPDATE messages_fts_data SET block = x'FFFFFFFFFFFFFFFF' WHERE id = 10;",
  gone: 'DELETE FROM messages_fts_data WHERE id = 10;',
  zeros: 'UPDATE messages_fts_data SET block = zeroblob(length(block)) WHERE id = 10;',
}

/** Overwrites the blocks that hold the words of an index. */
export const ZERO_WORDS = 'UPDATE messages_fts_data SET block = zeroblob(length(block)) WHERE id > 10;'

export const FLAWS: readonly Flaw[] = [
  flaw(
    'the number 6 with the columns of schema 1',
    1,
    ['column messages.', 'column sessions.', 'index idx_sessions_title_unique'],
    'UPDATE schema_version SET version = 6',
  ),
  flaw(
    'the number 6 with the columns of schema 4',
    4,
    ['column messages.reasoning', 'column messages.codex_reasoning_items', 'column sessions.'],
    'UPDATE schema_version SET version = 6',
  ),
  flaw(
    'the number 3 with the columns of schema 6',
    6,
    ['a migration that stopped half-way'],
    'UPDATE schema_version SET version = 3',
  ),
  flaw(
    'the number 4 with some columns of schema 5',
    4,
    [
      'a migration that stopped half-way (column sessions.billing_provider, column sessions.cache_read_tokens',
    ],
    `ALTER TABLE sessions ADD COLUMN "cache_read_tokens" INTEGER DEFAULT 0;
     ALTER TABLE sessions ADD COLUMN "cache_write_tokens" INTEGER DEFAULT 0;
     ALTER TABLE sessions ADD COLUMN "billing_provider" TEXT`,
  ),
  flaw('no number', 6, ['schema_version ([])'], 'DELETE FROM schema_version'),
  flaw('no number, with the columns of schema 2', 2, ['schema_version ([])'], 'DELETE FROM schema_version'),
  flaw(
    'no table schema_version',
    6,
    ['column schema_version.version', 'schema_version ([])'],
    'DROP TABLE schema_version',
  ),
  flaw(
    'its number three times',
    6,
    ['schema_version ([6,6,6])'],
    'INSERT INTO schema_version VALUES (6), (6)',
  ),
  flaw('two numbers', 6, ['schema_version ([6,4])'], 'INSERT INTO schema_version VALUES (4)'),
  flaw('the number six', 6, ['schema_version (["six"])'], "UPDATE schema_version SET version = 'six'"),
  flaw('the number 0', 6, ['schema_version ([0])'], 'UPDATE schema_version SET version = 0'),
  flaw(
    'no number, and neither the last index nor a word index, as its making can leave it',
    1,
    ['index idx_messages_session', 'schema_version ([])', 'word index (it is missing)'],
    `DELETE FROM schema_version; DROP INDEX idx_messages_session; ${DROP_INDEX}`,
  ),
  flaw('no index of its messages', 6, ['index idx_messages_session'], 'DROP INDEX idx_messages_session'),
  flaw(
    'an index of titles that is not unique',
    6,
    ['index idx_sessions_title_unique'],
    `DROP INDEX idx_sessions_title_unique;
     CREATE INDEX idx_sessions_title_unique ON sessions(title) WHERE title IS NOT NULL`,
  ),
  flaw(
    'a title twice, and no index of titles',
    6,
    ['index idx_sessions_title_unique', 'title (newer sessions have the same)'],
    `DROP INDEX idx_sessions_title_unique;
     INSERT INTO sessions (id, source, started_at, title) VALUES ('delta', 'cli', 500.0, 'Herd')`,
  ),
  flaw('a trigger missing', 6, ['word index (it lacks a trigger)'], 'DROP TRIGGER messages_fts_update'),
  flaw(
    'all triggers missing, and a message added since',
    6,
    ['word index (it lacks a trigger)'],
    `DELETE FROM messages WHERE id = 3; ${DROP_TRIGGERS} ${MESSAGE_3}`,
  ),
  flaw(
    'a trigger made for another word index',
    6,
    ['word index (it has triggers that are not made for it)'],
    `DROP TRIGGER messages_fts_delete;
     CREATE TRIGGER messages_fts_delete AFTER DELETE ON messages BEGIN
       DELETE FROM messages_fts WHERE rowid = old.id;
     END`,
  ),
  flaw(
    'a trigger that adds a part of the text only',
    6,
    ['word index (it is not the one of its schema)'],
    `DROP TRIGGER messages_fts_insert;
     CREATE TRIGGER messages_fts_insert AFTER INSERT ON messages BEGIN
       INSERT INTO messages_fts(rowid, content) VALUES (new.id, substr(new.content, 1, 8));
     END`,
  ),
  flaw('no word index', 6, ['word index (it is missing)'], DROP_INDEX),
  flaw('no word index, with the columns of schema 1', 1, ['word index (it is missing)'], DROP_INDEX),
  flaw('triggers without a word index', 6, ['word index (it is missing)'], 'DROP TABLE messages_fts'),
  flaw(
    'a word index with a text of its own',
    6,
    ['word index (it has triggers that are not made for it)'],
    OWN_COPY,
  ),
  flaw(
    'a word index with a text of its own, and triggers for that',
    6,
    ['word index (it is not the one of its schema)'],
    `${OWN_COPY} ${DROP_TRIGGERS}
     CREATE TRIGGER messages_fts_insert AFTER INSERT ON messages BEGIN
       INSERT INTO messages_fts(rowid, content) VALUES (new.id, new.content);
     END;
     CREATE TRIGGER messages_fts_delete AFTER DELETE ON messages BEGIN
       DELETE FROM messages_fts WHERE rowid = old.id;
     END;
     CREATE TRIGGER messages_fts_update AFTER UPDATE ON messages BEGIN
       DELETE FROM messages_fts WHERE rowid = old.id;
       INSERT INTO messages_fts(rowid, content) VALUES (new.id, new.content);
     END`,
  ),
  flaw(
    'a word index with another tokenizer',
    6,
    ['word index (it is not the one of its schema)'],
    `DROP TABLE messages_fts;
     CREATE VIRTUAL TABLE messages_fts USING fts5(content, content=messages, content_rowid=id, tokenize=porter);
     INSERT INTO messages_fts(messages_fts) VALUES ('rebuild')`,
  ),
  {
    ...flaw('a word index with an unknown tokenizer', 6, ['no such tokenizer'], ''),
    write(path) {
      writeHermesFile(path, 6)
      useUnknownTokenizer(path, 'messages_fts')
    },
  },
  flaw(
    'a word index that knows an earlier text',
    6,
    ['word index (it '],
    (db) => {
      db.exec("UPDATE messages SET content = 'Count the seal herd' WHERE id = 1")
      unheard("UPDATE messages SET content = 'Count the walrus herd' WHERE id = 1")(db)
    },
    [3],
  ),
  flaw('a word index that lacks a message', 6, ['word index (it '], (db) => {
    db.exec('DELETE FROM messages WHERE id = 3')
    unheard(MESSAGE_3)(db)
  }),
  flaw('a word index with messages that are gone', 6, ['word index (it '], (db) => {
    db.exec(GHOSTS)
    unheard('DELETE FROM messages WHERE id > 5')(db)
  }),
  flaw('a word index that has missed an insert, an update and deletes', 6, ['word index (it '], (db) => {
    db.exec(`UPDATE messages SET content = 'seal' WHERE id = 1; DELETE FROM messages WHERE id = 3; ${GHOSTS}`)
    unheard(`UPDATE messages SET content = 'Count the walrus herd' WHERE id = 1; ${MESSAGE_3}
        DELETE FROM messages WHERE id > 5`)(db)
  }),
  flaw('a word index with an unreadable structure', 6, ['corrupt structure record'], STRUCTURE.unreadable),
  flaw('a word index without a structure', 6, ['word index (it '], STRUCTURE.gone),
  flaw('a word index with zeros for its structure', 6, ['word index (it '], STRUCTURE.zeros),
  flaw(
    'a word index with unreadable words',
    6,
    ['word index (it '],
    "UPDATE messages_fts_data SET block = x'FFFFFFFFFFFFFFFF' WHERE id > 10",
  ),
  flaw('a word index with zeros for words', 6, ['word index (it '], ZERO_WORDS),
  flaw(
    'a word index without the lengths of its texts',
    6,
    ['word index (it '],
    'DELETE FROM messages_fts_docsize',
  ),
  flaw(
    'a word index without the length of all texts together',
    6,
    ['word index (it '],
    'DELETE FROM messages_fts_data WHERE id = 1',
    [1, 3],
  ),
  ...['data', 'docsize', 'config', 'idx'].map((part) =>
    flaw(`a word index without its table ${part}`, 6, ['word index (it '], `DROP TABLE messages_fts_${part}`),
  ),
  flaw('a word index without its settings', 6, ['word index (it '], 'DELETE FROM messages_fts_config'),
]

/** The making of a file that was interrupted, as Hermes writes it. */
export const INTERRUPTED = [
  { name: 'schema_version', write: (path: string) => interrupted(path, "'schema_version'") },
  {
    name: 'schema_version and sessions',
    write: (path: string) => interrupted(path, "'schema_version', 'sessions'"),
  },
]

function interrupted(path: string, tables: string): void {
  const whole = new Database(':memory:')
  hermesStep(whole, 1)
  const statements = whole
    .prepare(`SELECT sql FROM sqlite_schema WHERE name IN (${tables}) ORDER BY rowid`)
    .pluck()
    .all()
  whole.close()
  writeHermesFile(path, 0)
  change(path, statements.join(';'))
}

/** Everything at once: columns, numbers, titles, indexes, triggers, and a word index that SQLite cannot even drop. */
export function writeVeryFlawed(path: string): void {
  writeHermesFile(path, 3)
  change(
    path,
    `INSERT INTO schema_version VALUES (6), ('six');
     INSERT INTO sessions (id, source, started_at, title) VALUES ('delta', 'cli', 500.0, 'Herd');
     DROP INDEX idx_sessions_source;
     DROP INDEX idx_messages_session;
     CREATE INDEX idx_messages_session ON messages(session_id);
     DROP TRIGGER messages_fts_update`,
  )
  useUnknownTokenizer(path, 'messages_fts')
}

/** Every object of a file's schema and every row of its tables, for a word index that cannot be read as a table. */
export function storage(path: string): { schema: unknown[]; rows: unknown[] } {
  const db = new Database(path, { readonly: true })
  try {
    const schema = db.prepare('SELECT * FROM sqlite_schema ORDER BY rowid').all()
    const names = db
      .prepare("SELECT name FROM sqlite_schema WHERE type = 'table' AND rootpage > 0 ORDER BY name")
      .pluck()
      .all()
    return { schema, rows: names.map((name) => [name, db.prepare(`SELECT * FROM "${name}"`).all()]) }
  } finally {
    db.close()
  }
}
