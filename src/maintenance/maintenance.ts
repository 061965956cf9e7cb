import type { Connection } from '../database/connection.ts'
import { executedIn, inspect } from '../database/inspection.ts'
import { reference } from '../database/reference.ts'
import { assertOwnSchema } from '../database/repository.ts'
import { readShape } from '../database/shape.ts'
import { bigramProblem, merge } from '../search/index-health.ts'
import {
  addToBigrams,
  addToWordIndex,
  isLarge,
  isSound,
  remakeBigrams,
  remakeWordIndex,
} from '../search/rebuild.ts'
import { inspectWordIndex, WORD_INDEX } from '../search/word-index.ts'
import { type BackupOptions, type BackupResult, backUp, checkTarget } from './backup.ts'
import { type CheckpointResult, emptyLog } from './checkpoint.ts'
import type { MaintenanceContext } from './context.ts'

/** How an index is. */
export interface IndexReport {
  index: 'words' | 'unsegmented'
  /** Why it cannot be relied on, as the end of a sentence about it; null where it can. */
  problem: string | null
}

/** What looking after a file is: `store.maintenance`. */
export class MaintenanceRepository {
  readonly #context: MaintenanceContext

  /** @internal */
  constructor(context: MaintenanceContext) {
    this.#context = context
  }

  /**
   * Compares the indexes with the messages. Repairs nothing.
   *
   * @param options.full Compare word by word in a large file too: above 20,000 messages nobody else can write for as
   * long as that takes, about 5 s for a million. Default false.
   */
  async check(options: { full?: boolean } = {}): Promise<IndexReport[]> {
    const { executor, additions } = this.#context
    const { words, unsegmented, thorough } = await executor.read((connection) => {
      const shape = readShape(connection)
      return {
        words: inspectWordIndex(connection, shape, true).problem,
        unsegmented: additions ? bigramProblem(connection, shape) : null,
        thorough: !connection.readonly && (options.full || !isLarge(connection)),
      }
    })
    const compared = async (index: string, problem: string | null) => {
      if (problem !== null || !thorough) return problem
      return executor.write((connection) =>
        isSound(connection, index) ? null : 'does not match the messages',
      )
    }
    const report: IndexReport[] = [{ index: 'words', problem: await compared(WORD_INDEX, words) }]
    if (additions) report.push({ index: 'unsegmented', problem: await compared('hs_bigrams', unsegmented) })
    return report
  }

  /**
   * Makes the indexes anew, whatever state they are in. In a large file that takes many transactions, and others
   * write in between.
   */
  async repair(): Promise<void> {
    assertOwnSchema(this.#context, 'maintenance.repair()')
    const { executor, indexes, additions } = this.#context
    const whole = await reference(await executor.read((connection) => executedIn(inspect(connection))))
    await executor.write((connection) => remakeWordIndex(connection, whole, false))
    await this.#inChunks((connection) => addToWordIndex(connection, whole))
    if (additions) {
      await executor.write((connection) => remakeBigrams(connection, whole))
      await this.#inChunks(addToBigrams)
    }
    await executor.read((connection) => indexes.restore(connection))
  }

  /** Merges the segments of the indexes into one each, in short transactions: searches are then as fast as can be. */
  async optimize(): Promise<void> {
    assertOwnSchema(this.#context, 'maintenance.optimize()')
    const { indexes } = this.#context
    for (const [index, there] of [
      [WORD_INDEX, indexes.words],
      ['hs_bigrams', indexes.bigrams],
    ] as const)
      if (there) await this.#mergeAll(index)
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
   * @throws TargetExistsError, CannotOpenError, DiskFullError, DamagedFileError where what was copied is damaged, or
   * the reason of `signal`: nothing is left at `path` then.
   * @example
   * await store.maintenance.backup('/backups/state-2026-02-03.db')
   */
  async backup(path: string, options: BackupOptions = {}): Promise<BackupResult> {
    const { executor, events } = this.#context
    return backUp(executor, checkTarget(path), options, events)
  }

  async #mergeAll(index: string): Promise<void> {
    const { executor } = this.#context
    for (let pages = -MERGED, changed = true; changed; pages = MERGED) {
      changed = await executor.write((connection) => {
        const before = connection.totalChanges
        merge(connection, index, pages)
        // FTS5 changes one row where there is nothing left to merge.
        return connection.totalChanges - before > 1
      })
      await executor.letOthersWrite(1)
    }
  }

  async #inChunks(chunk: (connection: Connection) => Generator<void, boolean>): Promise<void> {
    const { executor } = this.#context
    for (let finished = false; !finished; ) {
      const started = performance.now()
      finished = await executor.writeInSteps(chunk)
      if (!finished) await executor.letOthersWrite((performance.now() - started) / 2)
    }
  }
}

const MERGED = 500
