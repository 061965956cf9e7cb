import type { Connection } from '../database/connection.ts'
import { HERMES_NAMES, reference } from '../database/reference.ts'
import { openSecond } from '../database/second-connection.ts'
import { readShape } from '../database/shape.ts'
import { toStoreError } from '../database/sqlite-errors.ts'
import type { StoreHandle } from '../database/store-handle.ts'
import { makeViews } from '../database/views.ts'
import { patiently } from '../database/waiting.ts'
import { ExportInterruptedError } from '../errors.ts'
import type { EventHandler } from '../events.ts'

/**
 * What a store holds at one moment, on a connection of its own: what is written later is not seen. A file in WAL mode
 * is written meanwhile, but its log cannot be cut back; in any other mode, writers wait until it is closed.
 */
export class Snapshot {
  readonly #connection: Connection
  readonly #release: () => void
  #ended: unknown

  constructor(connection: Connection, release: () => void) {
    this.#connection = connection
    this.#release = release
  }

  /** @throws what it was ended with. */
  read<T>(body: (connection: Connection) => T): T {
    if (this.#ended !== undefined) throw this.#ended
    return body(this.#connection)
  }

  get path(): string {
    return this.#connection.path
  }

  /** Closes it. `reason` is what later reads throw. */
  end(reason: unknown): void {
    if (this.#ended !== undefined) return
    this.#ended = reason
    this.#connection.close()
    this.#release()
  }
}

/**
 * Runs `body` with a snapshot of the store, and closes that when it is left.
 *
 * @throws ExportInterruptedError, also at a later read, where the file must be opened again meanwhile;
 * StateStoreClosedError where the store is closed.
 */
export async function* withSnapshot<T>(
  store: StoreHandle,
  events: EventHandler,
  signal: AbortSignal | undefined,
  body: (snapshot: Snapshot) => AsyncGenerator<T>,
): AsyncGenerator<T> {
  store.closed.throwIfAborted()
  let release = () => {}
  let snapshot: Snapshot | undefined
  let reason: unknown
  const end = (error: unknown) => {
    reason ??= error
    snapshot?.end(error)
  }
  const closed = () => end(store.closed.reason)
  const done = new Promise<void>((resolve) => {
    release = resolve
  })
  const beside = store.besideConnection(
    () => done,
    () => end(new ExportInterruptedError()),
  )
  store.closed.addEventListener('abort', closed)
  try {
    snapshot = new Snapshot(await openSecond(store, events, signal), release)
    if (reason !== undefined) snapshot.end(reason)
    await begin(snapshot, store.busyTimeout, signal)
    yield* body(snapshot)
  } catch (error) {
    throw snapshot ? toStoreError(error, snapshot.path) : error
  } finally {
    store.closed.removeEventListener('abort', closed)
    end(new Error('The snapshot is closed.'))
    release()
    await beside
  }
}

async function begin(
  snapshot: Snapshot,
  busyTimeout: number,
  signal: AbortSignal | undefined,
): Promise<void> {
  const { shape: complete } = await reference(HERMES_NAMES)
  const shape = await patiently(
    () =>
      snapshot.read((connection) => {
        if (!connection.inTransaction) connection.exec('begin')
        return readShape(connection)
      }),
    busyTimeout,
    signal,
  )
  snapshot.read((connection) => makeViews(connection, shape, complete))
}
