import { now } from '../arguments.ts'
import type { Connection } from '../database/connection.ts'
import type { Executor } from '../database/executor.ts'
import { build, fixedQuery, type Param } from '../database/fixed-query.ts'
import { type RemovalOptions, removeSessions } from './removal.ts'

export interface PruneOptions extends RemovalOptions {
  /** Sessions that were last active so many days ago or longer. Above 0. Default 90. */
  olderThanDays?: number
  /** Only sessions of this source. */
  source?: string
  /** Say what would go, and delete nothing. */
  dryRun?: boolean
}

export interface PruneResult {
  /** Sessions deleted, or that would be. */
  deleted: number
  /** Sessions as old that were left because they never ended. */
  skipped_open: number
}

const DAY = 86_400

interface Old {
  before: number
  source: string | null
}

const oldSessions = (param: Param<Old>) =>
  build
    .selectFrom('hs_session_activity as activity')
    .innerJoin('sessions', 'sessions.id', 'activity.session_id')
    .where('activity.last_active', '<', param('before'))
    .where((eb) => eb.or([eb(param('source'), 'is', null), eb('sessions.source', '=', param('source'))]))

const ended = fixedQuery((param: Param<Old>) =>
  oldSessions(param).select('sessions.id').where('sessions.ended_at', 'is not', null).orderBy('sessions.id'),
)

const open = fixedQuery((param: Param<Old>) =>
  oldSessions(param)
    .select((eb) => eb.fn.countAll<number>().as('count'))
    .where('sessions.ended_at', 'is', null),
)

const stillOld = fixedQuery((param: Param<{ id: string; before: number }>) =>
  build
    .selectFrom('hs_session_activity as activity')
    .innerJoin('sessions', 'sessions.id', 'activity.session_id')
    .select('sessions.id')
    .where('activity.session_id', '=', param('id'))
    .where('activity.last_active', '<', param('before'))
    .where('sessions.ended_at', 'is not', null),
)

/** @throws TypeError for an age that would delete what nobody meant to. */
export function checkAge(days: unknown): number {
  if (typeof days !== 'number' || !Number.isFinite(days) || days <= 0)
    throw new TypeError('olderThanDays must be a number of days above 0.')
  return days
}

export async function pruneSessions(executor: Executor, options: PruneOptions): Promise<PruneResult> {
  const old = {
    before: now() - checkAge(options.olderThanDays === undefined ? 90 : options.olderThanDays) * DAY,
    source: options.source ?? null,
  }
  const found = await executor.read((connection) => ({
    ids: connection.all(ended, old).map(({ id }) => id),
    skipped_open: connection.get(open, old)?.count ?? 0,
  }))
  const { ids, skipped_open } = found
  options.signal?.throwIfAborted()
  if (options.dryRun) return { deleted: ids.length, skipped_open }
  const deleted = await removeSessions(
    executor,
    ids,
    // Somebody may have gone on with it since.
    (connection: Connection, id) => connection.get(stillOld, { id, before: old.before }) !== undefined,
    options,
  )
  return { deleted, skipped_open }
}
