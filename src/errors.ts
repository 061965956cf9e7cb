/** Every `code` a {@link StateStoreError} can carry. */
export type StateStoreErrorCode =
  | 'BUSY'
  | 'CLOSED'
  | 'READONLY'
  | 'SESSION_NOT_FOUND'
  | 'SESSION_ENDED'
  | 'SESSION_CONTINUED'
  | 'SESSION_EXISTS'
  | 'CONFLICT'
  | 'PARENT_NOT_FOUND'
  | 'LINEAGE_CYCLE'
  | 'TITLE_IN_USE'
  | 'TRANSACTION_MISUSE'
  | 'TRANSACTION_TIMEOUT'
  | 'NOT_A_STATE_FILE'
  | 'UNSUPPORTED_SCHEMA'
  | 'MIGRATION_NEEDED'
  | 'MIGRATION_FAILED'
  | 'CANNOT_OPEN'
  | 'DAMAGED'
  | 'DISK_FULL'
  | 'FILE_REPLACED'
  | 'FILE_IN_USE'
  | 'OPTION_CONFLICT'
  | 'TARGET_EXISTS'
  | 'EXPORT_INTERRUPTED'
  | 'BAD_BUNDLE'
  | 'TEXT_REMAINS'
  | 'DATABASE'

/**
 * What every failure of the store that is not a mistake in an argument is an instance of. The message is a
 * sentence that says what to do; `cause` is the SQLite error where there is one. Mistakes in arguments are
 * `TypeError`s, raised before anything is read or written.
 */
export abstract class StateStoreError extends Error {
  abstract readonly code: StateStoreErrorCode

  constructor(message: string, options?: ErrorOptions) {
    super(message, options)
    this.name = new.target.name
  }
}

/** Another process held the write lock for longer than `busyTimeout`. */
export class StateStoreBusyError extends StateStoreError {
  readonly code = 'BUSY'

  constructor(
    /** How long the call waited, in milliseconds. */
    readonly waited_ms: number,
    options?: ErrorOptions,
  ) {
    super(
      `Another process kept the state file locked for ${(waited_ms / 1000).toFixed(1)} s. Nothing was written and ` +
        'the file is healthy: try again, or open the store with a longer busyTimeout.',
      options,
    )
  }
}

/** The store was closed before the call. */
export class StateStoreClosedError extends StateStoreError {
  readonly code = 'CLOSED'

  constructor() {
    super('The store is closed: open it again with openStateStore() before using it.')
  }
}

/** A write on a store that was opened read-only, or on a file this process may not write. */
export class ReadonlyStoreError extends StateStoreError {
  readonly code = 'READONLY'
}

/** No session has this id. */
export class SessionNotFoundError extends StateStoreError {
  readonly code = 'SESSION_NOT_FOUND'

  constructor(readonly session_id: string) {
    super(`There is no session '${session_id}': create it with sessions.create() or sessions.ensure() first.`)
  }
}

/** A session that has ended and has to be open: for `requireOpen`, or to be continued. */
export class SessionEndedError extends StateStoreError {
  readonly code = 'SESSION_ENDED'

  constructor(
    readonly session_id: string,
    readonly end_reason: string | null,
    /** The session in which the conversation goes on, where it was continued; else null. */
    readonly tip: string | null = null,
  ) {
    super(
      `Session '${session_id}' has ended (${end_reason ?? 'no reason given'}): ` +
        (tip === null
          ? 'reopen it with sessions.reopen() first. Messages are also taken without requireOpen.'
          : `the conversation goes on in '${tip}'. Use that one; nothing was written.`),
    )
  }
}

/** A session that somebody else has continued already. */
export class SessionContinuedError extends StateStoreError {
  readonly code = 'SESSION_CONTINUED'

  constructor(
    readonly session_id: string,
    /** The child that continues it. */
    readonly child_session_id: string,
    /** The session in which the conversation goes on now, as `lineage.tip()` says: that child, or one after it. */
    readonly tip: string,
  ) {
    super(
      `Session '${session_id}' has been continued already: the conversation goes on in '${tip}'. Use that one; ` +
        'nothing was written.',
    )
  }
}

/** A new session under an id that another one has. */
export class SessionExistsError extends StateStoreError {
  readonly code = 'SESSION_EXISTS'

  constructor(readonly session_id: string) {
    super(
      `There is a session '${session_id}' already: choose another id, or leave it out. Nothing was written.`,
    )
  }
}

/** A session has other messages than the caller has seen. */
export class ConflictError extends StateStoreError {
  readonly code = 'CONFLICT'

  constructor(
    readonly session_id: string,
    /** The id of the last message that the caller expected; null for none. */
    readonly expected: number | null,
    /** The id of the last message there is; null for none. */
    readonly actual: number | null,
  ) {
    super(
      `Session '${session_id}' is not as it was seen: its last message is ${actual ?? 'none'}, not ` +
        `${expected ?? 'none'}. Nothing was written: read its messages again before the next try.`,
    )
  }
}

/** The parent that a session names does not exist. */
export class ParentNotFoundError extends StateStoreError {
  readonly code = 'PARENT_NOT_FOUND'

  constructor(
    readonly session_id: string,
    readonly parent_session_id: string,
  ) {
    super(
      `The parent '${parent_session_id}' of session '${session_id}' does not exist: create the parent first, or ` +
        'create the session without one and call create() again with the parent later.',
    )
  }
}

/** A parent that is the session itself or one of its descendants. */
export class LineageCycleError extends StateStoreError {
  readonly code = 'LINEAGE_CYCLE'

  constructor(
    readonly session_id: string,
    readonly parent_session_id: string,
  ) {
    super(
      `Session '${parent_session_id}' cannot be the parent of '${session_id}': it is that session itself or ` +
        'descends from it. Choose a parent outside its own line.',
    )
  }
}

/** Another session has the title. */
export class TitleInUseError extends StateStoreError {
  readonly code = 'TITLE_IN_USE'

  constructor(
    readonly title: string,
    /** The session that has it, and its source. */
    readonly session_id: string,
    readonly source: string,
  ) {
    super(
      `The title '${title}' is already in use by session '${session_id}' (${source}): choose another, or take ` +
        'the next free one with titles.next() or titles.setIfEmpty().',
    )
  }
}

/** The store was used in a way that an open transaction does not allow. */
export class TransactionMisuseError extends StateStoreError {
  readonly code = 'TRANSACTION_MISUSE'
}

/** A transaction stayed open for too long and was rolled back. */
export class TransactionTimeoutError extends StateStoreError {
  readonly code = 'TRANSACTION_TIMEOUT'

  constructor(limit_ms: number) {
    super(
      `The transaction was open for over ${limit_ms / 1000} s and was rolled back, because no other process can ` +
        'write meanwhile. Do slow work (network calls, model calls) before it or after it.',
    )
  }
}

/** The file is a database of something else, or no database at all. It was not touched. */
export class NotAStateFileError extends StateStoreError {
  readonly code = 'NOT_A_STATE_FILE'
}

/** The file has a schema that this version of the package does not open, or not for this call. It was not touched. */
export class UnsupportedSchemaError extends StateStoreError {
  readonly code = 'UNSUPPORTED_SCHEMA'
}

/** The file is behind and the store was opened with `migrate: false`. */
export class MigrationNeededError extends StateStoreError {
  readonly code = 'MIGRATION_NEEDED'
}

/** A migration failed; the file is as it was before. */
export class MigrationFailedError extends StateStoreError {
  readonly code = 'MIGRATION_FAILED'
}

/** The file or its folder cannot be opened: missing, a directory, or no permission. */
export class CannotOpenError extends StateStoreError {
  readonly code = 'CANNOT_OPEN'
}

/** SQLite found the file itself damaged. */
export class DamagedFileError extends StateStoreError {
  readonly code = 'DAMAGED'
}

/** The disk, or the quota, is full. A write to the store left nothing behind. */
export class DiskFullError extends StateStoreError {
  readonly code = 'DISK_FULL'
}

/** The file is open in this process with another value of an option. */
export class OptionConflictError extends StateStoreError {
  readonly code = 'OPTION_CONFLICT'

  constructor(
    readonly path: string,
    /** The name of the option. */
    readonly option: string,
    given: unknown,
    inForce: unknown,
  ) {
    super(
      `'${path}' is open in this process with ${option}: ${JSON.stringify(inForce)}, and all its stores share one connection: ` +
        `leave out ${option}: ${JSON.stringify(given)}, or close the other stores first.`,
    )
  }
}

/**
 * The file was renamed, deleted or replaced by another one while it was open: a write would go to a file that nobody
 * reads. Nothing was written; where the file is put back, writes work again.
 */
export class FileReplacedError extends StateStoreError {
  readonly code = 'FILE_REPLACED'

  constructor(
    readonly path: string,
    /** Whether nothing is there now. */
    readonly gone: boolean,
    options?: ErrorOptions,
  ) {
    super(
      gone
        ? `'${path}' was deleted or renamed while it was open. Nothing was written: put it back, or close the store and open it again where the file is.`
        : `'${path}' was replaced by another file while it was open. Nothing was written: close the store and open it again.`,
      options,
    )
  }
}

/** A file that was to be moved or replaced, and that somebody has open. It was not touched. */
export class FileInUseError extends StateStoreError {
  readonly code = 'FILE_IN_USE'

  constructor(
    readonly path: string,
    /** Whether a store of this process has it open. */
    readonly here: boolean,
    options?: ErrorOptions,
  ) {
    super(
      here
        ? `'${path}' is open in this process: close its stores first. It was not touched.`
        : `'${path}' is open elsewhere, most likely in another process: end that or have it close the file first. It was not touched.`,
      options,
    )
  }
}

/** There is a file already where one was to be written. Neither was touched. */
export class TargetExistsError extends StateStoreError {
  readonly code = 'TARGET_EXISTS'

  constructor(readonly path: string) {
    super(`'${path}' is there already, and is not overwritten: give another path, or move it away first.`)
  }
}

/** A session is deleted, and the bytes of the file, or of its write-ahead log, still hold text of it. */
export class TextRemainsError extends StateStoreError {
  readonly code = 'TEXT_REMAINS'

  constructor(
    readonly session_id: string,
    reason: string,
    options?: ErrorOptions,
  ) {
    super(
      `Session '${session_id}' is deleted, but text of it may remain in the file or its write-ahead log. ${reason} Then call maintenance.purge() with the same id again: it goes on from there.`,
      options,
    )
  }
}

/** Any other error of SQLite. */
export class DatabaseError extends StateStoreError {
  readonly code = 'DATABASE'

  constructor(
    message: string,
    /** SQLite's extended result code by name, for example `SQLITE_CONSTRAINT_CHECK`. */
    readonly sqlite_code: string,
    options?: ErrorOptions,
  ) {
    super(message, options)
  }
}

/** An export whose file had to be opened again, because its write-ahead log was deleted or replaced. */
export class ExportInterruptedError extends StateStoreError {
  readonly code = 'EXPORT_INTERRUPTED'

  constructor() {
    super(
      'The write-ahead log of the file was deleted or replaced while it was exported: export it again, this one is not whole.',
    )
  }
}

/** A file to import that is not what it should be, or not whole. Nothing was written. */
export class BadBundleError extends StateStoreError {
  readonly code = 'BAD_BUNDLE'
}
