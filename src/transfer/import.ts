import type { RepositoryContext } from '../database/repository.ts'
import { exists } from '../sessions/removal.ts'
import type { NotCarried } from './conversation.ts'
import { Pace } from './pace.ts'
import { Planner } from './plan.ts'
import { Spool } from './spool.ts'
import { nextChunk, type Prepared, prepare, type Target, writeChunk } from './write-sessions.ts'

export interface ImportOptions {
  /**
   * What becomes of a session whose id the store has: `skip` (the default) leaves the one that is there, and
   * children are attached to it; `new` imports it under an id of its own.
   */
  ids?: 'skip' | 'new'
  /**
   * What becomes of a title that another session has: `number` (the default) gives the next of the family, such as
   * `Fix build #2`; `drop` leaves the session without one.
   */
  titles?: 'number' | 'drop'
  /** Called after each step. Nothing is written while `checking`; how much there is, is known afterwards. */
  onProgress?: (progress: ImportProgress) => void
  /** Gives up between two transactions: the sessions that were written by then stay, each of them whole. */
  signal?: AbortSignal
}

export interface ImportProgress {
  phase: 'checking' | 'writing'
  sessions: number
  messages: number
  total_sessions?: number
  total_messages?: number
}

/** What became of a session. */
export interface SessionReport {
  /** As it was in the import; null where it had none. */
  id: string | null
  status: 'imported' | 'present' | 'refused'
  /** Its id in the store, where that is another one. */
  stored_id?: string
  /** Its title in the store, where that is another one. */
  title?: string | null
  /** The parent it lost: one that is neither in the import nor in the store, or one of its own descendants. */
  detached_parent?: string
  /** Why it was refused. */
  reason?: string
}

export interface ImportReport {
  /** How many sessions and messages were written. */
  imported: number
  messages: number
  sessions: SessionReport[]
  /** What the import has and schema 6 has no place for, by field: how many values were left out. */
  not_carried: NotCarried
}

/**
 * Imports records of sessions: reads them to their end and checks them, then writes, each session with all of its
 * messages or not at all.
 */
export async function importRecords(
  { executor, additions, indexes }: RepositoryContext,
  records: AsyncIterable<unknown> | Iterable<unknown>,
  { ids = 'skip', titles = 'number', onProgress, signal }: ImportOptions,
): Promise<ImportReport> {
  const spool = await Spool.create()
  try {
    const planner = new Planner(spool, additions)
    const pace = new Pace()
    for await (const record of records) {
      signal?.throwIfAborted()
      await planner.take(record)
      onProgress?.({ phase: 'checking', sessions: planner.sessions, messages: planner.messages })
      await pace.rest(signal)
    }
    const plan = await planner.finish()
    const sessions: SessionReport[] = plan.refused.map((refused) => ({ status: 'refused', ...refused }))
    const total_messages = plan.sessions.reduce((sum, planned) => sum + planned.messages, 0)
    const totals = { total_sessions: plan.sessions.length, total_messages }
    const target: Target = { spool, indexes, ids, titles, storedIds: new Map(), dataVersion: 0 }
    let messages = 0
    for (let next = 0; next < plan.sessions.length; ) {
      signal?.throwIfAborted()
      const planned = nextChunk(plan.sessions, next)
      const there = await executor.read((connection) => planned.filter(({ id }) => exists(connection, id)))
      const chunk: Prepared[] = []
      for (const session of planned) {
        chunk.push(prepare(session, target, ids === 'skip' && there.includes(session)))
        await pace.rest(signal)
      }
      const started = performance.now()
      const before = target.dataVersion
      const written = await executor.writeInSteps((connection) => writeChunk(connection, chunk, target))
      next += written.length
      sessions.push(...written)
      for (const [index, { status }] of written.entries())
        if (status === 'imported') messages += planned[index]?.messages ?? 0
      onProgress?.({ phase: 'writing', sessions: next, messages, ...totals })
      // Others get in while the next chunk is prepared. Where somebody has, they get as long as that took.
      if (target.dataVersion !== before) await executor.letOthersWrite((performance.now() - started) / 2)
    }
    const imported = sessions.filter(({ status }) => status === 'imported').length
    return { imported, messages, sessions, not_carried: plan.not_carried }
  } finally {
    await spool.remove()
  }
}
