import { statfs } from 'node:fs/promises'
import { dirname } from 'node:path'
import type { Connection } from '../database/connection.ts'

/** `done`, or why the file was not written anew. */
export type Vacuum = 'done' | 'little-free' | 'disk-too-full' | 'disk-unknown'

export interface FileUse {
  /** Bytes of pages that hold something, and of pages that do not. */
  used: number
  free: number
}

export function fileUse(connection: Connection): FileUse {
  const { pageSize } = connection
  const free = Number(connection.pragma('freelist_count')) * pageSize
  return { used: Number(connection.pragma('page_count')) * pageSize - free, free }
}

/**
 * Whether writing the file anew is worth it and can be done: SQLite makes a second file of what is used, and then
 * writes that to the log.
 *
 * @param available Bytes on the disk; null where the system does not say.
 * @returns why not, or null.
 */
export function whyNotVacuum(
  { used, free }: FileUse,
  available: number | null,
): Exclude<Vacuum, 'done'> | null {
  if (free <= (used + free) / 4) return 'little-free'
  if (available === null) return 'disk-unknown'
  return available < 2 * used ? 'disk-too-full' : null
}

/** Bytes that this user may still write on the disk of a file; null where the system does not say. */
export async function bytesAvailable(path: string): Promise<number | null> {
  try {
    const { bavail, bsize, blocks } = await statfs(dirname(path))
    // Some network disks answer with nothing but zeros.
    return blocks > 0 ? bavail * bsize : null
  } catch {
    return null
  }
}
