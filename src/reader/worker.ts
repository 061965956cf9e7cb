import { setImmediate as nextTick } from 'node:timers/promises'
import { parentPort, workerData } from 'node:worker_threads'
import type { Connection } from '../database/connection.ts'
import { fileKey } from '../database/file-identity.ts'
import { openConnection } from '../database/open-connection.ts'
import { makeViews } from '../database/views.ts'
import { patiently } from '../database/waiting.ts'
import type { EventHandler } from '../events.ts'
import type { Pages } from '../search/pages.ts'
import { toFailure } from './failure.ts'
import { type FromThread, find, type ReaderData, type ToThread } from './protocol.ts'

/** The other thread of a store: searches on a connection of its own, which only reads. */

interface Running {
  pages: Pages<unknown>
  abort: AbortController
}

const { path, identity, busyTimeout, shape, complete, closed }: ReaderData = workerData
const running = new Map<number, Running>()

const post = (message: FromThread) => parentPort?.postMessage(message)
const events: EventHandler = (event) => post({ type: 'event', event })

async function open(): Promise<Connection> {
  const connection = await openConnection({
    path,
    readonly: true,
    synchronous: 'normal',
    busyTimeout,
    signal: undefined,
    events,
  })
  if (fileKey(path) !== identity) throw new Error('another file is there now')
  connection.setUp(() => makeViews(connection, shape, complete))
  return connection
}

async function listen(): Promise<void> {
  const connection = await open()
  const executor = {
    async read<T>(body: (connection: Connection) => T): Promise<T> {
      // What was said meanwhile comes first: that the search is to stop.
      await nextTick()
      return patiently(() => body(connection), busyTimeout)
    },
  }
  parentPort?.on('message', (message: ToThread) => {
    if (message.type === 'close') {
      connection.close()
      Atomics.store(closed, 0, 1)
      Atomics.notify(closed, 0)
      return
    }
    const { id } = message
    if (message.type === 'find') {
      const { search, indexes } = message
      const abort = new AbortController()
      const context = { executor, events, indexes }
      running.set(id, { pages: find(context, search, abort.signal), abort })
    }
    if (message.type === 'stop') {
      running.get(id)?.abort.abort()
      running.delete(id)
    } else void sendPage(id)
  })
  post({ type: 'ready' })
}

async function sendPage(id: number): Promise<void> {
  const search = running.get(id)
  if (!search) return
  try {
    const { value, done = false } = await search.pages.next()
    if (done) running.delete(id)
    post({ type: 'page', id, rows: value, last: done })
  } catch (error) {
    running.delete(id)
    post({ type: 'failed', id, failure: toFailure(error) })
  }
}

void listen()
