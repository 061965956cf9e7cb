import type Database from 'better-sqlite3'
import type { CompiledQuery, QueryResult } from 'kysely'
import type { EventHandler } from '../events.ts'
import type { FixedQuery } from './fixed-query.ts'
import { SLOW_QUERY_MS } from './limits.ts'

type Statement = Database.Statement<unknown[], unknown>

const MAX_STATEMENTS = 500

/**
 * One SQLite connection: prepares each SQL text once, binds what may be bound, and knows nothing of who asks.
 * Every method runs to its end in the same tick.
 */
export class Connection {
  readonly #db: Database.Database
  readonly #events: EventHandler
  readonly #statements = new Map<string, Statement>()

  constructor(db: Database.Database, events: EventHandler) {
    this.#db = db
    this.#events = events
  }

  get path(): string {
    return this.#db.name
  }

  get readonly(): boolean {
    return this.#db.readonly
  }

  get inTransaction(): boolean {
    return this.#db.inTransaction
  }

  get<Args extends object, Row>(query: FixedQuery<Args, Row>, args: Args): Row | undefined {
    return this.#timed(query.sql, (statement) => statement.get(bindable(query.values(args)))) as
      | Row
      | undefined
  }

  all<Args extends object, Row>(query: FixedQuery<Args, Row>, args: Args): Row[] {
    return this.#timed(query.sql, (statement) => statement.all(bindable(query.values(args)))) as Row[]
  }

  run<Args extends object>(query: FixedQuery<Args, unknown>, args: Args): Database.RunResult {
    return this.#timed(query.sql, (statement) => statement.run(bindable(query.values(args))))
  }

  /** Runs a query that was compiled for this call. */
  execute<Row>({ sql, parameters }: CompiledQuery<Row>): QueryResult<Row> {
    return this.#timed(sql, (statement) => {
      const values = bindable([...parameters])
      if (statement.reader) return { rows: statement.all(values) as Row[] }
      const { changes, lastInsertRowid } = statement.run(values)
      return { rows: [], numAffectedRows: BigInt(changes), insertId: BigInt(lastInsertRowid) }
    })
  }

  /** Whether the statement leaves the file as it is. */
  onlyReads(sql: string): boolean {
    return this.#statement(sql).readonly
  }

  /** The value of a pragma, after setting it where the text has a `=`. */
  pragma(text: string): unknown {
    return this.#db.pragma(text, { simple: true })
  }

  /** SQL without parameters or result. */
  exec(sql: string): void {
    this.#db.exec(sql)
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
    try {
      const result = body()
      this.#statement('release item').run()
      return result
    } catch (error) {
      if (this.inTransaction) {
        this.#statement('rollback to item').run()
        this.#statement('release item').run()
      }
      throw error
    }
  }

  /** Moves what it can from the write-ahead log to the file without waiting. Returns the log's size in bytes. */
  checkpoint(): number {
    const [row] = this.#db.pragma('wal_checkpoint(passive)') as [{ log: number }]
    return row.log * Number(this.pragma('page_size'))
  }

  close(): void {
    this.#statements.clear()
    this.#db.close()
  }

  #timed<T>(sql: string, run: (statement: Statement) => T): T {
    const started = performance.now()
    const result = run(this.#statement(sql))
    const duration_ms = performance.now() - started
    if (duration_ms > SLOW_QUERY_MS)
      this.#events({
        level: 'info',
        type: 'slow-query',
        message: `A statement took ${Math.round(duration_ms)} ms.`,
        sql,
        duration_ms,
      })
    return result
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
