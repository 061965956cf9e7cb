import { CompiledQuery, type DatabaseConnection, type Driver, type QueryResult, sql } from 'kysely'
import { TransactionMisuseError } from '../errors.ts'
import { build } from './fixed-query.ts'
import { TRANSACTION_LIMIT_MS } from './limits.ts'
import type { OpenTransaction } from './open-transaction.ts'
import type { StoreHandle } from './store-handle.ts'

/** What `store.db` runs on: Kysely's queries take their place in the store's own line. */
export class QueueDriver implements Driver {
  readonly #handle: StoreHandle

  constructor(handle: StoreHandle) {
    this.#handle = handle
  }

  async init(): Promise<void> {}

  async acquireConnection(): Promise<QueueConnection> {
    return new QueueConnection(this.#handle)
  }

  // Not async, and nothing is awaited before: see WriteQueue.enter.
  beginTransaction(connection: QueueConnection): Promise<void> {
    return this.#handle.enter(TRANSACTION_LIMIT_MS).then((transaction) => {
      connection.transaction = transaction
    })
  }

  async commitTransaction(connection: QueueConnection): Promise<void> {
    await this.#handle.commit(connection.inside())
  }

  async rollbackTransaction(connection: QueueConnection): Promise<void> {
    connection.inside().rollback()
  }

  async savepoint(connection: QueueConnection, name: string): Promise<void> {
    await connection.executeQuery(savepointQuery('savepoint', name))
  }

  async rollbackToSavepoint(connection: QueueConnection, name: string): Promise<void> {
    await connection.executeQuery(savepointQuery('rollback to', name))
  }

  async releaseSavepoint(connection: QueueConnection, name: string): Promise<void> {
    await connection.executeQuery(savepointQuery('release', name))
  }

  async releaseConnection(): Promise<void> {}

  async destroy(): Promise<void> {
    await this.#handle.close()
  }
}

function savepointQuery(command: string, name: string): CompiledQuery {
  return sql`${sql.raw(command)} ${sql.ref(name)}`.compile(build)
}

class QueueConnection implements DatabaseConnection {
  readonly #handle: StoreHandle
  transaction: OpenTransaction | undefined

  constructor(handle: StoreHandle) {
    this.#handle = handle
  }

  inside(): OpenTransaction {
    if (!this.transaction) throw new TransactionMisuseError('No transaction was begun on this connection.')
    return this.transaction
  }

  async executeQuery<Row>(query: CompiledQuery<unknown>): Promise<QueryResult<Row>> {
    const compiled: CompiledQuery<Row> = CompiledQuery.raw(query.sql, [...query.parameters])
    if (this.transaction) return this.transaction.read((connection) => connection.execute(compiled))
    const onlyReads = await this.#handle.read((connection) => connection.onlyReads(compiled.sql))
    if (!onlyReads) return this.#handle.write((connection) => connection.execute(compiled))
    return this.#handle.read((connection) => {
      const result = connection.execute(compiled)
      if (!connection.inTransaction) return result
      connection.rollback()
      throw new TransactionMisuseError(
        `'${compiled.sql}' would leave a transaction open that nobody else knows of: use store.transaction().`,
      )
    })
  }

  /** All rows are read at once: a cursor that stays open would block every write on the connection. */
  async *streamQuery<Row>(query: CompiledQuery, chunkSize: number): AsyncIterableIterator<QueryResult<Row>> {
    const { rows } = await this.executeQuery<Row>(query)
    for (let start = 0; start < rows.length; start += chunkSize)
      yield { rows: rows.slice(start, start + chunkSize) }
  }
}
