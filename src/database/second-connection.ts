import { FileReplacedError } from '../errors.ts'
import type { EventHandler } from '../events.ts'
import type { Connection } from './connection.ts'
import { openConnection, openImage } from './open-connection.ts'
import type { StoreHandle } from './store-handle.ts'

/**
 * Opens another connection to a store's file, to read from. Only there can a read transaction be held open while the
 * store writes on. Of a store in memory it is a copy. Use it inside `besideConnection`.
 *
 * @throws FileReplacedError where another file is at the path now.
 */
export async function openSecond(
  store: StoreHandle,
  events: EventHandler,
  signal: AbortSignal | undefined,
): Promise<Connection> {
  const { path, file, image } = await store.read((connection) => ({
    path: connection.path,
    file: connection.file,
    image: connection.file ? undefined : connection.image(),
  }))
  if (image) return openImage(image, events)
  const second = await openConnection({
    path,
    readonly: true,
    synchronous: 'full',
    busyTimeout: store.busyTimeout,
    signal,
    events,
  })
  if (second.file?.dev === file?.dev && second.file?.ino === file?.ino) return second
  second.close()
  throw new FileReplacedError(path, second.file === null)
}
