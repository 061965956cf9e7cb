import { setTimeout as delay, setImmediate as nextTick } from 'node:timers/promises'
import { sql } from 'kysely'
import type { Connection } from '../database/connection.ts'
import type { Reference } from '../database/reference.ts'
import { normalised, readShape, type Shape, select } from '../database/shape.ts'
import { isIndexFailure } from '../database/sqlite-errors.ts'
import { patiently } from '../database/waiting.ts'
import { catchUp } from './bigram-index.ts'
import { INDEX_TRIGGERS, NEW_INDEX, PROGRESS, WORD_INDEX } from './word-index.ts'

/** Up to so many messages the index is made anew in one transaction. */
const AT_ONCE = 20_000

/** Messages that one transaction adds: about 50 ms of the write lock. */
const CHUNK = 2_000

/** Messages added before the event loop gets its turn. */
const STEP = 250

/** The tables that FTS5 keeps an index in, by the ends of their names. */
const INSIDE = ['data', 'idx', 'content', 'docsize', 'config']

const BIGRAMS = 'hs_bigrams'

/**
 * Checks an index against the messages, word by word. Only inside a transaction. It takes as long as making the
 * index anew, and all that time nobody else can write: not for large files.
 */
export function isSound(connection: Connection, index: string): boolean {
  try {
    connection.exec(`insert into "${index}"("${index}", rank) values ('integrity-check', 1)`)
    return true
  } catch (error) {
    if (!isIndexFailure(error)) throw error
    return false
  }
}

/**
 * Makes the word index anew, inside the open transaction. For a large file it only begins to: the new index grows
 * beside the old one, chunk by chunk, in {@link finishRebuild}, and whoever writes meanwhile keeps it up.
 *
 * @param usable Whether the old index can still be read and written: it then serves until the new one is there.
 */
export function remakeWordIndex(connection: Connection, { ddl }: Reference, usable: boolean): void {
  const large = isLarge(connection)
  if (!large || !usable) dropIndex(connection, WORD_INDEX)
  dropIndex(connection, NEW_INDEX)
  connection.exec(`drop table if exists ${PROGRESS}`)
  if (!large) {
    connection.exec(part(ddl, `table ${WORD_INDEX}`))
    connection.exec(`insert into ${WORD_INDEX}(${WORD_INDEX}) values ('rebuild')`)
    for (const trigger of INDEX_TRIGGERS) connection.exec(part(ddl, `trigger ${trigger}`))
    return
  }
  connection.exec(renamed(part(ddl, `table ${WORD_INDEX}`)))
  connection.exec(`
    create table ${PROGRESS} (done integer not null);
    insert into ${PROGRESS} select coalesce(min(id), 1) - 1 from messages`)
  for (const trigger of INDEX_TRIGGERS) connection.exec(gated(renamed(part(ddl, `trigger ${trigger}`))))
}

interface ChunkOptions {
  busyTimeout: number
  signal?: AbortSignal
}

/** Work for one transaction, in steps: the event loop gets its turn at every `yield`. Returns whether it was the last. */
type Chunk = Generator<void, boolean>

/**
 * Why a half-made index cannot be finished, as the end of a sentence about it; null where it can, or where there is
 * none.
 */
export function halfMadeProblem(connection: Connection, shape: Shape, { ddl }: Reference): string | null {
  const left = [...shape.keys()].filter((key) => key.split(/[ .]/)[1]?.startsWith(NEW_INDEX))
  if (left.length === 0) return null
  const whole =
    shape.get(`table ${NEW_INDEX}`) === normalised(renamed(part(ddl, `table ${WORD_INDEX}`))) &&
    INDEX_TRIGGERS.every(
      (trigger) =>
        shape.get(`trigger ${renamed(trigger)}`) ===
        `messages: ${normalised(gated(renamed(part(ddl, `trigger ${trigger}`))))}`,
    ) &&
    shape.has(`column ${PROGRESS}.done`) &&
    select(connection, sql`select 1 from ${sql.table(PROGRESS)} where typeof(done) = 'integer'`).length === 1
  return whole && isReadable(connection) ? null : 'was half made, and cannot be finished'
}

function isReadable(connection: Connection): boolean {
  try {
    select(connection, sql`select rowid from hs_words where hs_words match '""'`)
    return true
  } catch (error) {
    if (!isIndexFailure(error)) throw error
    return false
  }
}

/**
 * Finishes what {@link remakeWordIndex} began, here or in a process that died. Several processes may do it at once.
 */
export async function finishRebuild(
  connection: Connection,
  reference: Reference,
  options: ChunkOptions,
): Promise<void> {
  await inChunks(connection, options, () => addToWordIndex(connection, reference))
}

/** Fills a new index of scripts without spaces. What is left when a process dies, the next search adds. */
export async function fillBigrams(connection: Connection, options: ChunkOptions): Promise<void> {
  await inChunks(connection, options, () => addToBigrams(connection))
}

/** Work in many transactions: others write in between. */
async function inChunks(
  connection: Connection,
  { busyTimeout, signal }: ChunkOptions,
  chunk: () => Chunk,
): Promise<void> {
  for (let finished = false; !finished; ) {
    await patiently(() => connection.begin(), busyTimeout, signal)
    const started = performance.now()
    try {
      const steps = chunk()
      let step = steps.next()
      for (; !step.done; step = steps.next()) await nextTick()
      finished = step.value
      await patiently(() => connection.commit(), busyTimeout, signal)
    } catch (error) {
      connection.rollback()
      throw error
    }
    // Others look for the lock only now and then: the time to find it free.
    if (!finished) await delay((performance.now() - started) / 2, undefined, { signal })
  }
}

/** Adds the next messages to the index of scripts without spaces. */
export function* addToBigrams(connection: Connection): Chunk {
  for (let added = 0; added < CHUNK; added += STEP) {
    if (catchUp(connection, STEP)) return true
    yield
  }
  return false
}

/** Adds the next messages to the new word index, or puts it in place when there are none. */
export function* addToWordIndex(connection: Connection, reference: Reference): Chunk {
  // Another process may have finished it.
  if (!readShape(connection).has(`column ${PROGRESS}.done`)) return true
  const { columns, source } = describe(part(reference.ddl, `table ${WORD_INDEX}`))
  for (let added = 0; added < CHUNK; added += STEP) {
    if (added > 0) yield
    const next = `select id from ${source} where id > (select done from ${PROGRESS}) order by id limit ${STEP}`
    const [row] = select<{ last: number | null }>(
      connection,
      sql`select max(id) as last from (${sql.raw(next)})`,
    )
    if (row?.last == null) {
      putInPlace(connection, reference)
      return true
    }
    connection.exec(`
      insert into ${NEW_INDEX}(rowid, ${columns}) select id, ${columns} from ${source} where id in (${next});
      update ${PROGRESS} set done = ${row.last}`)
  }
  return false
}

function putInPlace(connection: Connection, { ddl }: Reference): void {
  for (const trigger of INDEX_TRIGGERS) connection.exec(`drop trigger if exists ${renamed(trigger)}`)
  connection.exec(`drop table ${PROGRESS}`)
  dropIndex(connection, WORD_INDEX)
  // Without it, renaming a table fails where anything else in the schema is broken.
  connection.pragma('legacy_alter_table = on')
  connection.exec(`alter table ${NEW_INDEX} rename to ${WORD_INDEX}`)
  connection.pragma('legacy_alter_table = off')
  for (const trigger of INDEX_TRIGGERS) connection.exec(part(ddl, `trigger ${trigger}`))
}

/** Makes the index of scripts without spaces anew, empty. Only inside a transaction. */
export function remakeBigrams(connection: Connection, { ddl, tables }: Reference): void {
  dropIndex(connection, BIGRAMS)
  connection.exec(part(ddl, `table ${BIGRAMS}`))
  for (const table of [`${BIGRAMS}_state`, `${BIGRAMS}_pending`]) {
    connection.exec(`drop table if exists ${table}`)
    connection.exec(part(tables, table))
  }
  connection.exec(`insert into ${BIGRAMS}_state (id, watermark) values (1, 0)`)
  for (const event of ['insert', 'delete', 'update'])
    connection.exec(part(ddl, `trigger ${BIGRAMS}_${event}`))
}

/** Drops an index with its triggers, also one that SQLite cannot open. */
export function dropIndex(connection: Connection, index: string): void {
  for (const event of ['insert', 'delete', 'update'])
    connection.exec(`drop trigger if exists ${index}_${event}`)
  try {
    connection.exec(`drop table if exists ${index}`)
  } catch (error) {
    if (!isIndexFailure(error)) throw error
    connection.forgetTable(index)
  }
  for (const inside of INSIDE) connection.exec(`drop table if exists ${index}_${inside}`)
}

/** Whether there are more messages than one transaction should index. */
export function isLarge(connection: Connection): boolean {
  const [row] = select(connection, sql`select id from messages limit 1 offset ${AT_ONCE}`)
  return row !== undefined
}

function part(ddl: ReadonlyMap<string, string>, key: string): string {
  const statement = ddl.get(key)
  if (statement === undefined) throw new Error(`No migration makes the ${key}.`)
  return statement
}

function renamed(statement: string): string {
  return statement.replaceAll(WORD_INDEX, NEW_INDEX)
}

/** The trigger for messages that the new index has; the others are added by their chunk, as they are then. */
function gated(trigger: string): string {
  const [, head, body] = trigger.match(/^(.*?)\sbegin\s(.*)\send\s*$/is) ?? []
  if (head === undefined || body === undefined) throw new Error(`Not a trigger: ${trigger}`)
  const statements = body.split(';').filter((statement) => statement.trim() !== '')
  const gatedStatements = statements.map((statement) => {
    const row = /'delete'/i.test(statement) ? 'old' : 'new'
    const selecting = statement.replace(/\svalues\s*\((.*)\)\s*$/is, ' select $1')
    return `${selecting} where ${row}.id <= (select done from ${PROGRESS});`
  })
  return `${head} begin ${gatedStatements.join(' ')} end`
}

/** The columns of an index, and the table or view that it reads. */
function describe(statement: string): { columns: string; source: string } {
  const list =
    statement
      .match(/fts5\((.*)\)\s*$/is)?.[1]
      ?.split(',')
      .map((argument) => argument.trim()) ?? []
  const source = list.find((argument) => /^content\s*=/.test(argument))?.replace(/^content\s*=\s*/, '')
  if (source === undefined) throw new Error(`Not an index over a table: ${statement}`)
  return { columns: list.filter((argument) => !argument.includes('=')).join(', '), source }
}
