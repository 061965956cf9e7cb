import { sql } from 'kysely'
import type { Connection } from '../database/connection.ts'
import { integer } from '../database/filters.ts'
import { type Shape, select } from '../database/shape.ts'
import { isIndexFailure } from '../database/sqlite-errors.ts'
import type { StateStoreEvent } from '../events.ts'

/** What the word index of a file is, and whether searches may rely on it. */
export interface WordIndex {
  /**
   * `external`: it reads the text from `messages` (or a view of it) and keeps none; Hermes schema 1 to 9 and from
   * 23 on. `copy`: it keeps a text of its own; Hermes schema 10 to 22. `none`: there is no table `messages_fts`.
   */
  layout: 'external' | 'copy' | 'none' | 'unknown'
  /** Its columns. */
  columns: string[]
  /** Why it cannot be relied on, as the end of a sentence about it; null where it can. */
  problem: string | null
}

/** The word index of the file and of every Hermes version. */
export const WORD_INDEX = 'messages_fts'

/** The index that is made beside it, and how far that has come: see rebuild.ts. */
export const NEW_INDEX = 'hs_words'
export const PROGRESS = 'hs_words_progress'

/** What an index without a text of its own reads: Hermes's table and view, and the view of migration 010. */
const SOURCES = ['messages', `${WORD_INDEX}_src`, 'hs_message_text']

export const INDEX_TRIGGERS = ['insert', 'delete', 'update'].map((event) => `${WORD_INDEX}_${event}`)

/**
 * Looks at the word index by reading only.
 *
 * @param count Compare the number of rows with that of the messages: reads both to the end.
 */
export function inspectWordIndex(connection: Connection, shape: Shape, count: boolean): WordIndex {
  const definition = shape.get(`table ${WORD_INDEX}`)
  if (shape.has(`column ${PROGRESS}.done`))
    return { layout: definition ? layoutOf(definition) : 'none', columns: [], problem: 'is being made anew' }
  if (!definition) return { layout: 'none', columns: [], problem: 'is missing' }
  const layout = layoutOf(definition)
  const columns = argumentsOf(definition).filter((argument) => !argument.includes('='))
  const problem =
    layout === 'unknown'
      ? 'is of a kind that this release does not know'
      : (triggerProblem(shape, layout) ??
        statedProblem(connection, shape) ??
        actualProblem(connection, count))
  return { layout, columns, problem }
}

function argumentsOf(definition: string): string[] {
  return (definition.match(/fts5\((.*)\)$/)?.[1] ?? '').split(',')
}

function layoutOf(definition: string): WordIndex['layout'] {
  const source = argumentsOf(definition)
    .find((argument) => argument.startsWith('content='))
    ?.slice('content='.length)
    .replaceAll("'", '')
  if (source === undefined) return /using fts5\(/.test(definition) ? 'copy' : 'unknown'
  return source !== undefined && SOURCES.includes(source) ? 'external' : 'unknown'
}

/** Whether the triggers do what an index of this layout needs: see MIG-08 for a file in which they do not. */
function triggerProblem(shape: Shape, layout: 'external' | 'copy' | 'none'): string | undefined {
  const [insert, remove, update] = INDEX_TRIGGERS.map((name) => shape.get(`trigger ${name}`))
  if (!insert || !remove || !update) return 'lacks a trigger'
  const adds = `insert into ${WORD_INDEX}(rowid,`
  const removes =
    layout === 'external'
      ? `insert into ${WORD_INDEX}(${WORD_INDEX},rowid,`
      : `delete from ${WORD_INDEX} where rowid=old.id`
  const fits =
    insert.includes(adds) && remove.includes(removes) && update.includes(removes) && update.includes(adds)
  return fits ? undefined : 'has triggers that are not made for it'
}

/** What later Hermes versions note in the file about their index. */
function statedProblem(connection: Connection, shape: Shape): string | undefined {
  if (!shape.has('column state_meta.key')) return undefined
  const notes = new Map(
    select<{ key: string; value: unknown }>(connection, sql`select key, value from state_meta`).map(
      ({ key, value }) => [key, String(value)],
    ),
  )
  if ((notes.get('fts_stale') ?? '0') !== '0') return 'is marked as stale by Hermes'
  const upTo = notes.get('fts_rebuild_high_water')
  if (upTo !== undefined && Number(notes.get('fts_rebuild_progress') ?? -1) < Number(upTo))
    return 'is being made anew by Hermes'
  return undefined
}

/** The tables that every index has inside. */
const INSIDE = ['data', 'idx', 'docsize', 'config'].map((part) => `${WORD_INDEX}_${part}`)

function actualProblem(connection: Connection, count: boolean): string | null {
  const inside = select(
    connection,
    sql`select 1 from sqlite_schema where type = 'table' and name in (${sql.join(INSIDE)})`,
  )
  // FTS5 calls the whole file damaged where one of them is gone.
  if (inside.length < INSIDE.length) return 'lacks a part'
  try {
    select(connection, sql`select rowid from messages_fts where messages_fts match '""'`)
    if (count) {
      const [rows] = select<{ indexed: number; messages: number }>(
        connection,
        sql`select (select count(*) from messages_fts_docsize) as indexed, (select count(*) from messages) as messages`,
      )
      if (rows?.indexed !== rows?.messages) return 'does not have a row for each message'
    }
    const sound = findsSample(connection, 'desc') && findsSample(connection, 'asc')
    return sound ? null : 'does not find what the messages say'
  } catch (error) {
    if (!isIndexFailure(error)) throw error
    return `cannot be read (${error instanceof Error ? error.message : String(error)})`
  }
}

/** Messages that are looked at for one with a word. */
const SAMPLED = 50

/** Whether a word of the newest message, or of the oldest, is found: an index that was emptied looks sound else. */
function findsSample(connection: Connection, order: 'asc' | 'desc'): boolean {
  const sample = select<{ id: number; content: string }>(
    connection,
    sql`
      select id, content from (select id, content from messages order by id ${sql.raw(order)} limit ${SAMPLED})
      where typeof(content) = 'text' and content glob '[A-Za-z][A-Za-z]*' limit 1`,
  )[0]
  const word = sample?.content.match(/^[A-Za-z]+(?![^\s.,:;!?])/)?.[0]
  if (!sample || !word) return true
  const found = select(
    connection,
    sql`select 1 from messages_fts where messages_fts match ${`"${word}"`} and rowid = ${integer(sample.id)}`,
  )
  return found.length > 0
}

/** Says that searches go without the index. */
export function wordIndexUnused(path: string, reason: string): StateStoreEvent {
  return {
    level: 'info',
    type: 'word-index-unused',
    message: `Searches of '${path}' scan its messages: its word index ${reason}.`,
    path,
    reason,
  }
}
