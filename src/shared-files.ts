import { fileKey, realPath } from './database/file-identity.ts'
import type { RepositoryContext } from './database/repository.ts'
import type { WriteQueue } from './database/write-queue.ts'
import { CannotOpenError, FileInUseError } from './errors.ts'
import type { FileEvents } from './events.ts'
import type { InForce } from './options.ts'
import type { Reader } from './reader/reader.ts'
import type { StoreInfo } from './store.ts'

/** An open state file: all that its stores in this process share. */
export interface OpenFile {
  queue: WriteQueue
  /** Where it can be searched in another thread. */
  reader: Reader | null
  events: FileEvents
  info: StoreInfo
  options: InForce
  context: Omit<RepositoryContext, 'executor'>
}

/** A store's part in an open file. */
export interface Share {
  file: OpenFile
  /** Whether it was opened for this store. */
  opened: boolean
  /** Gives it back, once: closes the file where no other store has it, else waits for the writes in line. */
  leave(): Promise<void>
}

interface Entry {
  file: OpenFile
  stores: number
  closing: Promise<void> | undefined
}

/** By identity: two connections of a process to one file would share locks, and write past each other's lines. */
const entries = new Map<string, Entry>()

/** Openings under way, by real path and by identity. */
const openings = new Map<string, Promise<unknown>>()

/**
 * A share in the file at `path`: of the one that is open already, unless `join` refuses that by throwing, else of one
 * that `open` opens. A file that is being opened or closed is waited for.
 *
 * @throws what `join` and `open` throw, and the reason of `signal`.
 */
export async function shareFile(
  path: string,
  signal: AbortSignal | undefined,
  join: (file: OpenFile) => void,
  open: () => Promise<OpenFile>,
): Promise<Share> {
  for (;;) {
    const keys = [realPath(path), fileKey(path) ?? '']
    const entry = entries.get(keys[1]!)
    const pending = entry ? entry.closing : (openings.get(keys[0]!) ?? openings.get(keys[1]!))
    // Afterwards it may be another file, or none.
    if (pending) await untilAborted(pending, signal)
    else if (entry) {
      join(entry.file)
      return share(entry, false)
    } else return share(await opening(path, keys, open), true)
  }
}

/**
 * Refuses a file that this process has open, or is opening or closing.
 *
 * @throws FileInUseError
 */
export function assertNotOpen(path: string): void {
  const key = fileKey(path)
  const isOpen = key !== undefined && (entries.has(key) || openings.has(key))
  if (isOpen || openings.has(realPath(path))) throw new FileInUseError(path, true)
}

/** The whole of a file that no other store can share. */
export function keepFile(file: OpenFile): Share {
  return { file, opened: true, leave: () => close(file) }
}

async function opening(path: string, keys: string[], open: () => Promise<OpenFile>): Promise<Entry> {
  const file = open()
  for (const key of keys) openings.set(key, file)
  try {
    const entry: Entry = { file: await file, stores: 0, closing: undefined }
    const identity = fileKey(path)
    if (identity === undefined) {
      await close(entry.file)
      throw new CannotOpenError(`'${path}' was removed while it was opened: open it again.`)
    }
    entries.set(identity, entry)
    return entry
  } finally {
    for (const key of keys) openings.delete(key)
  }
}

function share(entry: Entry, opened: boolean): Share {
  entry.stores++
  return {
    file: entry.file,
    opened,
    leave() {
      entry.stores--
      if (entry.stores > 0) return entry.file.queue.untilPassed()
      entry.closing = close(entry.file).finally(() => {
        for (const [identity, other] of entries) if (other === entry) entries.delete(identity)
      })
      return entry.closing
    },
  }
}

/** The last connection to be closed puts the write-ahead log away: it must be the one that may write. */
async function close({ reader, queue }: OpenFile): Promise<void> {
  await reader?.close()
  await queue.close()
}

/** Waits until a promise is settled, or rejects with the signal's reason. */
async function untilAborted(pending: Promise<unknown>, signal: AbortSignal | undefined): Promise<void> {
  signal?.throwIfAborted()
  let abort = () => {}
  const aborted = new Promise<never>((_, reject) => {
    abort = () => reject(signal?.reason)
  })
  signal?.addEventListener('abort', abort)
  try {
    await Promise.race([Promise.allSettled([pending]), aborted])
  } finally {
    signal?.removeEventListener('abort', abort)
  }
}
