/** The Hermes schema this package reads and writes. */
export const SCHEMA_VERSION = 6

/** Milliseconds a call waits for another process's lock unless `busyTimeout` says otherwise. */
export const BUSY_TIMEOUT_MS = 20_000

/** The first and the longest delay between two tries for the write lock, in milliseconds. */
export const WRITE_RETRY_MIN_MS = 1
export const WRITE_RETRY_MAX_MS = 50

/** A passive checkpoint follows this many successful writes. */
export const CHECKPOINT_EVERY_N_WRITES = 50

/**
 * How long SQLite itself may wait for a lock, in milliseconds: the event loop stands still meanwhile. Short
 * enough not to be felt, long enough that a commit of another process (about 0.2 ms) is usually waited out.
 */
export const SQLITE_WAIT_MS = 5

/** The size a write-ahead log is cut back to, and beyond which it is reported, in bytes. */
export const WAL_LIMIT_BYTES = 64 * 1024 * 1024

/** The size from which a write-ahead log is made to begin anew, in bytes. */
export const WAL_RESTART_BYTES = 16 * 1024 * 1024

/** How long a caller's transaction may stay open, in milliseconds. */
export const TRANSACTION_LIMIT_MS = 5_000

/** How long grouped writes may run in one tick before the event loop gets its turn, in milliseconds. */
export const TICK_BUDGET_MS = 8

/** A statement that runs longer than this is reported, in milliseconds. */
export const SLOW_QUERY_MS = 250

/** Segments of the indexes are merged after this many successful writes. */
export const TIDY_EVERY_N_WRITES = 500

/** Rows that one statement inserts: more gain little, and hold up the event loop longer. */
export const ROWS_AT_ONCE = 25

/** Messages written, moved, deleted or read before the event loop gets its turn: a multiple of {@link ROWS_AT_ONCE}. */
export const STEP = 250

/** How often it is made sure that the write-ahead log is still the one that was opened, in milliseconds. */
export const FILE_CHECK_MS = 25

/** How often a store that is watched looks for what other processes have committed, in milliseconds. */
export const WATCH_POLL_MS = 25

/** The longest path that SQLite opens on Unix, and the longest name that leaves room for `-journal`, in bytes. */
export const MAX_PATH_BYTES = 504
export const MAX_NAME_BYTES = 247
