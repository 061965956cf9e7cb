import { checkCount } from './arguments.ts'
import { BUSY_TIMEOUT_MS } from './database/limits.ts'
import { OptionConflictError } from './errors.ts'
import type { EventHandler } from './events.ts'

export interface OpenOptions {
  /** The file. Default: `$HERMES_HOME/state.db`, else `~/.hermes/state.db`. `:memory:` is a store of its own. */
  path?: string
  /** Write nothing: no migration, no checkpoint. Columns that an older file lacks read as null. Default false. */
  readonly?: boolean
  /** Bring an older, incomplete or new file up to date. Default true; false refuses such a file. */
  migrate?: boolean
  /**
   * Tables and indexes beside Hermes's own. Default true; false leaves the file exactly at Hermes schema 6.
   * What a file already has stays and is kept up either way.
   */
  additions?: boolean
  /**
   * A file of a Hermes schema above 6. `readonly` (default): it is only read. `write`: sessions, messages, titles
   * and usage are written too, and its own indexes and counters stay right; it is never migrated. `refuse`.
   */
  newerSchema?: 'readonly' | 'write' | 'refuse'
  /** `full` (default): an acknowledged message survives a power cut. `normal`: the last ones may not, and writes are faster. */
  synchronous?: 'full' | 'normal'
  /**
   * `wal`: readers and writers do not block each other; opening fails where SQLite cannot do that. `delete`: a rollback
   * journal, for network file systems, where WAL is not safe; a file in WAL mode is changed while nobody else has it
   * open, and all processes must say the same. Default: `wal` where it goes, with an event where it does not.
   */
  journalMode?: 'wal' | 'delete'
  /** Milliseconds that a write, or opening, waits for another process's lock. Default 20,000. */
  busyTimeout?: number
  /** Search in another thread. Default true; a file that is not in WAL mode, or in memory, is searched in this one. */
  worker?: boolean
  /** Gives up opening. */
  signal?: AbortSignal
  /** What a user of the store may want to know. Default: what must be known goes to `process.emitWarning`. */
  onEvent?: EventHandler
}

/** Options that hold for a file, whichever of its stores uses it. */
export type SharedOptions = Required<
  Pick<OpenOptions, 'readonly' | 'additions' | 'newerSchema' | 'synchronous' | 'busyTimeout'>
> &
  Pick<OpenOptions, 'journalMode'>

/** What holds for a file that is open: its journal mode is the one it has. */
export type InForce = Omit<SharedOptions, 'journalMode'> & { journalMode: string }

/** @throws TypeError for options that are not valid. */
export function checkOptions({
  readonly = false,
  additions = true,
  newerSchema = 'readonly',
  synchronous = 'full',
  journalMode,
  busyTimeout = BUSY_TIMEOUT_MS,
}: OpenOptions): SharedOptions {
  checkCount(busyTimeout, 'busyTimeout')
  if (synchronous !== 'full' && synchronous !== 'normal')
    throw new TypeError("synchronous must be 'full' or 'normal'.")
  if (newerSchema !== 'readonly' && newerSchema !== 'write' && newerSchema !== 'refuse')
    throw new TypeError("newerSchema must be 'readonly', 'write' or 'refuse'.")
  if (journalMode !== undefined && journalMode !== 'wal' && journalMode !== 'delete')
    throw new TypeError("journalMode must be 'wal' or 'delete'.")
  return { readonly, additions, newerSchema, synchronous, journalMode, busyTimeout }
}

/**
 * Refuses options that differ from those a file is already open with. What is left out agrees with all.
 *
 * @throws OptionConflictError
 */
export function assertAgrees(path: string, given: OpenOptions, inForce: InForce): void {
  for (const [name, value] of Object.entries(inForce)) {
    const wanted = given[name as keyof InForce]
    if (wanted !== undefined && wanted !== value) throw new OptionConflictError(path, name, wanted, value)
  }
}
