import { checkCount } from '../arguments.ts'
import type { Connection } from '../database/connection.ts'
import { build, fixedQuery, type Param } from '../database/fixed-query.ts'
import { ConflictError, SessionNotFoundError } from '../errors.ts'
import { exists } from '../sessions/removal.ts'

const lastId = fixedQuery((param: Param<{ session_id: string }>) =>
  build
    .selectFrom('live_messages')
    .select((eb) => eb.fn.max<number | null>('id').as('id'))
    .where('session_id', '=', param('session_id')),
)

/** The id of the last message that a caller has seen, null for none; undefined where it does not say. */
export type ExpectedLastId = number | null | undefined

/** @throws TypeError for what is no id; 0 is none. */
export function checkExpectedLastId(value: ExpectedLastId): ExpectedLastId {
  return value === undefined || value === null ? value : checkCount(value, 'expectedLastId') || null
}

/**
 * Refuses to go on where a session has other messages than the caller has seen.
 *
 * @throws ConflictError, SessionNotFoundError
 */
export function assertLastId(connection: Connection, session_id: string, expected: ExpectedLastId): void {
  if (expected === undefined) return
  const actual = connection.get(lastId, { session_id })?.id ?? null
  if (actual === expected) return
  throw exists(connection, session_id)
    ? new ConflictError(session_id, expected, actual)
    : new SessionNotFoundError(session_id)
}
