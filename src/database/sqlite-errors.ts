import { existsSync } from 'node:fs'
import Database from 'better-sqlite3'
import {
  DamagedFileError,
  DatabaseError,
  DiskFullError,
  FileReplacedError,
  NotAStateFileError,
  ReadonlyStoreError,
} from '../errors.ts'
import { unopenable } from './file-access.ts'

function sqliteCode(error: unknown): string | undefined {
  return error instanceof Database.SqliteError ? error.code : undefined
}

/** Whether another connection holds the lock. Includes SQLITE_BUSY_SNAPSHOT and SQLITE_BUSY_RECOVERY. */
export function isBusy(error: unknown): boolean {
  return sqliteCode(error)?.startsWith('SQLITE_BUSY') ?? false
}

/** Whether SQLite found an index of FTS5 damaged, and not the file: from any statement that writes messages. */
export function isIndexDamage(error: unknown): boolean {
  const code = sqliteCode(error)
  // The others are how it speaks of an index that has lost its settings, a part, or all.
  const GONE =
    /invalid fts5 file format|vtable constructor failed|no such table: (main\.)?(messages_fts|hs_bigrams)\b/
  return code === 'SQLITE_CORRUPT_VTAB' || (error instanceof Error && GONE.test(error.message))
}

/**
 * Whether an index of FTS5 failed, and not the file: a damaged one, one without a part, one with a tokenizer that
 * this process lacks. Only for statements that are right in themselves.
 */
export function isIndexFailure(error: unknown): boolean {
  const code = sqliteCode(error)
  return code === 'SQLITE_CORRUPT_VTAB' || code === 'SQLITE_ERROR'
}

/** Whether SQLite found the file itself damaged, and not only an index of FTS5. */
export function isFileDamage(error: unknown): error is Error {
  const code = sqliteCode(error)
  return (
    code === 'SQLITE_NOTADB' ||
    (code?.startsWith('SQLITE_CORRUPT') === true && code !== 'SQLITE_CORRUPT_VTAB')
  )
}

/** Whether SQLite refused a statement for what it says or does, not for the state of the file, its lock or the disk. */
export function isRefusal(error: unknown): boolean {
  const code = sqliteCode(error)
  return isIndexFailure(error) || code === 'SQLITE_AUTH' || (code?.startsWith('SQLITE_CONSTRAINT') ?? false)
}

/** Whether a read-only connection found a file that must be recovered after a crash before it can be read. */
export function needsRecovery(error: unknown): boolean {
  const code = sqliteCode(error instanceof ReadonlyStoreError ? error.cause : error)
  return code === 'SQLITE_READONLY_ROLLBACK' || code === 'SQLITE_READONLY_RECOVERY'
}

/** The error a caller of the package sees: SQLite's errors get a class and a sentence, others pass. */
export function toStoreError(error: unknown, path: string): unknown {
  const code = sqliteCode(error)
  if (code === undefined || !(error instanceof Error)) return error
  const cause = { cause: error }
  if (code === 'SQLITE_READONLY_ROLLBACK' || code === 'SQLITE_READONLY_RECOVERY')
    return new ReadonlyStoreError(
      `'${path}' was left half written by a process that died: open it once without readonly, so that SQLite can recover it. Leave the files beside it where they are: they hold what is missing.`,
      cause,
    )
  if (code === 'SQLITE_READONLY_DBMOVED') return new FileReplacedError(path, !existsSync(path), cause)
  if (
    code.startsWith('SQLITE_CANTOPEN') ||
    code === 'SQLITE_READONLY_DIRECTORY' ||
    code === 'SQLITE_READONLY_CANTINIT'
  )
    return unopenable(path, cause)
  if (code.startsWith('SQLITE_READONLY'))
    return new ReadonlyStoreError(
      `'${path}' cannot be written (${error.message}): check the permissions of the file and its folder, or open it with readonly: true.`,
      cause,
    )
  // The disk is full, too, where the -shm file cannot grow.
  if (code === 'SQLITE_FULL' || code === 'SQLITE_IOERR_SHMSIZE')
    return new DiskFullError(
      `The disk of '${path}' is full: free some space and repeat the call. Nothing was written.`,
      cause,
    )
  if (code === 'SQLITE_NOTADB')
    return new NotAStateFileError(
      `'${path}' is not a SQLite database: give the path of a state.db, or of a new file.`,
      cause,
    )
  if (code.startsWith('SQLITE_CORRUPT'))
    return new DamagedFileError(
      `'${path}' is damaged (${error.message}): stop writing to it, do not delete its -wal file, and put a backup in its place with restoreStateFile(backup, path, { replace: true }), which keeps both.`,
      cause,
    )
  if (code.startsWith('SQLITE_IOERR'))
    return new DatabaseError(
      `'${path}' could not be read or written (${error.message}, ${code}): check its disk and how that is mounted, and repeat the call.`,
      code,
      cause,
    )
  return new DatabaseError(`SQLite refused the call on '${path}': ${error.message} (${code}).`, code, cause)
}
