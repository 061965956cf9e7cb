import { statSync } from 'node:fs'
import Database from 'better-sqlite3'
import { FileInUseError } from '../errors.ts'
import { SQLITE_WAIT_MS } from './limits.ts'
import { isBusy, isFileDamage, needsRecovery } from './sqlite-errors.ts'

/**
 * Keeps every other connection out of a file that is about to get another name, and returns what unlocks it after
 * that. Not a byte of the file or of its log changes, whatever state they are in. Sees each connection in write-ahead
 * mode, which keeps a lock on the file as long as it is open; one with a rollback journal only while it reads or
 * writes.
 *
 * @throws FileInUseError, SQLite's errors.
 */
export function lockOut(path: string): () => void {
  // Windows itself does not let go of the name of a file that is open, by whomever.
  if (process.platform === 'win32') return unlocked
  // SQLite deletes the log of a file without pages, and rolls a transaction back that a dead process left.
  if (sizeOf(path) === 0 || isHalfWritten(path)) return unlocked
  const db = new Database(path, { fileMustExist: true, timeout: SQLITE_WAIT_MS })
  try {
    // So that it needs the file to itself, and no -shm. https://sqlite.org/wal.html#noshm
    db.pragma('locking_mode = exclusive')
    db.exec('begin exclusive')
  } catch (error) {
    // A file that is no database any more: SQLite asks who else has it open only where there is something in its log.
    if (!isFileDamage(error)) {
      db.close()
      throw isBusy(error) ? new FileInUseError(path, false, { cause: error }) : error
    }
  }
  // Of a file that has lost its name, SQLite does not move the log into it when it closes.
  return () => db.close()
}

function unlocked(): void {}

/** Whether a process died in a transaction that is in the rollback journal: then nobody is in it now. */
function isHalfWritten(path: string): boolean {
  if (sizeOf(`${path}-journal`) === 0) return false
  const db = new Database(path, { readonly: true, timeout: SQLITE_WAIT_MS })
  try {
    db.exec('select 1 from sqlite_schema')
    return false
  } catch (error) {
    return needsRecovery(error)
  } finally {
    db.close()
  }
}

const sizeOf = (path: string): number => statSync(path, { throwIfNoEntry: false })?.size ?? 0
