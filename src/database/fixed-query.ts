import { type CompiledQuery, DummyDriver, Kysely, type RawBuilder, sql } from 'kysely'
import { stateDialect } from './dialect.ts'
import type { ReadDatabase } from './schema.ts'

/** Builds queries and runs none: what every fixed query is written with. */
export const build = new Kysely<ReadDatabase>({ dialect: stateDialect(new DummyDriver()) })

class Slot {
  constructor(readonly name: string) {}
}

/** Names an argument of a fixed query: stands where a value would. */
export type Param<Args> = <Name extends keyof Args & string>(name: Name) => RawBuilder<Args[Name]>

/**
 * A query that is built and compiled once, when its module loads. A call only fills in its arguments: that
 * is what keeps hot paths as fast as better-sqlite3 by hand, where building per call costs 1.3 times.
 */
export class FixedQuery<Args extends object, Row> {
  readonly sql: string
  readonly #slots: readonly (keyof Args | undefined)[]
  readonly #constants: readonly unknown[]

  constructor(query: CompiledQuery<Row>) {
    this.sql = query.sql
    this.#slots = query.parameters.map((value) =>
      value instanceof Slot ? (value.name as keyof Args) : undefined,
    )
    this.#constants = query.parameters
  }

  /** The values of one call, in the order of the SQL text. */
  values(args: Args): unknown[] {
    const values = new Array<unknown>(this.#slots.length)
    for (let index = 0; index < values.length; index++) {
      const name = this.#slots[index]
      values[index] = name === undefined ? this.#constants[index] : args[name]
    }
    return values
  }
}

/**
 * @example
 * const titleOf = fixedQuery((param: Param<{ id: string }>) =>
 *   build.selectFrom('sessions').select('title').where('id', '=', param('id')))
 */
export function fixedQuery<Args extends object, Row>(
  define: (param: Param<Args>) => { compile(): CompiledQuery<Row> },
): FixedQuery<Args, Row> {
  return new FixedQuery(define((name) => sql`${new Slot(name)}`).compile())
}

/** A fixed query that takes the arguments of several rows, and that many at every call. */
class FixedRows<Args extends object, Row> extends FixedQuery<readonly Args[], Row> {
  readonly #names: readonly (keyof Args)[]

  constructor(query: CompiledQuery<Row>, names: readonly (keyof Args)[]) {
    super(query)
    this.#names = names
  }

  override values(rows: readonly Args[]): unknown[] {
    const values: unknown[] = []
    for (const args of rows) for (const name of this.#names) values.push(args[name])
    return values
  }
}

/**
 * An INSERT of several rows. Inside a transaction FTS5 writes out its index at every statement that fires a
 * trigger, so one statement for 25 messages takes two thirds of the time of 25 statements.
 *
 * @param row the values of one row: arguments, all of them.
 * @returns the query for so many rows, compiled when it is first asked for.
 */
export function fixedRows<Args extends object, Row, Values extends object>(
  row: (param: Param<Args>) => Values,
  define: (rows: Values[]) => { compile(): CompiledQuery<Row> },
): (rows: number) => FixedQuery<readonly Args[], Row> {
  const queries: FixedQuery<readonly Args[], Row>[] = []
  const names: (keyof Args)[] = []
  const values = row((name) => {
    names.push(name)
    return sql`${new Slot(name)}`
  })
  return (rows) => (queries[rows] ??= new FixedRows(define(new Array(rows).fill(values)).compile(), names))
}
