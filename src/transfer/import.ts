import { randomUUID } from 'node:crypto'
import type { Connection } from '../database/connection.ts'
import type { RepositoryContext } from '../database/repository.ts'
import type { SessionRow } from '../database/schema.ts'
import { insert } from '../messages/append.ts'
import type { CheckedMessage } from '../messages/message-values.ts'
import type { IndexHealth } from '../search/index-health.ts'
import { descends, insertSession } from '../sessions/create.ts'
import { exists } from '../sessions/removal.ts'
import { freeTitle } from '../sessions/titles.ts'
import type { NotCarried } from './checked-session.ts'
import { Pace } from './pace.ts'
import { type Plan, Planner } from './plan.ts'
import { Spool } from './spool.ts'

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

/** Messages that one transaction inserts: less than 0.1 s of the write lock. A larger session has one of its own. */
const CHUNK = 500

/** Messages inserted before the event loop gets its turn. */
const STEP = 75

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
    const target: Target = { plan, spool, indexes, ids, titles, storedIds: new Map(), dataVersion: 0 }
    let messages = 0
    for (let next = 0; next < plan.sessions.length; ) {
      signal?.throwIfAborted()
      const from = next
      const started = performance.now()
      const before = target.dataVersion
      const written = await executor.writeInSteps((connection) => writeChunk(connection, from, target))
      next += written.length
      sessions.push(...written)
      for (const [index, { status }] of written.entries())
        if (status === 'imported') messages += plan.sessions[from + index]?.messages ?? 0
      onProgress?.({ phase: 'writing', sessions: next, messages, ...totals })
      if (next === plan.sessions.length) break
      // Time for others to get in between: more of it where somebody has.
      const share = target.dataVersion === before ? 10 : 2
      await executor.letOthersWrite((performance.now() - started) / share)
    }
    const imported = sessions.filter(({ status }) => status === 'imported').length
    return { imported, messages, sessions, not_carried: plan.not_carried }
  } finally {
    await spool.remove()
  }
}

interface Target extends Required<Pick<ImportOptions, 'ids' | 'titles'>> {
  plan: Plan
  spool: Spool
  indexes: IndexHealth
  /** What sessions are called in the store. */
  storedIds: Map<string, string>
  /** Changes when another process has written. */
  dataVersion: number
}

/** Writes sessions from the one at `from` on, until there are enough for one transaction. It may be run again. */
function* writeChunk(connection: Connection, from: number, target: Target): Generator<void, SessionReport[]> {
  const { plan, spool, indexes, ids, titles, storedIds } = target
  target.dataVersion = connection.dataVersion
  const reports: SessionReport[] = []
  let inserted = 0
  /** Rows since the event loop had its turn. */
  let pending = 0
  for (const planned of plan.sessions.slice(from, from + CHUNK)) {
    if (reports.length > 0 && inserted + planned.messages > CHUNK) break
    const { id, circular } = planned
    storedIds.set(id, id)
    const report: SessionReport = { id, status: 'imported' }
    reports.push(report)
    if (exists(connection, id)) {
      if (ids === 'skip') {
        report.status = 'present'
        continue
      }
      report.stored_id = randomUUID()
      storedIds.set(id, report.stored_id)
    }
    const lines = spool.lines(planned)
    const row: SessionRow = JSON.parse(lines.next().value)
    const { parent_session_id: parent, title } = row
    row.message_count ??= planned.messages
    row.tool_call_count ??= planned.toolCalls
    row.id = report.stored_id ?? id
    if (parent !== null) {
      const stored = storedIds.get(parent) ?? parent
      // Somebody's file may have children of a session that is not there yet.
      const attached = !circular && exists(connection, stored) && !descends(connection, stored, row.id)
      row.parent_session_id = attached ? stored : null
      if (!attached) report.detached_parent = parent
    }
    if (title !== null) {
      const free = freeTitle(connection, title)
      if (free !== title) report.title = row.title = titles === 'number' ? free : null
    }
    insertSession(connection, row)
    for (const line of lines) {
      const messages: CheckedMessage[] = JSON.parse(line)
      for (const { values } of messages) values.session_id = row.id
      insert(connection, messages, indexes)
      inserted += messages.length
      pending += messages.length
      if (pending < STEP) continue
      pending = 0
      yield
    }
    pending++
  }
  return reports
}
