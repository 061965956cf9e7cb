import Database from 'better-sqlite3'
import { StateStoreBusyError } from '../errors.ts'

/** An error on its way between threads, which takes only the text of it along. */
export type Failure =
  | { type: 'sqlite'; message: string; code: string }
  | { type: 'busy'; waited_ms: number }
  | { type: 'other'; error: unknown }

export function toFailure(error: unknown): Failure {
  if (error instanceof Database.SqliteError)
    return { type: 'sqlite', message: error.message, code: error.code }
  if (error instanceof StateStoreBusyError) return { type: 'busy', waited_ms: error.waited_ms }
  return { type: 'other', error }
}

/** The error again, of its class. */
export function toError(failure: Failure): unknown {
  if (failure.type === 'sqlite') return new Database.SqliteError(failure.message, failure.code)
  if (failure.type === 'busy') return new StateStoreBusyError(failure.waited_ms)
  return failure.error
}
