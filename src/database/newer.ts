import { sql } from 'kysely'
import { isLarge, isSound } from '../search/rebuild.ts'
import type { Connection } from './connection.ts'
import { build } from './fixed-query.ts'
import { HERMES_NAMES, reference } from './reference.ts'
import { differences, isColumn, readShape, type Shape, select } from './shape.ts'
import { isRefusal, toStoreError } from './sqlite-errors.ts'
import { patiently } from './waiting.ts'

/** What making a file of a later Hermes schema writable did: what was mended, or why it cannot be written. */
export type Preparation = { mended: string[] } | { obstacle: string }

/** The columns of schema 6 that a file of a later one lacks: builds that shared a number brought different ones. */
export async function missingColumns(shape: Shape): Promise<string[]> {
  const { shape: complete } = await reference(HERMES_NAMES)
  return differences(shape, complete).filter(
    (key) => isColumn(key) && !key.startsWith('column schema_version.'),
  )
}

/**
 * Makes a connection ready to write a file of a Hermes schema above 6: adds the columns of schema 6 that it lacks
 * and tries a message out, for its triggers may need what this process does not have. Its own triggers keep its
 * indexes; no index is touched here.
 */
export async function prepareNewer(
  connection: Connection,
  { busyTimeout, signal }: { busyTimeout: number; signal: AbortSignal | undefined },
): Promise<Preparation> {
  const { ddl } = await reference(HERMES_NAMES)
  await patiently(() => connection.begin(), busyTimeout, signal)
  try {
    const mended = await missingColumns(readShape(connection))
    for (const key of mended) connection.exec(ddl.get(key)!)
    const obstacle = tryOut(connection)
    if (obstacle !== undefined) {
      connection.rollback()
      return { obstacle }
    }
    mended.push(...refreshTrigrams(connection))
    // Readers of a file in rollback-journal mode hold up the commit.
    await patiently(() => connection.commit(), busyTimeout, signal)
    keepUp(connection, readShape(connection))
    return { mended }
  } catch (error) {
    connection.rollback()
    throw toStoreError(error, connection.path)
  }
}

/** Why a message cannot be written; undefined where it can. */
function tryOut(connection: Connection): string | undefined {
  try {
    connection.exec(TRIAL)
    return undefined
  } catch (error) {
    if (!isRefusal(error)) throw error
    return error instanceof Error ? error.message : String(error)
  }
}

/** A session and a message, inserted, changed, deleted and undone. */
const TRIAL = `
  savepoint trial;
  insert into sessions (id, source, started_at) values ('hs-trial', 'hs-trial', 0);
  insert into messages (session_id, role, content, timestamp) values ('hs-trial', 'user', 'trial', 0);
  update messages set content = 'tried' where session_id = 'hs-trial';
  update sessions set message_count = 1, title = 'hs-trial', ended_at = 0 where id = 'hs-trial';
  delete from messages where session_id = 'hs-trial';
  delete from sessions where id = 'hs-trial';
  rollback to trial;
  release trial`

/**
 * Older versions of SQLite end a text at a NUL when they cut it into trigrams, and structured content begins with
 * one: deleting such a message here would take from the index what is not in it, and damage it. Its content is then
 * made anew; the table stays what it is. Not in a large file: nobody could write for as long as that takes.
 */
function refreshTrigrams(connection: Connection): string[] {
  const hasNul = select(
    connection,
    sql`select 1 from messages where instr(content, char(0)) or instr(tool_calls, char(0)) limit 1`,
  )
  if (isLarge(connection) || hasNul.length === 0) return []
  const indexes = select<{ name: string }>(
    connection,
    sql`select name from sqlite_schema where sql like 'create virtual table%fts5%trigram%'`,
  )
  return indexes.flatMap(({ name }) => {
    if (isSound(connection, name)) return []
    connection.exec(`insert into "${name}"("${name}") values ('rebuild')`)
    return [`index ${name} (it does not match the messages)`]
  })
}

const NUMBERS = [
  'input_tokens',
  'output_tokens',
  'cache_read_tokens',
  'cache_write_tokens',
  'reasoning_tokens',
  'estimated_cost_usd',
  'actual_cost_usd',
]

const NOW = sql`(julianday('now') - 2440587.5) * 86400.0`

/** Temporary triggers for what later Hermes versions keep elsewhere too: they live in this connection only. */
function keepUp(connection: Connection, shape: Shape): void {
  // A prompt found by its hash comes before the column.
  if (shape.has('column sessions.system_prompt_hash'))
    connection.exec(`
      create temp trigger hs_system_prompt after update of system_prompt on main.sessions begin
        update sessions set system_prompt_hash = null where id = new.id;
      end`)
  if (!shape.has('column session_model_usage.session_id')) return

  // What a session used before the table was kept, then what it used now, on the account of its present model.
  const columns = NUMBERS.filter((name) => shape.has(`column session_model_usage.${name}`))
  const keys = [...shape]
    .filter(
      ([key, definition]) => /^column session_model_usage\./.test(key) && /PRIMARY KEY/.test(definition),
    )
    .map(([key]) => key.replace('column session_model_usage.', ''))
  const key = (name: string) => {
    if (name === 'session_id') return sql`new.id`
    if (name === 'task') return sql`''`
    const column = sql.ref(`new.${name}`)
    return name === 'model' ? column : sql`coalesce(${column}, '')`
  }
  const growth = (name: string) =>
    sql`coalesce(${sql.ref(`new.${name}`)}, 0) - coalesce(${sql.ref(`old.${name}`)}, 0)`
  const names = sql.join([...keys, ...columns, 'first_seen', 'last_seen'].map((name) => sql.ref(name)))
  const row = (number: (name: string) => ReturnType<typeof sql>) =>
    sql.join([...keys.map(key), ...columns.map(number), NOW, NOW])
  const changed = sql.join(
    columns.map((name) => sql`${growth(name)} <> 0`),
    sql` or `,
  )
  const used = sql.join(
    columns.map((name) => sql`coalesce(${sql.ref(`old.${name}`)}, 0) <> 0`),
    sql` or `,
  )
  // What helpers used beside the conversation is not in the session's own columns.
  const ownTask = keys.includes('task') ? sql`and task = ''` : sql``
  const updates = sql.join([
    ...columns.map((name) => sql`${sql.ref(name)} = max(${sql.ref(name)} + ${growth(name)}, 0)`),
    sql`last_seen = ${NOW}`,
  ])
  connection.execute(
    sql`
      create temp trigger hs_model_usage after update on main.sessions
      when new.model is not null and (${changed}) begin
        insert into session_model_usage (${names})
        select ${row((name) => sql`coalesce(${sql.ref(`old.${name}`)}, 0)`)}
        where (${used}) and not exists (select 1 from session_model_usage where session_id = new.id ${ownTask});
        insert into session_model_usage (${names}) values (${row((name) => sql`max(${growth(name)}, 0)`)})
        on conflict (${sql.join(keys.map((name) => sql.ref(name)))}) do update set ${updates};
      end`.compile(build),
  )
}
