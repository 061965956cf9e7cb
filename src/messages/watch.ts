import { checkId, checkObject } from '../arguments.ts'
import type { Connection } from '../database/connection.ts'
import { STEP } from '../database/limits.ts'
import type { StoreHandle } from '../database/store-handle.ts'
import type { EventHandler } from '../events.ts'
import type { Message } from './message-types.ts'
import { checkCursor, type MessageCursor } from './messages.ts'
import { readNewestId, readNextPage } from './read.ts'

export interface WatchOptions {
  /** Only messages after this one: the last that the caller has, 0 for all. Default: the newest at the call. */
  after?: MessageCursor
  /** Only messages of this session. */
  sessionId?: string
  /** Stops waiting: the iteration rejects with the reason of the signal. */
  signal?: AbortSignal
}

/** What one look at the file found. */
interface Found {
  messages: Message[]
  /** The last id that was looked at, whether or not it is among the messages. */
  last: number
  /** The commits that this look has seen. */
  commits: number
}

/** The messages that anybody commits, in order of id. Described at `store.watch()`. */
export function watchMessages(
  store: StoreHandle,
  events: EventHandler,
  options: WatchOptions,
): AsyncIterableIterator<Message> {
  const { after, sessionId, signal } = checkObject(options, 'options') as WatchOptions
  const session_id = sessionId === undefined ? undefined : checkId(sessionId, 'sessionId')
  if (signal !== undefined && !(signal instanceof AbortSignal))
    throw new TypeError('signal must be an AbortSignal.')
  const given = after === undefined ? undefined : checkCursor(after, 'after')
  const start = store.peek((connection, transaction) => {
    if (given !== undefined) return given
    // What an open transaction has stored is still to be committed.
    const first = transaction?.firstStored
    return first === undefined ? readNewestId(connection) : first - 1
  })

  const look = (connection: Connection, last: number): Found => {
    // In this order: what is committed in between is found by the next look.
    const commits = store.commits.count
    const newest = readNewestId(connection)
    if (newest <= last) return { messages: [], last, commits }
    const messages = readNextPage(
      connection,
      { session_id, after: last, before: newest + 1, limit: STEP },
      events,
    )
    // Ids are committed in order: of those up to the newest, none is still to come.
    const lastOfPage = messages.length === STEP ? messages.at(-1)?.id : undefined
    return { messages, last: lastOfPage ?? newest, commits }
  }

  const left = new AbortController()
  const end = AbortSignal.any([left.signal, store.closed, ...(signal ? [signal] : [])])
  const messages = follow(store, start, look, end, signal)
  return {
    [Symbol.asyncIterator]() {
      return this
    },
    async next() {
      // A wait for others to commit would never end there.
      store.assertOutside()
      return messages.next()
    },
    // A generator that waits would only return after the next message.
    return() {
      left.abort()
      return messages.return()
    },
    throw(error) {
      left.abort()
      return messages.throw(error)
    },
  }
}

/** @param end Aborted where the iteration is to end; with an error where that is by `signal`. */
async function* follow(
  store: StoreHandle,
  start: number,
  look: (connection: Connection, last: number) => Found,
  end: AbortSignal,
  signal: AbortSignal | undefined,
): AsyncGenerator<Message, void, undefined> {
  let interrupt = () => {}
  const interrupted = new Promise<undefined>((resolve) => {
    interrupt = () => resolve(undefined)
  })
  end.addEventListener('abort', interrupt)
  try {
    for (let last = start; !end.aborted; ) {
      const reading = store.read((connection) => look(connection, last))
      // Where it is waited for no longer, nobody hears of its failure.
      reading.catch(() => {})
      const found = await Promise.race([reading, interrupted])
      if (!found) break
      for (const message of found.messages) {
        if (end.aborted) break
        yield message
      }
      if (found.last === last) await store.commits.moreThan(found.commits, end)
      last = found.last
    }
    signal?.throwIfAborted()
  } finally {
    end.removeEventListener('abort', interrupt)
  }
}
