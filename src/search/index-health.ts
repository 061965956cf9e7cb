import { sql } from 'kysely'
import type { Connection } from '../database/connection.ts'
import { readShape, type Shape, select } from '../database/shape.ts'
import { isIndexDamage, isIndexFailure } from '../database/sqlite-errors.ts'
import type { EventHandler } from '../events.ts'
import { INDEX_TRIGGERS, inspectWordIndex, WORD_INDEX, wordIndexUnused } from './word-index.ts'

export const BIGRAM_INDEX = 'hs_bigrams'
const BIGRAM_TRIGGERS = ['insert', 'delete', 'update'].map((event) => `${BIGRAM_INDEX}_${event}`)

/**
 * Which indexes of a file can be relied on. An index is derived from the messages: damage to it must neither lose
 * a write nor hide a message.
 */
export class IndexHealth {
  /** Whether searches may ask the word index. */
  words: boolean
  /** Whether the file has the index of scripts without spaces. */
  bigrams: boolean
  readonly #events: EventHandler
  /** Whether the indexes may be put aside: those of later Hermes versions are theirs. */
  readonly #own: boolean
  #schema: number | undefined

  constructor(connection: Connection, shape: Shape, words: boolean, own: boolean, events: EventHandler) {
    this.words = words
    this.bigrams = hasBigrams(shape)
    this.#own = own
    this.#events = events
    this.#schema = connection.schemaVersion
  }

  /** Looks again where somebody, in this process or another, has changed the schema. */
  refresh(connection: Connection): void {
    const schema = connection.schemaVersion
    if (schema === this.#schema) return
    this.#schema = schema
    const shape = readShape(connection)
    const { problem } = inspectWordIndex(connection, shape, false)
    if (this.words && problem !== null) this.#events(wordIndexUnused(connection.path, problem))
    this.words = problem === null
    this.bigrams = hasBigrams(shape)
  }

  /** Trusts the indexes again, once they have been made anew. */
  restore(connection: Connection): void {
    this.#schema = undefined
    this.refresh(connection)
  }

  /**
   * Merges some of the segments that many small writes leave behind: searches have fewer to read. Only inside a
   * transaction.
   */
  tidy(connection: Connection): void {
    if (this.#own && this.words) merge(connection, WORD_INDEX, MERGED)
    if (this.#own && this.bigrams) merge(connection, BIGRAM_INDEX, MERGED)
  }

  /** Stops asking the indexes, where the error of a search says that one of them is damaged. */
  mistrust(connection: Connection, error: unknown): boolean {
    if (!isIndexFailure(error)) return false
    // Another search may have found it out meanwhile.
    if (!this.words && !this.bigrams) return true
    this.words = false
    this.bigrams = false
    this.#events(wordIndexUnused(connection.path, `is damaged (${reasonOf(error)})`))
    return true
  }

  /**
   * Puts aside the index because of which a write failed, so that the write goes through when it is run again: its
   * triggers go, which the next opening notices, and makes it anew. Only inside a transaction.
   *
   * @returns whether it is worth running the write again.
   */
  putAside(connection: Connection, error: unknown): boolean {
    if (!this.#own || !isIndexDamage(error)) return false
    const reason = reasonOf(error)
    // As it is in the file: a transaction that put an index aside may have been rolled back.
    const there = new Set(
      select<{ name: string }>(connection, sql`select name from sqlite_schema where type = 'trigger'`).map(
        ({ name }) => name,
      ),
    )
    const parts = [
      { index: WORD_INDEX, triggers: INDEX_TRIGGERS, other: BIGRAM_INDEX },
      { index: BIGRAM_INDEX, triggers: BIGRAM_TRIGGERS, other: WORD_INDEX },
    ].filter(({ triggers, other }) => !reason.includes(other) && triggers.some((name) => there.has(name)))
    for (const { index, triggers } of parts) {
      for (const trigger of triggers) connection.exec(`drop trigger if exists ${trigger}`)
      if (index === WORD_INDEX) this.words = false
      else this.bigrams = false
      this.#events({
        level: 'warning',
        type: 'index-put-aside',
        message: `The index ${index} of '${connection.path}' is damaged (${reason}) and was put aside: nothing is lost, searches scan the messages, and the next opening that may write makes it anew.`,
        path: connection.path,
        index,
        reason,
      })
    }
    return parts.length > 0
  }
}

/** Pages that one merge may write: some 20 ms of the write lock. */
const MERGED = 200

/** Merges segments of an index, up to so many pages; a negative number begins to make one of all. */
export function merge(connection: Connection, index: string, pages: number): void {
  connection.exec(`insert into ${index}(${index}, rank) values ('merge', ${pages})`)
}

/** Why the index of scripts without spaces cannot be relied on, as the end of a sentence; null where it can. */
export function bigramProblem(connection: Connection, shape: Shape): string | null {
  return hasBigrams(shape) ? unreadableBigrams(connection) : 'lacks a part'
}

export function unreadableBigrams(connection: Connection): string | null {
  try {
    select(connection, sql`select rowid from hs_bigrams where hs_bigrams match '""'`)
    return null
  } catch (error) {
    if (!isIndexFailure(error)) throw error
    return `cannot be read (${reasonOf(error)})`
  }
}

function hasBigrams(shape: Shape): boolean {
  return (
    shape.has('column hs_bigrams_state.watermark') &&
    BIGRAM_TRIGGERS.every((name) => shape.has(`trigger ${name}`))
  )
}

function reasonOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}
