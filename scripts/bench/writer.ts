/** One of the processes that write a file together: rounds as `writers.ts` orders them, until it disconnects. */
import { once } from 'node:events'
import { monitorEventLoopDelay } from 'node:perf_hooks'
import { setTimeout as delay, setImmediate as turn } from 'node:timers/promises'
import Database from 'better-sqlite3'
import { type NewMessage, openStateStore } from '../../src/index.ts'
import { message } from './data.ts'
import { rawAppend } from './raw-append.ts'

/** What a process is to do in a round. */
export interface Order {
  side: 'ours' | 'raw'
  path: string
  /** When to append, in milliseconds after the start; null is one after the other for `seconds`. */
  times: number[] | null
  seconds: number
}

/** What came of it. */
export interface Written {
  /** Milliseconds from when each acknowledged append was due until then. */
  latencies_ms: number[]
  /** Between two looks of the event loop 5 ms apart: up to 5 ms more than it was blocked. */
  longest_block_ms: number
  /** The errors of appends that were not. */
  refusals: string[]
}

interface Writer {
  append(item: NewMessage): Promise<unknown>
  close(): unknown
}

const messages = Array.from({ length: 100 }, message)
const now = () => performance.timeOrigin + performance.now()

process.on('disconnect', () => process.exit())
for (;;) {
  const [order] = (await once(process, 'message')) as [Order]
  const writer = order.side === 'ours' ? await openOurs(order.path) : openRaw(order.path)
  process.send?.('ready')
  const [start] = (await once(process, 'message')) as [number]
  const written = await write(writer, order, start)
  await writer.close()
  process.send?.(written)
}

async function openOurs(path: string): Promise<Writer> {
  const store = await openStateStore({ path })
  return { append: (item) => store.messages.append('bench', item), close: () => store.close() }
}

function openRaw(path: string): Writer {
  const db = new Database(path, { timeout: 5_000 })
  db.pragma('synchronous = full')
  db.pragma('foreign_keys = on')
  const append = rawAppend(db)
  return {
    // The event loop gets its turn between two appends, as it does with the store.
    append: async (item) => {
      await turn()
      append([item])
    },
    close: () => db.close(),
  }
}

async function write(writer: Writer, { times, seconds }: Order, start: number): Promise<Written> {
  const latencies_ms: number[] = []
  const refusals: string[] = []
  let appends = 0
  const append = async (due: number) => {
    try {
      await writer.append(messages[appends++ % messages.length]!)
      latencies_ms.push(now() - due)
    } catch (error) {
      refusals.push(String(error))
    }
  }

  await delay(start - now())
  // Looks of 16 processes every millisecond would take a third of a processor.
  const blocks = monitorEventLoopDelay({ resolution: 5 })
  blocks.enable()
  if (times) {
    // Whoever sends a message does not wait for those before it.
    const sent: Promise<void>[] = []
    for (const time of times) {
      while (now() < start + time) await delay(start + time - now())
      sent.push(append(start + time))
    }
    await Promise.all(sent)
  } else while (now() < start + seconds * 1_000) await append(now())
  blocks.disable()
  return { latencies_ms, longest_block_ms: blocks.max / 1e6, refusals }
}
