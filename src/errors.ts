/** Every `code` a {@link StateStoreError} can carry. */
export type StateStoreErrorCode =
  | 'BUSY'
  | 'CLOSED'
  | 'READONLY'
  | 'SESSION_NOT_FOUND'
  | 'SESSION_ENDED'
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
  | 'OPTION_CONFLICT'
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

/** A message for a session that has ended, from a caller that asked for `requireOpen`. */
export class SessionEndedError extends StateStoreError {
  readonly code = 'SESSION_ENDED'

  constructor(
    readonly session_id: string,
    readonly end_reason: string | null,
  ) {
    super(
      `Session '${session_id}' has ended (${end_reason ?? 'no reason given'}): reopen it with sessions.reopen(), ` +
        'or append without requireOpen.',
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

/** The disk, or the quota, is full. The write left nothing behind. */
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
