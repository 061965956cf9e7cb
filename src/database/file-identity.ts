import { realpathSync, statSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'

/**
 * The same text for every path to one file: symlinks, hard links, other spellings. undefined where there is no file,
 * or none that can be reached: opening it will say why.
 */
export function fileIdentity(path: string): string | undefined {
  try {
    const { dev, ino } = statSync(path, { bigint: true })
    // Some file systems of Windows do not number their files.
    return ino === 0n ? realPath(path) : `${dev}:${ino}`
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
