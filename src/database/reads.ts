import { StateStoreClosedError } from '../errors.ts'
import type { Connection } from './connection.ts'
import { isBusy, toStoreError } from './sqlite-errors.ts'
import { patiently } from './waiting.ts'

/** Reads between the transactions of the store's own line, and behind the lock of another process. */
export class Reads {
  readonly #connection: Connection
  readonly #busyTimeout: number
  readonly #isBarred: () => boolean
  readonly #waiting: (() => void)[] = []

  /** `isBarred` says whether the connection is not to be read now; when it no longer is, `resume` is called. */
  constructor(connection: Connection, busyTimeout: number, isBarred: () => boolean) {
    this.#connection = connection
    this.#busyTimeout = busyTimeout
    this.#isBarred = isBarred
  }

  async read<T>(body: (connection: Connection) => T): Promise<T> {
    const connection = this.#connection
    try {
      if (!this.#isBarred()) return body(connection)
    } catch (error) {
      // A file in rollback-journal mode is locked while another process commits.
      if (!isBusy(error)) throw toStoreError(error, connection.path)
    }
    try {
      return await patiently(async () => {
        while (this.#isBarred()) await new Promise<void>((resolve) => this.#waiting.push(resolve))
        if (!connection.isOpen) throw new StateStoreClosedError()
        return body(connection)
      }, this.#busyTimeout)
    } catch (error) {
      throw toStoreError(error, connection.path)
    }
  }

  resume(): void {
    for (const resume of this.#waiting.splice(0)) resume()
  }
}
