import { checkId } from '../arguments.ts'
import { assertOwnSchema } from '../database/repository.ts'
import { checkTarget } from '../new-file.ts'
import { type BackupOptions, type BackupResult, backUp } from './backup.ts'
import { type CheckOptions, type CheckReport, checkStore } from './check.ts'
import { type CheckpointResult, emptyLog } from './checkpoint.ts'
import type { MaintenanceContext } from './context.ts'
import { type OptimizeResult, optimizeFile } from './optimize.ts'
import { purgeSession } from './purge.ts'
import { type RepairOptions, type RepairResult, repairStore } from './repair.ts'

/** What looking after a file is: `store.maintenance`. */
export class MaintenanceRepository {
  readonly #context: MaintenanceContext

  /** @internal */
  constructor(context: MaintenanceContext) {
    this.#context = context
  }

  /**
   * Looks for damage: in the file, in its rows, and in its indexes. Repairs nothing, and works for a store that only
   * reads.
   *
   * SQLite's own check of the file is one statement, during which the event loop stands still: 2 s for a million
   * messages, 3 s with `full`.
   *
   * @throws the reason of `signal`.
   * @example
   * const { ok, integrity, indexes } = await store.maintenance.check()
   */
  async check(options: CheckOptions = {}): Promise<CheckReport> {
    return checkStore(this.#context, options)
  }

  /**
   * Mends what can be mended: makes the indexes anew, whatever state they are in, counts the messages of sessions
   * again, and deletes rows of the additions whose message or session does not exist. Messages of sessions that do not
   * exist are counted and kept. A backup beside the file comes first. In a large file all of it takes many
   * transactions, and others write in between.
   *
   * @throws DamagedFileError where the file itself is damaged: see `restoreStateFile()`. Nothing was changed.
   * @throws UnsupportedSchemaError on a file above schema 6, what `backup()` throws, or the reason of `signal`.
   * @example
   * const { backup } = await store.maintenance.repair()
   */
  async repair(options: RepairOptions = {}): Promise<RepairResult> {
    assertOwnSchema(this.#context, 'maintenance.repair()')
    return repairStore(this.#context, options)
  }

  /**
   * Makes searches as fast as can be and the file small: merges the segments of each index into one in short
   * transactions, writes the file anew (VACUUM) where more than a quarter of it is free and the disk has room for
   * twice what is used, and empties the write-ahead log.
   *
   * VACUUM is one statement during which the event loop stands still and nobody else can write.
   *
   * @throws UnsupportedSchemaError on a file above schema 6.
   * @example
   * const { bytesBefore, bytesAfter, vacuum } = await store.maintenance.optimize()
   */
  async optimize(): Promise<OptimizeResult> {
    assertOwnSchema(this.#context, 'maintenance.optimize()')
    return optimizeFile(this.#context)
  }

  /**
   * Deletes a session as `sessions.delete()` does, and leaves nothing of it in the bytes of the file and of its
   * write-ahead log: makes the indexes anew, writes the file anew (VACUUM), and empties the log. All of it takes some
   * 10 s for a million messages, and VACUUM is one statement during which the event loop stands still and nobody
   * else can write. Backups keep what they have.
   *
   * @returns whether there was such a session. Where there was none the file is cleaned all the same: of a session
   * that was deleted before.
   * @throws TextRemainsError where a reader of an older state keeps the log from being emptied for `busyTimeout`, or
   * VACUUM fails: the session is deleted then, and another call goes on.
   * @throws UnsupportedSchemaError on a file above schema 6.
   * @example
   * await store.maintenance.purge(id)
   */
  async purge(id: string): Promise<boolean> {
    checkId(id, 'id')
    assertOwnSchema(this.#context, 'maintenance.purge()')
    return purgeSession(this.#context, id)
  }

  /**
   * Moves the write-ahead log into the file and empties it. Tries again, for up to `busyTimeout`, while a reader of an
   * older state or a writer is in the way; the event loop goes on meanwhile.
   *
   * @returns `busy: true` where somebody was in the way until the end: the log is as it was, and nothing is lost.
   * @throws ReadonlyStoreError
   */
  async checkpoint(): Promise<CheckpointResult> {
    return emptyLog(this.#context.executor)
  }

  /**
   * Copies the store into a new file: everything that was acknowledged before the call, from one moment, while this
   * and other processes write on. The file appears under its name when it is whole, checked and on the disk, with
   * mode 0600 and nothing beside it. Works for a store that only reads, and for `:memory:`.
   *
   * @throws TargetExistsError, CannotOpenError, FileReplacedError, DiskFullError, DamagedFileError where what was
   * copied is damaged, or the reason of `signal`: nothing is left at `path` then.
   * @example
   * await store.maintenance.backup('/backups/state-2026-02-03.db')
   */
  async backup(path: string, options: BackupOptions = {}): Promise<BackupResult> {
    const { executor, events } = this.#context
    return backUp(executor, checkTarget(path), options, events)
  }
}
