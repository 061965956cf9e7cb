import { realpathSync, statSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'

/** Which file a path leads to, as the system numbers it. */
export interface FileIdentity {
  dev: number
  ino: number
}

/** The file at a path now; null where there is none. Never opens it. */
export function identityOf(path: string): FileIdentity | null {
  const stats = statSync(path, { throwIfNoEntry: false })
  return stats ? { dev: stats.dev, ino: stats.ino } : null
}

/**
 * The same text for every path to one file: symlinks, hard links, other spellings. undefined where there is no file,
 * or none that can be reached: opening it will say why.
 */
export function fileKey(path: string): string | undefined {
  try {
    const identity = identityOf(path)
    if (identity === null) return undefined
    // Some file systems of Windows do not number their files.
    return identity.ino === 0 ? realPath(path) : `${identity.dev}:${identity.ino}`
  } catch {
    return undefined
  }
}

/** The path without symlinks, as far as it leads to something that is there. */
export function realPath(path: string): string {
  try {
    return realpathSync.native(path)
  } catch {
    const folder = dirname(path)
    return folder === path ? path : join(realPath(folder), basename(path))
  }
}

/** The size of the write-ahead log of a file, in bytes; 0 where there is none. */
export function walSize(path: string): number {
  return statSync(`${realPath(path)}-wal`, { throwIfNoEntry: false })?.size ?? 0
}
