import Database from 'better-sqlite3'
import { onTestFinished } from 'vitest'

type Call = (this: unknown, ...args: unknown[]) => unknown

/** A failure of SQLite. Some of them end the transaction: a full disk and failed input or output may. */
export interface Fault {
  code: string
  endsTransaction: boolean
}

const armed: { step: number; steps: number; fault: Fault | undefined } = {
  step: 0,
  steps: 0,
  fault: undefined,
}

/**
 * Makes one call of better-sqlite3 fail, the given one counted from 1, in place of doing anything: of `prepare` and
 * `exec`, and of a statement's `run`, `get` and `all`. All connections of the process count: use no others until
 * `stop()`, which says whether it came to that call.
 */
export function failAt(step: number, fault: Fault): { stop(): boolean } {
  Object.assign(armed, { step, steps: 0, fault })
  return {
    stop() {
      armed.fault = undefined
      return armed.steps >= step
    },
  }
}

/** Puts the double in place of better-sqlite3's own methods for the running test. */
export function useFaultyDriver(): void {
  const db = new Database(':memory:')
  const statement = Object.getPrototypeOf(db.prepare('select 1'))
  db.close()
  for (const name of ['prepare', 'exec']) wrap(Database.prototype, name, (self) => self)
  for (const name of ['run', 'get', 'all'])
    wrap(statement, name, (self) => (self as Database.Statement).database)
}

function wrap(prototype: object, name: string, databaseOf: (self: unknown) => unknown): void {
  const original: Call = Reflect.get(prototype, name)
  const double: Call = function (...args) {
    const { fault, step } = armed
    if (!fault || ++armed.steps !== step) return original.apply(this, args)
    // It fails once: what comes after is wanted to work.
    armed.fault = undefined
    const database = databaseOf(this)
    if (fault.endsTransaction && database instanceof Database && database.inTransaction)
      database.exec('rollback')
    throw new Database.SqliteError('this is where it fails', fault.code)
  }
  Reflect.set(prototype, name, double)
  onTestFinished(() => {
    Reflect.set(prototype, name, original)
  })
}
