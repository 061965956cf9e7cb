import { randomUUID } from 'node:crypto'
import type { Connection } from '../database/connection.ts'
import type { SessionRow } from '../database/schema.ts'
import { insert } from '../messages/append.ts'
import type { CheckedMessage } from '../messages/message-values.ts'
import { bigramText } from '../search/bigram-index.ts'
import type { IndexHealth } from '../search/index-health.ts'
import { descends, insertSession } from '../sessions/create.ts'
import { exists } from '../sessions/removal.ts'
import { freeTitle } from '../sessions/titles.ts'
import type { ImportOptions, SessionReport } from './import.ts'
import type { Planned } from './plan.ts'
import type { Spool } from './spool.ts'

/** Messages that one transaction inserts: less than 0.1 s of the write lock. A larger session has one of its own. */
const CHUNK = 500

/** Messages inserted before the event loop gets its turn. */
const STEP = 75

/** Where sessions go, and how. */
export interface Target extends Required<Pick<ImportOptions, 'ids' | 'titles'>> {
  spool: Spool
  indexes: IndexHealth
  /** What sessions are called in the store. */
  storedIds: Map<string, string>
  /** Changes when another process has written. */
  dataVersion: number
}

/** A session that is ready to be written. */
export interface Prepared {
  planned: Planned
  row: SessionRow
  /** As often as it is asked: a transaction may have to begin again. */
  batches(): Iterable<Batch>
}

/** Messages that one statement inserts, and what the index of scripts without spaces gets of each. */
interface Batch {
  messages: CheckedMessage[]
  bigrams: string[]
}

/** The sessions from a place on that share a transaction. */
export function nextChunk(sessions: readonly Planned[], from: number): Planned[] {
  let messages = 0
  let to = from
  while (to < sessions.length && to - from < CHUNK) {
    messages += sessions[to]?.messages ?? 0
    if (to > from && messages > CHUNK) break
    to++
  }
  return sessions.slice(from, to)
}

/**
 * Does what needs no lock: reads a session back, and makes the texts for the index. A large session is read as it is
 * written, and so is one that is most likely `there` already.
 */
export function prepare(planned: Planned, { spool }: Target, there: boolean): Prepared {
  const row: SessionRow = JSON.parse(spool.lines(planned).next().value)
  function* batches(): Generator<Batch> {
    const lines = spool.lines(planned)
    lines.next()
    for (const line of lines) yield toBatch(line)
  }
  if (there || planned.messages > CHUNK) return { planned, row, batches }
  const all = [...batches()]
  return { planned, row, batches: () => all }
}

function toBatch(line: string): Batch {
  const messages: CheckedMessage[] = JSON.parse(line)
  return { messages, bigrams: messages.map(({ values }) => bigramText(values)) }
}

/** Writes sessions. It may be run again. */
export function* writeChunk(
  connection: Connection,
  chunk: readonly Prepared[],
  target: Target,
): Generator<void, SessionReport[]> {
  const { indexes, ids, titles, storedIds } = target
  target.dataVersion = connection.dataVersion
  const reports: SessionReport[] = []
  /** Rows since the event loop had its turn. */
  let pending = 0
  for (const { planned, row: asItWas, batches } of chunk) {
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
    const row = { ...asItWas, id: report.stored_id ?? id }
    const { parent_session_id: parent, title } = row
    if (planned.partial || row.message_count === null) row.message_count = planned.messages
    if (planned.partial || row.tool_call_count === null) row.tool_call_count = planned.toolCalls
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
    for (const { messages, bigrams } of batches()) {
      for (const { values } of messages) values.session_id = row.id
      insert(connection, messages, indexes, bigrams)
      pending += messages.length
      if (pending < STEP) continue
      pending = 0
      yield
    }
    pending++
  }
  return reports
}
