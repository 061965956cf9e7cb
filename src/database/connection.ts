import Database from 'better-sqlite3'
import type { CompiledQuery, QueryResult } from 'kysely'
import type { EventHandler } from '../events.ts'
import { type FileIdentity, identityOf } from './file-identity.ts'
import type { FixedQuery } from './fixed-query.ts'
import { SLOW_QUERY_MS } from './limits.ts'

/** What is left in the write-ahead log after a checkpoint. */
export interface LogState {
  /** Whether somebody was in the way: a reader of an older state, or a writer. */
  busy: boolean
  /** The size of the log, and how much of it is in the file already, in bytes of pages. */
  log: number
  checkpointed: number
}

/** What a statement without rows did. */
export interface RunResult {
  changes: number
  lastInsertRowid: number | bigint
}

type Statement = Database.Statement<unknown[], unknown>

/**
 * The statement of a fixed query. It returns arrays: making the objects here, with the keys in the same order
 * every time, takes a quarter less time than having better-sqlite3 set them one by one. Fixed queries name
 * their columns, so that a schema change cannot shift them.
 */
interface Prepared {
  statement: Database.Statement<unknown[], unknown[]>
  columns: string[]
}

const MAX_STATEMENTS = 500

/** Pages that one step of copying takes: some 5 ms. */
const COPIED_AT_ONCE = 1_000

/**
 * One SQLite connection: prepares each SQL text once, binds what may be bound, and knows nothing of who asks.
 * Every method runs to its end in the same tick.
 */
export class Connection {
  #db: Database.Database
  readonly #open: (() => Database.Database) | undefined
  readonly #setUps: ((connection: Connection) => void)[] = []
  readonly #events: EventHandler
  /** Statements of queries that were compiled for a call, by SQL text; the oldest go first. */
  readonly #statements = new Map<string, Statement>()
  readonly #prepared = new Map<object, Prepared>()
  readonly readonly: boolean
  /** The file that was opened, whatever is at its path now; null in memory. */
  readonly file: FileIdentity | null
  /** Why it is read-only, where it is. */
  readonlyBecause = 'it was opened with readonly: true, so open it without that to write.'

  /**
   * Ids of the messages that this connection stored since all of the log was last moved to the file: what is lost
   * with the log.
   */
  readonly stored: number[] = []

  /** @internal The types of better-sqlite3 are not ours to publish: users need not have them. */
  constructor(db: Database.Database, events: EventHandler, open?: () => Database.Database) {
    this.#db = db
    this.#open = open
    this.readonly = db.readonly
    this.file = db.memory ? null : identityOf(db.name)
    this.#events = events
  }

  get path(): string {
    return this.#db.name
  }

  get isOpen(): boolean {
    return this.#db.open
  }

  get inTransaction(): boolean {
    return this.#db.inTransaction
  }

  get<Args extends object, Row>(query: FixedQuery<Args, Row>, args: Args): Row | undefined {
    const { statement, columns } = this.#fixed(query)
    const values = bindable(query.values(args))
    const started = performance.now()
    const cells = statement.get(values)
    this.#reportSlow(query.sql, started)
    return cells === undefined ? undefined : (toRow(columns, cells) as Row)
  }

  all<Args extends object, Row>(query: FixedQuery<Args, Row>, args: Args): Row[] {
    const { statement, columns } = this.#fixed(query)
    const values = bindable(query.values(args))
    const started = performance.now()
    const rows = statement.all(values)
    this.#reportSlow(query.sql, started)
    return rows.map((cells) => toRow(columns, cells)) as Row[]
  }

  run<Args extends object>(query: FixedQuery<Args, unknown>, args: Args): RunResult {
    const { statement } = this.#fixed(query)
    const values = bindable(query.values(args))
    const started = performance.now()
    const result = statement.run(values)
    this.#reportSlow(query.sql, started)
    return result
  }

  /** Runs a query that was compiled for this call. */
  execute<Row>({ sql, parameters }: CompiledQuery<Row>): QueryResult<Row> {
    const statement = this.#statement(sql)
    const values = bindable([...parameters])
    const started = performance.now()
    const rows = statement.reader ? (statement.all(values) as Row[]) : []
    const run = statement.reader ? undefined : statement.run(values)
    this.#reportSlow(sql, started)
    if (!run) return { rows }
    return { rows, numAffectedRows: BigInt(run.changes), insertId: BigInt(run.lastInsertRowid) }
  }

  /** Whether the statement leaves the file as it is. */
  onlyReads(sql: string): boolean {
    return this.#statement(sql).readonly
  }

  /** How many rows this connection has changed so far, those inside FTS5's tables included. */
  get totalChanges(): number {
    return Number(this.#db.prepare('select total_changes()').pluck().get())
  }

  /** The value of a pragma, after setting it where the text has a `=`. */
  pragma(text: string): unknown {
    return this.#db.pragma(text, { simple: true })
  }

  /** SQL without parameters or result. */
  exec(sql: string): void {
    this.#db.exec(sql)
  }

  /** Takes a virtual table off the schema that SQLite cannot open, and so cannot drop. What is inside it stays. */
  forgetTable(name: string): void {
    this.#db.unsafeMode(true)
    try {
      this.#db.pragma('writable_schema = on')
      this.#db.prepare("delete from sqlite_schema where type = 'table' and name = ?").run(name)
      this.#db.pragma('writable_schema = reset')
    } finally {
      this.#db.unsafeMode(false)
    }
  }

  /** Gives the connection a function for its queries: the same result for the same values. */
  define(name: string, fn: (...values: unknown[]) => unknown): void {
    this.#db.function(name, { deterministic: true }, fn)
  }

  begin(): void {
    this.#statement('begin immediate').run()
  }

  commit(): void {
    this.#statement('commit').run()
  }

  /** Rolls back if SQLite has not done so itself: its errors end a transaction or leave it open. */
  rollback(): void {
    if (this.inTransaction) this.#statement('rollback').run()
  }

  /** Runs `body` so that its failure undoes its own writes and no others. Only inside a transaction. */
  savepoint<T>(body: () => T): T {
    this.#statement('savepoint item').run()
    let result: T
    try {
      result = body()
    } catch (error) {
      if (this.inTransaction) {
        this.#statement('rollback to item').run()
        this.#statement('release item').run()
      }
      throw error
    }
    try {
      this.#statement('release item').run()
    } catch (error) {
      // It is gone, and its writes can no longer be told from the others.
      this.rollback()
      throw error
    }
    return result
  }

  /**
   * Moves what it can from the write-ahead log to the file: without waiting, or so that the log begins anew with the
   * next write or is empty, which both need that nobody reads an older state. Only outside a transaction.
   */
  checkpoint(mode: 'passive' | 'restart' | 'truncate' = 'passive'): LogState {
    const { busy, log, checkpointed } = this.#statement(`pragma wal_checkpoint(${mode})`).get() as {
      busy: number
      log: number
      checkpointed: number
    }
    if (log === checkpointed) this.stored.length = 0
    // -1 where there is no log.
    const bytes = (pages: number) => Math.max(pages, 0) * this.pageSize
    return { busy: busy !== 0, log: bytes(log), checkpointed: bytes(checkpointed) }
  }

  get sqliteVersion(): string {
    return String(this.#db.prepare('select sqlite_version()').pluck().get())
  }

  get pageSize(): number {
    return (this.#statement('pragma page_size').get() as { page_size: number }).page_size
  }

  /**
   * Copies the database into another file, some pages in a tick. Inside a transaction it copies what that sees;
   * outside of one it begins again whenever another connection writes.
   *
   * @param target A file that is there and empty.
   * @param onProgress Called after each step; what it throws ends the copying.
   */
  async copyTo(
    target: string,
    onProgress: (progress: { remaining: number; total: number }) => void,
  ): Promise<void> {
    await this.#db.backup(target, {
      progress: ({ remainingPages, totalPages }) => {
        onProgress({ remaining: remainingPages, total: totalPages })
        return COPIED_AT_ONCE
      },
    })
  }

  /** The whole database as the bytes of a file: for one in memory. */
  image(): Buffer {
    return this.#db.serialize()
  }

  /** Has `run` set the connection up, now and whenever it is opened again. */
  setUp(run: (connection: Connection) => void): void {
    this.#setUps.push(run)
    run(this)
  }

  /**
   * Opens the file again, for its write-ahead log is gone. The last connection to close would move what is in the lost
   * log to the file, over what others have written there since: a second one that is open meanwhile keeps it from
   * that, and cannot do it either, being read-only.
   */
  reopen(): void {
    if (!this.#open) throw new Error(`'${this.path}' cannot be opened again.`)
    const second = new Database(this.path, { readonly: true, timeout: 0 })
    try {
      second.prepare('select 1 from sqlite_schema').get()
    } catch {
      // The index of the lost log does not fit the new one. Its lock on the file is what matters.
    }
    this.close()
    second.close()
    this.#db = this.#open()
    for (const run of this.#setUps) run(this)
  }

  /**
   * Grows with every change of the schema, whoever makes it. The statement is kept: one for each call would wait for
   * the garbage collector with SQLite's fast memory, without which ranking takes 1.05 times as long.
   */
  get schemaVersion(): number {
    return (this.#statement('pragma schema_version').get() as { schema_version: number }).schema_version
  }

  /** Differs from what it was where another connection has committed; this one's own commits leave it as it is. */
  get dataVersion(): number {
    return (this.#statement('pragma data_version').get() as { data_version: number }).data_version
  }

  close(): void {
    this.#statements.clear()
    this.#prepared.clear()
    this.#db.close()
  }

  #reportSlow(sql: string, started: number): void {
    const duration_ms = performance.now() - started
    if (duration_ms > SLOW_QUERY_MS)
      this.#events({
        level: 'info',
        type: 'slow-query',
        message: `A statement took ${Math.round(duration_ms)} ms.`,
        sql,
        duration_ms,
      })
  }

  #fixed<Args extends object>(query: FixedQuery<Args, unknown>): Prepared {
    let prepared = this.#prepared.get(query)
    if (!prepared) {
      const statement = this.#db.prepare<unknown[], unknown[]>(query.sql)
      if (statement.reader) statement.raw()
      prepared = { statement, columns: statement.reader ? statement.columns().map(({ name }) => name) : [] }
      this.#prepared.set(query, prepared)
    }
    return prepared
  }

  #statement(sql: string): Statement {
    let statement = this.#statements.get(sql)
    if (!statement) {
      statement = this.#db.prepare<unknown[], unknown>(sql)
      if (this.#statements.size >= MAX_STATEMENTS) {
        const [oldest] = this.#statements.keys()
        if (oldest !== undefined) this.#statements.delete(oldest)
      }
      this.#statements.set(sql, statement)
    }
    return statement
  }
}

function toRow(columns: string[], cells: unknown[]): Record<string, unknown> {
  const row: Record<string, unknown> = {}
  for (let index = 0; index < columns.length; index++) row[columns[index]!] = cells[index]
  return row
}

/**
 * Makes values safe to bind, in place. better-sqlite3 writes lone surrogates as bytes no other reader can
 * decode, and turns `undefined` and NaN into NULL without a word.
 */
function bindable(values: unknown[]): unknown[] {
  for (let index = 0; index < values.length; index++) {
    const value = values[index]
    if (typeof value === 'string') {
      if (!value.isWellFormed()) values[index] = value.toWellFormed()
    } else if (value === undefined || Number.isNaN(value))
      throw new TypeError(`A query was given ${value} as a value: use null where a value is missing.`)
  }
  return values
}
