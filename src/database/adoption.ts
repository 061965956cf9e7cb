import { sql } from 'kysely'
import { DatabaseError, MigrationFailedError, StateStoreError } from '../errors.ts'
import { unreadableBigrams } from '../search/index-health.ts'
import {
  dropIndex,
  halfMadeProblem,
  isLarge,
  isSound,
  remakeBigrams,
  remakeWordIndex,
} from '../search/rebuild.ts'
import { INDEX_TRIGGERS, inspectWordIndex, PROGRESS, WORD_INDEX } from '../search/word-index.ts'
import type { Connection } from './connection.ts'
import { build } from './fixed-query.ts'
import { executedIn, type HermesState } from './inspection.ts'
import { SCHEMA_VERSION } from './limits.ts'
import { ADDITION_NAMES, HERMES_NAMES, MIGRATIONS, type Reference, reference } from './reference.ts'
import { differences, isColumn, listed, select, tableOf } from './shape.ts'
import { toStoreError } from './sqlite-errors.ts'

/** What is wrong with a file of Hermes schema 1 to 6, for what it says it is. */
export interface Flaws {
  /** The parts it should have and lacks, or has in another form: keys of its shape. */
  missing: string[]
  /** Columns and indexes of later schemas that a migration left there before it was interrupted. */
  ahead: string[]
  /** The rows of `schema_version`, where they are not one valid number. */
  stated: unknown[] | undefined
  /** Why the word index cannot be relied on. */
  wordIndex: string | null
  /** Why the index of scripts without spaces cannot be relied on. */
  bigrams: string | null
}

/** Additions that hold nothing but what follows from the messages and sessions: they are made anew. */
const DERIVED = ['009_session_activity']

/** The migration that makes the word index anew. */
export const WORD_INDEX_MIGRATION = '010_word_index'

/** Parts of the word index: looked at and made as a whole. */
const INDEX_PARTS = new Set([`table ${WORD_INDEX}`, ...INDEX_TRIGGERS.map((name) => `trigger ${name}`)])

/** Compares a file with what it says it is, by reading only. */
export async function findFlaws(connection: Connection, state: HermesState): Promise<Flaws> {
  const { shape, stated } = state
  const executed = executedIn(state)
  // What a later release has made, only that one knows.
  if (executed.some((name) => !(name in MIGRATIONS)))
    return { missing: [], ahead: [], stated: undefined, wordIndex: null, bigrams: null }
  const had = await reference(executed)
  const expected = had.shape
  const { shape: complete } = await reference(HERMES_NAMES)
  const missing = differences(shape, expected)
  const halfMade = shape.has(`column ${PROGRESS}.done`)
  const unfinishable = state.version === 0 ? null : halfMadeProblem(connection, shape, had)
  const problem = halfMade ? null : inspectWordIndex(connection, shape, state.executed.length === 0).problem
  const otherForm = missing.some((key) => INDEX_PARTS.has(key))
  return {
    missing: missing.filter((key) => !INDEX_PARTS.has(key)),
    ahead: [...complete.keys()].filter(
      (key) => shape.has(key) && !expected.has(key) && !INDEX_PARTS.has(key),
    ),
    stated: stated.length === 1 && stated[0] === state.version ? undefined : stated,
    wordIndex:
      state.version === 0
        ? null
        : (unfinishable ?? problem ?? (otherForm && !halfMade ? 'is not the one of its schema' : null)),
    bigrams:
      expected.has('table hs_bigrams') && shape.has('table hs_bigrams')
        ? unreadableBigrams(connection)
        : null,
  }
}

export function isFlawed({ missing, ahead, stated, wordIndex, bigrams }: Flaws): boolean {
  return (
    missing.length > 0 || ahead.length > 0 || stated !== undefined || wordIndex !== null || bigrams !== null
  )
}

/** What is wrong, part by part, as lists and errors name it. */
export function flawList({ missing, ahead, stated, wordIndex, bigrams }: Flaws): string[] {
  return [
    ...missing,
    ...(ahead.length > 0 ? [`a migration that stopped half-way (${listed(ahead)})`] : []),
    ...(stated ? [`schema_version (${JSON.stringify(stated)})`] : []),
    ...(wordIndex ? [`word index (it ${wordIndex})`] : []),
    ...(bigrams ? [`index of scripts without spaces (it ${bigrams})`] : []),
  ]
}

/** Sessions that share their title with a newer one: Hermes schema 4 takes it from them. */
export function duplicateTitles(connection: Connection): { id: string; title: string }[] {
  return select(connection, sql`select id, title from sessions where ${HAS_NEWER_NAMESAKE}`)
}

const HAS_NEWER_NAMESAKE = sql`title is not null and exists (
  select 1 from sessions as newer where newer.title = sessions.title
    and (newer.started_at, newer.id) > (sessions.started_at, sessions.id))`

/** How many sessions count other messages than they have. */
export function driftedCounters(connection: Connection): number {
  const [row] = select<{ sessions: number }>(
    connection,
    sql`select count(*) as sessions from sessions
        where coalesce(message_count, 0) <> (select count(*) from messages where session_id = sessions.id)`,
  )
  return row?.sessions ?? 0
}

/**
 * Brings a flawed file to schema 6, inside the open transaction, and its additions to what they were: tables, then
 * the version, columns, titles, indexes and triggers, the word index. What else is in the file stays.
 *
 * @param remake Whether to make an unsound word index anew; else it is dropped, for a migration that will.
 * @returns the sessions that lost a title.
 */
export async function mend(
  connection: Connection,
  state: HermesState,
  flaws: Flaws,
  remake: boolean,
): Promise<{ id: string; title: string }[]> {
  const additions = state.executed.filter((name) => ADDITION_NAMES.includes(name))
  const whole = await reference([...HERMES_NAMES, ...additions])
  const lacking = differences(state.shape, whole.shape).filter((key) => !INDEX_PARTS.has(key))
  const make = (key: string, statements: string) => {
    try {
      connection.exec(statements)
    } catch (error) {
      throw failure(`Mending '${connection.path}' failed at ${key}`, error, connection.path)
    }
  }

  const tables = new Set([...state.shape.keys()].map(tableOf))
  for (const [table, statement] of whole.tables) if (!tables.has(table)) make(`table ${table}`, statement)
  if (flaws.stated || state.version < SCHEMA_VERSION)
    make(
      'schema_version',
      `delete from schema_version; insert into schema_version values (${SCHEMA_VERSION})`,
    )
  for (const key of lacking.filter(isColumn)) if (tables.has(tableOf(key))) make(key, whole.ddl.get(key)!)

  const untitled = lacking.includes('index idx_sessions_title_unique') ? duplicateTitles(connection) : []
  if (untitled.length > 0)
    connection.execute(sql`update sessions set title = null where ${HAS_NEWER_NAMESAKE}`.compile(build))
  for (const key of lacking.filter((key) => !isColumn(key)))
    make(key, `drop ${key.replace(' ', ' if exists ')}; ${whole.ddl.get(key)}`)

  for (const name of additions.filter((name) => DERIVED.includes(name))) {
    const parts = await partsOf(name, whole)
    if (!parts.some((key) => lacking.includes(key))) continue
    for (const key of parts.filter((key) => !isColumn(key))) make(key, `drop ${key}`)
    for (const table of new Set(parts.map(tableOf))) if (table) make(`table ${table}`, `drop table ${table}`)
    // The migrator runs it again.
    connection.execute(sql`delete from kysely_migration where name = ${name}`.compile(build))
  }
  if (flaws.wordIndex !== null || state.version === 0)
    try {
      if (remake) remakeWordIndex(connection, whole, flaws.wordIndex === UNCHECKED)
      else dropIndex(connection, WORD_INDEX)
    } catch (error) {
      throw failure(`Mending '${connection.path}' failed at the word index`, error, connection.path)
    }
  const hasBigrams = whole.shape.has('table hs_bigrams')
  if (hasBigrams && (flaws.bigrams !== null || lacking.some((key) => key.includes('hs_bigrams'))))
    remakeBigrams(connection, whole)
  return untitled
}

/** The index of a large file that only Hermes has written is made anew unseen: see {@link isSound}. */
export const UNCHECKED = 'is too large to be checked'

/** Checks the word index of a file that is adopted, word by word. Only inside a transaction. */
export function checkWordIndex(connection: Connection, flaws: Flaws): Flaws {
  if (flaws.wordIndex !== null) return flaws
  if (isLarge(connection)) return { ...flaws, wordIndex: UNCHECKED }
  return isSound(connection, WORD_INDEX) ? flaws : { ...flaws, wordIndex: 'does not match the messages' }
}

/** The keys of what a migration made. */
async function partsOf(name: string, whole: Reference): Promise<string[]> {
  const names = [...HERMES_NAMES, ...ADDITION_NAMES]
  const before = await reference(names.slice(0, names.indexOf(name)))
  const after = await reference(names.slice(0, names.indexOf(name) + 1))
  return [...after.shape.keys()].filter((key) => !before.shape.has(key) && whole.shape.has(key))
}

/** The error for a step that failed; what SQLite says of the file, its lock or the disk stays what it is. */
export function failure(what: string, error: unknown, path: string): unknown {
  const known = toStoreError(error, path)
  if (known instanceof StateStoreError && !(known instanceof DatabaseError)) return known
  const reason = error instanceof Error ? error.message : String(error)
  return new MigrationFailedError(
    `${what}: ${reason}. The file is as it was before; report this, with the schema of the file.`,
    { cause: error },
  )
}
