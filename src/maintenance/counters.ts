import { setImmediate as nextTick } from 'node:timers/promises'
import { sql } from 'kysely'
import type { Executor } from '../database/executor.ts'
import { integer, toolCalls } from '../database/filters.ts'
import { build, fixedQuery, type Param } from '../database/fixed-query.ts'
import { WINDOW, walk } from './walk.ts'

/** What a session says of its messages, or what its rows say. */
export interface Counters {
  message_count: number
  tool_call_count: number
}

/** A session whose counters are not what its rows say. */
export interface DriftedSession {
  id: string
  stored: Counters
  actual: Counters
}

export interface Tally {
  /** Every session with counters that differ from its rows. */
  drifted: DriftedSession[]
  /** Ids of sessions that have messages and do not exist, with how many. */
  missing: Map<string, number>
  /** The parent of each session that has one. */
  parents: Map<string, string>
}

interface SessionLine extends Counters {
  rowid: number
  id: string
  parent_session_id: string | null
}

// sessions.rowid is of no meaning: a VACUUM of another process during the walk may make it miss sessions.
const nextSessions = fixedQuery((param: Param<{ after: number }>) => ({
  compile: () =>
    sql<SessionLine>`
      select rowid, id, parent_session_id, coalesce(message_count, 0) as message_count,
        coalesce(tool_call_count, 0) as tool_call_count
      from main.sessions where rowid > ${integer(param('after'))} order by rowid limit ${sql.lit(WINDOW)}`.compile(
      build,
    ),
}))

const nextMessages = fixedQuery((param: Param<{ after: number }>) => ({
  compile: () =>
    sql<Counters & { session_id: string; last: number }>`
      select session_id, count(*) as message_count, sum(${toolCalls()}) as tool_call_count, max(id) as last
      from (
        select id, session_id, tool_calls from main.messages
        where id > ${integer(param('after'))} order by id limit ${sql.lit(WINDOW)})
      group by session_id`.compile(build),
}))

const actualCounters = fixedQuery((param: Param<{ id: string }>) => ({
  compile: () =>
    sql<Counters>`
      select count(*) as message_count, coalesce(sum(${toolCalls()}), 0) as tool_call_count
      from main.messages where session_id = ${param('id')}`.compile(build),
}))

const storedCounters = fixedQuery((param: Param<{ id: string }>) => ({
  compile: () =>
    sql<Counters>`
      select coalesce(message_count, 0) as message_count, coalesce(tool_call_count, 0) as tool_call_count
      from main.sessions where id = ${param('id')}`.compile(build),
}))

const NOTHING: Counters = { message_count: 0, tool_call_count: 0 }

/**
 * Counts the messages of all sessions. Others write between the windows: what does not fit is looked at again by
 * itself, in one tick.
 */
export async function tally(executor: Executor, signal: AbortSignal | undefined): Promise<Tally> {
  const actual = await countMessages(executor, signal)
  const parents = new Map<string, string>()
  const suspects: string[] = []
  await walk(executor, signal, Number.MIN_SAFE_INTEGER, (connection, after) => {
    const sessions = connection.all(nextSessions, { after })
    for (const { id, parent_session_id, ...stored } of sessions) {
      if (parent_session_id !== null) parents.set(id, parent_session_id)
      if (!areEqual(stored, actual.get(id) ?? NOTHING)) suspects.push(id)
      actual.delete(id)
    }
    return sessions.length < WINDOW ? undefined : sessions.at(-1)?.rowid
  })
  const drifted: DriftedSession[] = []
  const missing = new Map<string, number>()
  for (const id of [...suspects, ...actual.keys()]) {
    signal?.throwIfAborted()
    await nextTick()
    const { stored, counted } = await executor.read((connection) => ({
      stored: connection.get(storedCounters, { id }),
      counted: connection.get(actualCounters, { id }) ?? NOTHING,
    }))
    if (stored && !areEqual(stored, counted)) drifted.push({ id, stored, actual: counted })
    if (!stored && counted.message_count > 0) missing.set(id, counted.message_count)
  }
  return { drifted, missing, parents }
}

/** What each session's rows say, by its id; also of sessions that do not exist. */
async function countMessages(
  executor: Executor,
  signal: AbortSignal | undefined,
): Promise<Map<string, Counters>> {
  const counted = new Map<string, Counters>()
  await walk(executor, signal, Number.MIN_SAFE_INTEGER, (connection, after) => {
    const windows = connection.all(nextMessages, { after })
    for (const { session_id, message_count, tool_call_count } of windows) {
      const before = counted.get(session_id) ?? NOTHING
      counted.set(session_id, {
        message_count: before.message_count + message_count,
        tool_call_count: before.tool_call_count + tool_call_count,
      })
    }
    const looked = windows.reduce((sum, { message_count }) => sum + message_count, 0)
    return looked < WINDOW ? undefined : Math.max(...windows.map(({ last }) => last))
  })
  return counted
}

const areEqual = (a: Counters, b: Counters): boolean =>
  a.message_count === b.message_count && a.tool_call_count === b.tool_call_count
