import { Kysely, type Transaction } from 'kysely'
import { stateDialect } from './database/dialect.ts'
import type { Executor } from './database/executor.ts'
import { TRANSACTION_LIMIT_MS } from './database/limits.ts'
import { QueueDriver } from './database/queue-driver.ts'
import type { RepositoryContext } from './database/repository.ts'
import type { StateDatabase } from './database/schema.ts'
import type { StoreHandle } from './database/store-handle.ts'
import { MaintenanceRepository } from './maintenance/maintenance.ts'
import type { Message } from './messages/message-types.ts'
import { MessageRepository } from './messages/messages.ts'
import { type WatchOptions, watchMessages } from './messages/watch.ts'
import type { Reader } from './reader/reader.ts'
import { SearchRepository } from './search/search.ts'
import { LineageRepository } from './sessions/lineage.ts'
import { SessionRepository } from './sessions/sessions.ts'
import { TitleRepository } from './sessions/titles.ts'
import type { OpenOther } from './transfer/import-file.ts'
import { TransferRepository } from './transfer/transfer.ts'
import { UsageRepository } from './usage/usage.ts'

/** How a file was found and opened. */
export interface StoreInfo {
  /** Absolute, or `:memory:`. */
  path: string
  readonly: boolean
  /** Why it is read-only: asked for, or the file of a later Hermes version; null where it is not. */
  readonlyBecause: string | null
  /** Hermes's own number, as the file has it; null where it has none that can be read. */
  schemaVersion: number | null
  /** `wal` in general; `memory` for `:memory:`. */
  journalMode: string
  /** Whether the file has what this package adds to the Hermes schema. */
  additions: boolean
  /** The migrations that opening ran, in order. */
  migrations: string[]
  /** What the file lacked of what it said it was, or had in another form, and opening mended. */
  mended: string[]
  /** Why searches scan the messages instead of asking the word index; null where they ask it. */
  wordIndexProblem: string | null
}

/** What a transaction's callback works with: all of it runs inside the transaction. */
export interface StateTransaction {
  readonly sessions: SessionRepository
  readonly titles: TitleRepository
  readonly lineage: LineageRepository
  readonly messages: MessageRepository
  readonly usage: UsageRepository
  readonly search: SearchRepository
  /** Any other query, typed. */
  readonly db: Transaction<StateDatabase>
}

/** An open state file. Made by {@link openStateStore}. */
export class StateStore {
  /** How the file was found and opened. */
  readonly info: Readonly<StoreInfo>
  readonly sessions: SessionRepository
  readonly titles: TitleRepository
  readonly lineage: LineageRepository
  readonly messages: MessageRepository
  readonly usage: UsageRepository
  readonly search: SearchRepository
  readonly maintenance: MaintenanceRepository
  readonly transfer: TransferRepository
  /**
   * Kysely on the same file, for any other query. Its statements take their place in the store's own line;
   * `stream()` reads all rows before it yields the first.
   */
  readonly db: Kysely<StateDatabase>

  readonly #handle: StoreHandle
  readonly #context: Omit<RepositoryContext, 'executor'>

  /** @internal */
  constructor(
    handle: StoreHandle,
    info: StoreInfo,
    context: Omit<RepositoryContext, 'executor'>,
    reader: Reader | null,
    openOther: OpenOther,
  ) {
    this.info = info
    this.#handle = handle
    this.#context = context
    this.db = new Kysely({ dialect: stateDialect(new QueueDriver(this.#handle)) })
    const { sessions, titles, lineage, messages, usage } = this.#repositories(this.#handle)
    this.sessions = sessions
    this.titles = titles
    this.lineage = lineage
    this.messages = messages
    this.usage = usage
    const own = { ...context, executor: this.#handle }
    // A transaction's own writes are not to be seen from another thread.
    this.search = new SearchRepository(own, reader)
    this.maintenance = new MaintenanceRepository(own)
    this.transfer = new TransferRepository(own, openOther)
  }

  /**
   * Runs `fn` in one transaction (BEGIN IMMEDIATE): all of its writes are kept, or none when it throws. `fn`
   * is never run twice. Inside it use what it is given; calls on the store itself are refused there, and calls
   * from elsewhere wait. After 5 seconds the transaction is rolled back.
   *
   * @throws StateStoreBusyError before `fn` ran, TransactionTimeoutError, or what `fn` throws.
   * @example
   * await store.transaction(async (tx) => {
   *   await tx.sessions.end(id, 'compression')
   *   await tx.sessions.create({ source: 'cli', parent_session_id: id })
   * })
   */
  async transaction<T>(fn: (tx: StateTransaction) => Promise<T>): Promise<T> {
    return this.#handle.reserve(TRANSACTION_LIMIT_MS, () =>
      this.db.transaction().execute(async (db) => {
        const { transaction } = this.#handle
        // Kysely calls this right after its driver began the transaction.
        if (!transaction) throw new Error('No transaction is open.')
        return Promise.race([fn({ ...this.#repositories(transaction), db }), transaction.expired])
      }),
    )
  }

  /**
   * The messages that are stored from now on, by any process, in order of id; it waits for more until it is left.
   * Other processes are looked for every 25 ms, and only while the caller waits for the next message, which keeps
   * this process running. Pages are read as they are needed, so a slow caller holds up nobody.
   *
   * @param options.after The last message that the caller has: with it, none is lost or repeated over a restart.
   * @throws TypeError, TransactionMisuseError and StateStoreClosedError at the call. The iteration rejects with the
   * reason of `signal`; closing the store ends it.
   * @example
   * for await (const { id, session_id, content } of store.watch()) console.log(id, session_id, content)
   */
  watch(options: WatchOptions = {}): AsyncIterableIterator<Message> {
    return watchMessages(this.#handle, this.#context.events, options)
  }

  /**
   * Waits for the writes under way and closes the file, unless another store of this process has it open too; later calls reject with {@link StateStoreClosedError}.
   * Closing twice is fine. `await using store = …` does it too.
   */
  async close(): Promise<void> {
    await this.#handle.close()
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close()
  }

  #repositories(executor: Executor) {
    const context = { executor, ...this.#context }
    return {
      sessions: new SessionRepository(context),
      titles: new TitleRepository(context),
      lineage: new LineageRepository(context),
      usage: new UsageRepository(context),
      messages: new MessageRepository(context),
      search: new SearchRepository(context, null),
    }
  }
}
