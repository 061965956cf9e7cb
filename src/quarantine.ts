import { randomBytes } from 'node:crypto'
import { existsSync, linkSync, rmSync, statSync, unlinkSync } from 'node:fs'
import { dirname } from 'node:path'
import { lockOut } from './database/exclusive-lock.ts'
import { fileSize, SIDECARS } from './database/file-access.ts'
import { realPath } from './database/file-identity.ts'
import { toStoreError } from './database/sqlite-errors.ts'
import { CannotOpenError, FileInUseError, StateStoreError } from './errors.ts'
import { checkTarget, syncFolder } from './new-file.ts'
import { assertNotOpen } from './shared-files.ts'

/**
 * Moves a file that is damaged, or not wanted any more, to a new name beside its place, together with its `-wal`,
 * `-shm` and `-journal`: under that name they are still one SQLite file. Its bytes stay as they are, and no other file
 * is overwritten. Takes any file, also one that is no database. Needs hard links.
 *
 * A file that is open is refused, in this process or in another. Three connections of others cannot be seen: one with a
 * rollback journal (`journalMode: 'delete'`) that does nothing at the moment; one to a file that has become unreadable,
 * with nothing in its log; one to a file that was cut to 0 bytes. End those processes first.
 *
 * @returns the path of the file now, absolute: `state.db.quarantine-20261203T130500Z-1a2b3c4d`.
 * @throws FileInUseError, ReadonlyStoreError, CannotOpenError where there is no file, or where it cannot be moved: it is
 * as it was then.
 * @example
 * const aside = await quarantineStateFile('/home/ada/.hermes/state.db')
 */
export async function quarantineStateFile(path: string): Promise<string> {
  const absolute = checkTarget(path)
  const aside = moveAside(realPath(absolute))
  if (aside === null) throw new CannotOpenError(`There is no file at '${absolute}': check the path.`)
  return aside
}

/**
 * Moves a file aside, or what is left beside one that is gone, in one tick: nobody in this process can open it in
 * between. `path` has no symbolic links. Returns the new name, null where nothing was there.
 *
 * Everything gets its second name before anything loses its first: wherever the process dies, a file and its log are
 * together under one of them. The file loses its name before its log does: SQLite would take it without for whole,
 * where a log without its file is a name that may go.
 */
export function moveAside(path: string): string | null {
  const isThere = fileSize(path) !== undefined
  if (!isThere && !SIDECARS.some((end) => existsSync(path + end))) return null
  assertNotOpen(path)
  const aside = `${path}.quarantine-${new Date().toISOString().replaceAll(/[-:]|\.\d+/g, '')}-${randomBytes(4).toString('hex')}`
  const given: string[] = []
  // Unlike a rename, a link never takes a name that somebody has; nor does it open the file, and closing one drops
  // the locks that this process has on it.
  const link = (end: string) => {
    linkSync(path + end, aside + end)
    given.push(aside + end)
  }
  let unlock = () => {}
  let isMoved = false
  try {
    if (isThere) {
      // Before it is locked: unlocking a file that could not be moved would write its log into it.
      link('')
      unlock = lockOut(path)
    }
    // To lock it, SQLite may have begun an empty log.
    for (const end of SIDECARS) if (statSync(path + end, { throwIfNoEntry: false })?.size) link(end)
    syncFolder(dirname(path))
    if (isThere) unlinkSync(path)
    isMoved = true
    for (const end of SIDECARS) rmSync(path + end, { force: true })
    syncFolder(dirname(path))
    return aside
  } catch (error) {
    if (!isMoved) for (const name of given) rmSync(name, { force: true })
    throw cannotMove(path, isMoved ? aside : null, error)
  } finally {
    unlock()
  }
}

function cannotMove(path: string, aside: string | null, cause: unknown): unknown {
  const error = toStoreError(cause, path)
  if (error instanceof StateStoreError) return error
  const code = error instanceof Error && 'code' in error ? error.code : undefined
  if (code === 'EBUSY') return new FileInUseError(path, false, { cause })
  return new CannotOpenError(
    aside === null
      ? `'${path}' cannot be moved aside (${code}): check that this user may write in its folder, and that its file system has hard links. It is as it was; where neither can be helped, move it by hand together with its -wal file while no process has it open.`
      : `'${path}' was moved to '${aside}', but files of it are left (${code}): remove '${path}-wal', '${path}-shm' and '${path}-journal', which are there too.`,
    { cause },
  )
}
