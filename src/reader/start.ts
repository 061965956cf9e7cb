import { pathToFileURL } from 'node:url'
import { Worker } from 'node:worker_threads'
import type { ReaderData } from './protocol.ts'
import { workerSource } from './worker-source.ts'

declare const __filename: string | undefined

/** The module this is in, which may be a bundle, of either kind. */
const here = typeof __filename === 'string' ? pathToFileURL(__filename).href : import.meta.url

/** @throws where this process may not start threads. */
export function startWorker(data: Omit<ReaderData, 'from'>): Worker {
  const workerData: ReaderData = { ...data, from: here }
  const worker = new Worker(workerSource(here), {
    eval: true,
    workerData,
    name: 'hermes-state',
    // What the process was started with (a module to preload, the type of its input) is for its own program.
    execArgv: [],
  })
  // It keeps no process running that has nothing to search.
  worker.unref()
  return worker
}
