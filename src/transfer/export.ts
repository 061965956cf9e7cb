import { createHash } from 'node:crypto'
import { now } from '../arguments.ts'
import { build, fixedQuery, type Param } from '../database/fixed-query.ts'
import type { StoreHandle } from '../database/store-handle.ts'
import { SessionNotFoundError } from '../errors.ts'
import type { EventHandler } from '../events.ts'
import { Pace } from './pace.ts'
import {
  BUNDLE_VERSION,
  type BundleRecord,
  type HeaderRecord,
  type MessageRecord,
  type MessagesRecord,
  type SessionRecord,
} from './records.ts'
import { type Redactor, redactRecord } from './redact.ts'
import { readMessages, readSession, readSessions, type SessionHead } from './session-record.ts'
import { type Snapshot, withSnapshot } from './snapshot.ts'

/** Which sessions are exported. */
export interface Selected {
  /** Only sessions of this source. */
  source?: string
  /** Only these sessions. */
  sessionIds?: readonly string[]
}

/** How far an export has come. */
export interface ExportProgress {
  sessions: number
  messages: number
  total_sessions: number
  total_messages: number
}

/** Messages that one statement reads: with large ones, that takes long enough. */
const PAGE = 50

/** A record holds at most this many messages, and ends after so many characters of JSON, about. */
const MESSAGES_A_RECORD = 1_000
const CHARACTERS_A_RECORD = 4_000_000

// By the index of messages by session, which is all that it reads.
const countsAfter = fixedQuery((param: Param<{ id: string; limit: number }>) =>
  build
    .selectFrom('all_sessions as sessions')
    .select(['sessions.id', 'sessions.source'])
    .select((eb) =>
      eb
        .selectFrom('all_messages as messages')
        .select((counted) => counted.fn.countAll<number>().as('count'))
        .whereRef('messages.session_id', '=', 'sessions.id')
        .as('messages'),
    )
    .where('sessions.id', '>', param('id'))
    .orderBy('sessions.id')
    .limit(param('limit')),
)

const countMessages = fixedQuery((param: Param<{ session_id: string }>) =>
  build
    .selectFrom('all_messages')
    .select((eb) => eb.fn.countAll<number>().as('count'))
    .where('session_id', '=', param('session_id')),
)

const schemaVersion = fixedQuery((_: Param<object>) => build.selectFrom('schema_version').select('version'))

/** A record, and the line that it is in a bundle. */
export interface Line {
  record: BundleRecord
  text: string
}

/** An export, checked. */
export interface Exporting extends Selected {
  redactor: Redactor | undefined
  signal: AbortSignal | undefined
  onProgress: ((progress: ExportProgress) => void) | undefined
}

/** The lines of a bundle. */
export function exportLines(
  store: StoreHandle,
  events: EventHandler,
  exporting: Exporting,
): AsyncGenerator<Line> {
  const { signal, onProgress } = exporting
  return withSnapshot(store, events, signal, async function* (snapshot) {
    const hash = createHash('sha256')
    const line = (record: BundleRecord): Line => {
      const text = JSON.stringify(record)
      hash.update(text).update('\n')
      return { record, text }
    }
    const header = await headerOf(snapshot, exporting)
    yield line(header)
    const done = { sessions: 0, messages: 0 }
    for await (const record of recordsOf(snapshot, exporting, events)) {
      yield line(record)
      if (record.type === 'session') done.sessions++
      done.messages += record.messages.length
      onProgress?.({ ...done, total_sessions: header.sessions, total_messages: header.messages })
    }
    const end: BundleRecord = { type: 'end', ...done, sha256: hash.digest('hex') }
    yield { record: end, text: JSON.stringify(end) }
  })
}

/** Sessions with all of their messages. */
export function exportSessions(
  store: StoreHandle,
  events: EventHandler,
  exporting: Exporting,
): AsyncGenerator<SessionRecord> {
  const { signal, onProgress } = exporting
  return withSnapshot(store, events, signal, async function* (snapshot) {
    const header = onProgress && (await headerOf(snapshot, exporting))
    const done = { sessions: 0, messages: 0 }
    let session: SessionRecord | undefined
    for await (const record of recordsOf(snapshot, exporting, events)) {
      if (record.type === 'session') session = record
      else session?.messages.push(...record.messages)
      if (!session || record.more) continue
      delete session.more
      yield session
      done.sessions++
      done.messages += session.messages.length
      if (header) onProgress({ ...done, total_sessions: header.sessions, total_messages: header.messages })
    }
  })
}

async function headerOf(
  snapshot: Snapshot,
  { source, sessionIds, signal }: Exporting,
): Promise<HeaderRecord> {
  const pace = new Pace()
  let sessions = 0
  let messages = 0
  if (sessionIds)
    for (const session_id of new Set(sessionIds)) {
      messages += snapshot.read((connection) => {
        if (!readSession(connection, session_id, () => {})) throw new SessionNotFoundError(session_id)
        return connection.get(countMessages, { session_id })?.count ?? 0
      })
      sessions++
      await pace.rest(signal)
    }
  else
    for (let after: string | undefined = ''; after !== undefined; ) {
      const from: string = after
      const page = snapshot.read((connection) => connection.all(countsAfter, { id: from, limit: PAGE }))
      for (const session of page) {
        if (source !== undefined && session.source !== source) continue
        sessions++
        messages += session.messages ?? 0
      }
      after = page.length < PAGE ? undefined : page.at(-1)?.id
      await pace.rest(signal)
    }
  const version = snapshot.read((connection) => connection.get(schemaVersion, {})?.version)
  return {
    type: 'header',
    format: 'hermes-state',
    version: BUNDLE_VERSION,
    exported_at: now(),
    schema_version: version ?? null,
    sessions,
    messages,
  }
}

async function* recordsOf(
  snapshot: Snapshot,
  { source, sessionIds, redactor, signal }: Exporting,
  events: EventHandler,
): AsyncGenerator<SessionRecord | MessagesRecord> {
  const masked = <T extends object>(record: T): T =>
    redactor ? redactRecord(record, redactor).record : record
  const pace = new Pace()
  for (const head of headsOf(snapshot, sessionIds, events)) {
    signal?.throwIfAborted()
    if (source !== undefined && head.source !== source) continue
    let part: SessionRecord | MessagesRecord = { ...head, messages: [] }
    let characters = 0
    for (let after = 0; ; ) {
      const page = snapshot.read((connection) => readMessages(connection, head.id, after, PAGE, events))
      if (
        page.length > 0 &&
        (part.messages.length >= MESSAGES_A_RECORD || characters > CHARACTERS_A_RECORD)
      ) {
        yield masked({ ...part, more: true })
        part = { type: 'messages', session_id: head.id, messages: [] }
        characters = 0
      }
      part.messages.push(...page)
      for (const message of page) characters += sizeOf(message)
      after = page.at(-1)?.id ?? after
      if (page.length < PAGE) break
      await pace.rest(signal)
    }
    yield masked(part)
    await pace.rest(signal)
  }
}

/** The sessions in order of id. */
function* headsOf(
  snapshot: Snapshot,
  sessionIds: readonly string[] | undefined,
  events: EventHandler,
): Generator<SessionHead> {
  if (sessionIds) {
    for (const id of [...new Set(sessionIds)].sort()) {
      const head = snapshot.read((connection) => readSession(connection, id, events))
      if (head) yield head
    }
    return
  }
  for (let after = ''; ; ) {
    const page = snapshot.read((connection) => readSessions(connection, after, PAGE, events))
    yield* page
    const last = page.at(-1)
    if (!last || page.length < PAGE) return
    after = last.id
  }
}

/** About how many characters a message has. */
function sizeOf({ content, reasoning }: MessageRecord): number {
  const text = typeof content === 'string' ? content : JSON.stringify(content ?? '')
  return text.length + (reasoning?.length ?? 0)
}
