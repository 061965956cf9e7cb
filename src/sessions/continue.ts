import { checkObject, checkText, now } from '../arguments.ts'
import type { Connection } from '../database/connection.ts'
import { build, fixedQuery, type Param } from '../database/fixed-query.ts'
import {
  SessionContinuedError,
  SessionEndedError,
  SessionExistsError,
  SessionNotFoundError,
} from '../errors.ts'
import { checkSession, createSession, type SessionValues, UNKNOWN_SOURCE } from './create.ts'
import { endSession } from './end.ts'
import { exists } from './removal.ts'
import type { NewSession } from './session-types.ts'
import { chainOf, OTHER_KINDS } from './tip.ts'
import { sanitizeTitle } from './title-text.ts'
import { nextTitle, setTitle } from './titles.ts'

/** The session that continues another. What is left out of `source`, `user_id` and `model` is as in that one. */
export interface Continuation
  extends Partial<
    Pick<NewSession, 'id' | 'source' | 'user_id' | 'model' | 'model_config' | 'system_prompt'>
  > {
  /** Default: the next title of the family, none where the session that is continued has none. null: none. */
  title?: string | null
}

/** A continuation that is checked; undefined is what it takes over. */
export interface CheckedContinuation {
  session: SessionValues
  inherited: { source: boolean; user_id: boolean; model: boolean }
  title: string | null | undefined
}

const parentById = fixedQuery((param: Param<{ id: string }>) =>
  build
    .selectFrom('all_sessions')
    .select(['source', 'user_id', 'model', 'title', 'ended_at', 'end_reason'])
    .where('id', '=', param('id')),
)

const latestChild = fixedQuery((param: Param<{ id: string }>) =>
  build
    .selectFrom('sessions')
    .select((eb) => eb.fn.max<number | null>('started_at').as('started_at'))
    .where('parent_session_id', '=', param('id')),
)

/** @throws TypeError naming the field and what it must be. */
export function checkContinuation(id: string, continuation: Continuation): CheckedContinuation {
  checkObject(continuation, 'continuation')
  const { source, user_id, model, model_config, system_prompt, title } = continuation
  const session = checkSession({
    id: continuation.id,
    source: source === undefined ? UNKNOWN_SOURCE : source,
    user_id,
    model,
    model_config,
    system_prompt,
    parent_session_id: id,
  })
  const kind = OTHER_KINDS.find((name) => session.model_config?.includes(`"${name}"`))
  if (kind !== undefined)
    throw new TypeError(
      `session.model_config has '${kind}', the mark of a session that continues no other: leave it out.`,
    )
  return {
    session,
    inherited: {
      source: source === undefined,
      user_id: user_id === undefined,
      model: model === undefined,
    },
    title: title === undefined || title === null ? title : sanitizeTitle(checkText(title, 'title')),
  }
}

/**
 * Ends a session by compression, if that has not been done, and creates the session that continues it.
 *
 * @throws SessionNotFoundError, SessionContinuedError, SessionEndedError, SessionExistsError, TitleInUseError
 */
export function continueSession(
  connection: Connection,
  id: string,
  { session, inherited, title }: CheckedContinuation,
): void {
  const parent = connection.get(parentById, { id })
  if (!parent) throw new SessionNotFoundError(id)
  const [, child, ...later] = chainOf(connection, id)
  if (child !== undefined) throw new SessionContinuedError(id, child, later.at(-1) ?? child)
  if (parent.ended_at !== null && parent.end_reason !== 'compression')
    throw new SessionEndedError(id, parent.end_reason)
  if (exists(connection, session.id)) throw new SessionExistsError(session.id)

  const ended_at = now()
  const latest = connection.get(latestChild, { id })?.started_at ?? null
  connection.run(endSession, { id, ended_at, end_reason: 'compression' })
  createSession(connection, {
    ...session,
    source: inherited.source ? parent.source : session.source,
    user_id: inherited.user_id ? parent.user_id : session.user_id,
    model: inherited.model ? parent.model : session.model,
    // The tip is the child that started last, whatever the clock of whoever made the others.
    started_at: latest === null ? ended_at : Math.max(ended_at, latest + 0.001),
  })
  const given = title === undefined && parent.title ? nextTitle(connection, parent.title) : title
  if (given) setTitle(connection, session.id, given)
}
