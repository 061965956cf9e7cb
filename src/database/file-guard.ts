import { existsSync, type Stats, statSync } from 'node:fs'
import { FileReplacedError } from '../errors.ts'
import { type FileIdentity, realPath } from './file-identity.ts'
import { FILE_CHECK_MS } from './limits.ts'

/**
 * Notices that a file is no longer the one that was opened: renamed, deleted, restored over; or that its write-ahead
 * log was taken away, after which SQLite goes on writing to a log that nobody else will ever read.
 *
 * The main file is looked at before every write, and whether there is a log. That it is still the same log only
 * every {@link FILE_CHECK_MS}: to stat a file that is being written takes as long as a third of the write.
 */
export class FileGuard {
  readonly #path: string
  readonly #file: FileIdentity
  readonly #log: string
  #changed: number | undefined
  #logNumber: number | undefined
  #compared = 0

  /** `file` is the one that was opened; `log` says whether it has a write-ahead log. */
  constructor(path: string, file: FileIdentity, log: boolean) {
    this.#path = path
    this.#file = file
    // SQLite keeps the log where symbolic links lead.
    this.#log = `${realPath(path)}-wal`
    this.remember(log)
  }

  /** The log that is there now is the one that was opened. */
  remember(log: boolean): void {
    this.#changed = statSync(this.#path, { throwIfNoEntry: false })?.mtimeMs
    this.#logNumber = log ? (statSync(this.#log, { throwIfNoEntry: false })?.ino ?? 0) : undefined
    this.#compared = performance.now()
  }

  /**
   * Whether the log is the one that was opened, as far as was looked.
   *
   * @throws FileReplacedError where the file is not.
   */
  holds(thoroughly = false): boolean {
    const main = this.#assertSame()
    if (this.#logNumber === undefined) return true
    if (!existsSync(this.#log)) return false
    this.#changed = main.mtimeMs
    const now = performance.now()
    if (!thoroughly && now - this.#compared < FILE_CHECK_MS) return true
    const same = statSync(this.#log, { throwIfNoEntry: false })?.ino === this.#logNumber
    if (same) this.#compared = now
    return same
  }

  /**
   * Whether nobody has begun another log, nor written to the file since the log was last seen: what is in the lost
   * log can still be moved to the file.
   */
  get isUntouched(): boolean {
    return !existsSync(this.#log) && this.#assertSame().mtimeMs === this.#changed
  }

  #assertSame(): Stats {
    const main = statSync(this.#path, { throwIfNoEntry: false })
    if (main === undefined || main.ino !== this.#file.ino || main.dev !== this.#file.dev)
      throw new FileReplacedError(this.#path, main === undefined)
    return main
  }
}
