import type { Shape } from '../database/shape.ts'
import type { StateStoreEvent } from '../events.ts'
import type { Indexes } from '../search/candidates.ts'
import { findMessages, type MessageQuery, type SearchContext } from '../search/find.ts'
import type { Pages } from '../search/pages.ts'
import type { SearchHit, SessionHit } from '../search/search-types.ts'
import { findSessions, type SessionQuery } from '../search/sessions.ts'
import type { Failure } from './failure.ts'

/** What the thread is started with. */
export interface ReaderData {
  path: string
  /** Of the file that the store has open. */
  identity: string | undefined
  busyTimeout: number
  /** What the file has, and what a file of schema 6 has. */
  shape: Shape
  complete: Shape
  /** 1 once its connection is closed. */
  closed: Int32Array<SharedArrayBuffer>
  /** The module that `better-sqlite3` is looked up from. */
  from: string
}

interface Queries {
  messages: MessageQuery
  sessions: SessionQuery
}

/** What each search gives, row by row. */
export interface Rows {
  messages: SearchHit
  sessions: SessionHit
}

/** A search as data: it can run in this thread or in another. */
export type Search<Kind extends keyof Rows = keyof Rows> = {
  [K in Kind]: { kind: K; query: Queries[K] }
}[Kind]

const FINDERS: {
  [K in keyof Rows]: (
    context: SearchContext,
    query: Queries[K],
    signal: AbortSignal | undefined,
  ) => Pages<Rows[K]>
} = { messages: findMessages, sessions: findSessions }

/** Runs a search. */
export function find<Kind extends keyof Rows>(
  context: SearchContext,
  { kind, query }: Search<Kind>,
  signal: AbortSignal | undefined,
): Pages<Rows[Kind]> {
  return FINDERS[kind](context, query, signal)
}

/** `next` asks for the next page: pages that nobody has taken do not pile up. */
export type ToThread<Kind extends keyof Rows = keyof Rows> =
  | { type: 'find'; id: number; search: Search<Kind>; indexes: Indexes }
  | { type: 'next' | 'stop'; id: number }
  | { type: 'close' }

export type FromThread =
  | { type: 'ready' }
  | { type: 'page'; id: number; rows: unknown[]; last: boolean }
  | { type: 'failed'; id: number; failure: Failure }
  | { type: 'event'; event: StateStoreEvent }
