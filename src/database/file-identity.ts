import { statSync } from 'node:fs'

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

/** The size of the write-ahead log of a file, in bytes; 0 where there is none. */
export function walSize(path: string): number {
  return statSync(`${path}-wal`, { throwIfNoEntry: false })?.size ?? 0
}
