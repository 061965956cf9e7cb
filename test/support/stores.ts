import { chmodSync, copyFileSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import Database from 'better-sqlite3'
import { CompiledQuery } from 'kysely'
import { afterAll, onTestFinished } from 'vitest'
import { type OpenOptions, openStateStore, type StateStore, type StateStoreEvent } from '../../src/index.ts'

/** A kind of file that the contract suite runs on. */
export interface StoreKind {
  name: string
  /** Whether the file has the tables of the additions. */
  additions: boolean
  /** Whether there is a file that others can open. */
  file: boolean
  /** Rows that are in the file before the test begins. */
  existing: { sessions: number; messages: number }
  /** Opens a store of its own for the running test; it is closed and its folder removed afterwards. */
  open(options?: OpenOptions): Promise<StateStore>
}

const fresh: StoreKind = {
  name: 'a new file',
  additions: true,
  file: true,
  existing: { sessions: 0, messages: 0 },
  open: opener('new', {}),
}

const memory: StoreKind = {
  ...fresh,
  name: ':memory:',
  file: false,
  open: (options) => openForTest({ path: ':memory:', ...options }),
}

const plain: StoreKind = {
  ...fresh,
  name: 'a file without additions',
  additions: false,
  open: opener('plain', { additions: false }),
}

const migrated: StoreKind = {
  ...fresh,
  name: 'a file of schema 1',
  existing: { sessions: 3, messages: 5 },
  open: opener('migrated', {}, writeVersion1),
}

export const kinds: readonly StoreKind[] = [fresh, memory, plain, migrated]

/** With the additions and without: where storing differs. */
export const bothModes: readonly StoreKind[] = [memory, plain]

/** Kinds whose file a second connection can open. */
export const fileKinds: readonly StoreKind[] = kinds.filter(({ file }) => file)

/** A folder for the running test. */
export function newFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'hermes-state-test-'))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  return folder
}

export function newPath(): string {
  return join(newFolder(), 'state.db')
}

/** Opens a copy of a file that was made once: copying one takes a fifth of the time of making it. */
function opener(
  name: string,
  always: OpenOptions,
  write: (path: string) => void = () => {},
): StoreKind['open'] {
  let made: Promise<string> | undefined
  const make = async () => {
    const path = join(templates(), `${name}.db`)
    write(path)
    await (await openStateStore({ path, ...always })).close()
    return path
  }
  return async (options) => {
    made ??= make()
    const path = newPath()
    copyFileSync(await made, path)
    return openForTest({ path, ...always, ...options })
  }
}

let templateFolder: string | undefined

function templates(): string {
  templateFolder ??= mkdtempSync(join(tmpdir(), 'hermes-state-test-'))
  return templateFolder
}

afterAll(() => {
  if (templateFolder) rmSync(templateFolder, { recursive: true, force: true })
})

const collected = new WeakMap<StateStore, StateStoreEvent[]>()

/**
 * Opens a store for the running test and collects its events. It searches in this thread: one that compiles the
 * sources takes a second to start.
 */
export async function openForTest({ onEvent, ...options }: OpenOptions): Promise<StateStore> {
  const events: StateStoreEvent[] = []
  const store = await openStateStore({
    worker: false,
    ...options,
    onEvent: (event) => {
      events.push(event)
      onEvent?.(event)
    },
  })
  collected.set(store, events)
  onTestFinished(() => store.close())
  return store
}

/** The events of one type that a store has raised so far. */
export function eventsOf<Type extends StateStoreEvent['type']>(
  store: StateStore,
  type: Type,
): Extract<StateStoreEvent, { type: Type }>[] {
  return (collected.get(store) ?? []).filter(
    (event): event is Extract<StateStoreEvent, { type: Type }> => event.type === type,
  )
}

/** Rows as they are in the file, read by a connection of their own; `:memory:` has only the store's. */
export async function rawRows<Row>(store: StateStore, sql: string, ...values: unknown[]): Promise<Row[]> {
  if (store.info.path === ':memory:') return (await execute<Row>(store, sql, values)).rows
  const db = new Database(store.info.path, { readonly: true })
  try {
    return db.prepare<unknown[], Row>(sql).all(...values)
  } finally {
    db.close()
  }
}

export async function rawRow<Row>(store: StateStore, sql: string, ...values: unknown[]): Promise<Row> {
  const [row] = await rawRows<Row>(store, sql, ...values)
  if (row === undefined) throw new Error(`No row: ${sql}`)
  return row
}

/** Runs SQL as another writer of the file would. */
export async function rawRun(store: StateStore, sql: string, ...values: unknown[]): Promise<void> {
  if (store.info.path === ':memory:') {
    await execute(store, sql, values)
    return
  }
  const db = new Database(store.info.path)
  try {
    db.prepare(sql).run(...values)
  } finally {
    db.close()
  }
}

/**
 * Makes every insert of a message with the content `poison` fail, as SQL would fail it. `how` is what SQLite
 * undoes: the statement, or the whole transaction.
 */
export async function poison(store: StateStore, how: 'abort' | 'rollback' = 'abort'): Promise<void> {
  await execute(
    store,
    `create trigger poison before insert on messages when new.content = 'poison' begin
       select raise(${how}, 'poisoned');
     end`,
    [],
  )
}

function execute<Row>(store: StateStore, sql: string, values: unknown[]) {
  return store.db.executeQuery<Row>(CompiledQuery.raw(sql, values) as CompiledQuery<Row>)
}

/** The first schema, to the letter as Hermes wrote it in February 2026. */
const VERSION_1 = `
CREATE TABLE IF NOT EXISTS schema_version (
    version INTEGER NOT NULL
);

CREATE TABLE IF NOT EXISTS sessions (
    id TEXT PRIMARY KEY,
    source TEXT NOT NULL,
    user_id TEXT,
    model TEXT,
    model_config TEXT,
    system_prompt TEXT,
    parent_session_id TEXT,
    started_at REAL NOT NULL,
    ended_at REAL,
    end_reason TEXT,
    message_count INTEGER DEFAULT 0,
    tool_call_count INTEGER DEFAULT 0,
    input_tokens INTEGER DEFAULT 0,
    output_tokens INTEGER DEFAULT 0,
    FOREIGN KEY (parent_session_id) REFERENCES sessions(id)
);

CREATE TABLE IF NOT EXISTS messages (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    session_id TEXT NOT NULL REFERENCES sessions(id),
    role TEXT NOT NULL,
    content TEXT,
    tool_call_id TEXT,
    tool_calls TEXT,
    tool_name TEXT,
    timestamp REAL NOT NULL,
    token_count INTEGER
);

CREATE INDEX IF NOT EXISTS idx_sessions_source ON sessions(source);
CREATE INDEX IF NOT EXISTS idx_sessions_parent ON sessions(parent_session_id);
CREATE INDEX IF NOT EXISTS idx_sessions_started ON sessions(started_at DESC);
CREATE INDEX IF NOT EXISTS idx_messages_session ON messages(session_id, timestamp);

CREATE VIRTUAL TABLE IF NOT EXISTS messages_fts USING fts5(
    content,
    content=messages,
    content_rowid=id
);

CREATE TRIGGER IF NOT EXISTS messages_fts_insert AFTER INSERT ON messages BEGIN
    INSERT INTO messages_fts(rowid, content) VALUES (new.id, new.content);
END;

CREATE TRIGGER IF NOT EXISTS messages_fts_delete AFTER DELETE ON messages BEGIN
    INSERT INTO messages_fts(messages_fts, rowid, content) VALUES('delete', old.id, old.content);
END;

CREATE TRIGGER IF NOT EXISTS messages_fts_update AFTER UPDATE ON messages BEGIN
    INSERT INTO messages_fts(messages_fts, rowid, content) VALUES('delete', old.id, old.content);
    INSERT INTO messages_fts(rowid, content) VALUES (new.id, new.content);
END;

INSERT INTO schema_version (version) VALUES (1);
`

const VERSION_1_ROWS = `
INSERT INTO sessions (id, source, user_id, model, model_config, system_prompt, parent_session_id, started_at,
  ended_at, end_reason, message_count, tool_call_count)
VALUES
  ('old-root', 'old', 'ada', 'claude-3-opus', '{"temperature": 0.5}', 'Be brief.', NULL, 1000.0, 1010.5,
   'compression', 3, 1),
  ('old-tip', 'old', NULL, NULL, NULL, NULL, 'old-root', 1011.0, NULL, NULL, 2, 0),
  ('old-empty', 'old', NULL, NULL, NULL, NULL, NULL, 1020.0, NULL, NULL, 0, 0);

INSERT INTO messages (session_id, role, content, tool_call_id, tool_calls, tool_name, timestamp, token_count)
VALUES
  ('old-root', 'user', 'walrus' || char(10) || 'spotted', NULL, NULL, NULL, 1001.25, 4),
  ('old-root', 'assistant', NULL, NULL,
   '[{"id": "c1", "type": "function", "function": {"name": "zoo", "arguments": "{\\"a\\": 1}"}}]', NULL, 1002.0, NULL),
  ('old-root', 'tool', 'walrus count', 'c1', NULL, 'zoo', 1003.0, NULL),
  ('old-tip', 'user', '海象在这里', NULL, NULL, NULL, 1012.0, NULL),
  ('old-tip', 'assistant', 'walrus gone', NULL, NULL, NULL, 1013.0, NULL);
`

export function writeVersion1(path: string): void {
  const db = new Database(path)
  db.pragma('journal_mode = wal')
  db.exec(VERSION_1)
  db.exec(VERSION_1_ROWS)
  db.close()
  chmodSync(path, 0o600)
}
