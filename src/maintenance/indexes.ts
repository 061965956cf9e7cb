import type { Connection } from '../database/connection.ts'
import { executedIn, inspect } from '../database/inspection.ts'
import { reference } from '../database/reference.ts'
import { readShape } from '../database/shape.ts'
import { BIGRAM_INDEX, bigramProblem, merge } from '../search/index-health.ts'
import {
  addToBigrams,
  addToWordIndex,
  isLarge,
  isSound,
  remakeBigrams,
  remakeWordIndex,
} from '../search/rebuild.ts'
import { inspectWordIndex, WORD_INDEX } from '../search/word-index.ts'
import type { MaintenanceContext } from './context.ts'

/** How an index is. */
export interface IndexReport {
  index: 'words' | 'unsegmented'
  /** Why it cannot be relied on, as the end of a sentence about it; null where it can. */
  problem: string | null
}

/**
 * Compares the indexes with the messages.
 *
 * @param found What SQLite has found of them already.
 */
export async function checkIndexes(
  { executor, additions }: MaintenanceContext,
  found: ReadonlyMap<string, string>,
  full: boolean,
): Promise<IndexReport[]> {
  const damage = (index: string) => {
    const words = found.get(index)
    return words === undefined ? null : `is damaged (${words})`
  }
  const { words, unsegmented, thorough } = await executor.read((connection) => {
    const shape = readShape(connection)
    return {
      words: inspectWordIndex(connection, shape, true).problem ?? damage(WORD_INDEX),
      unsegmented: additions ? (bigramProblem(connection, shape) ?? damage(BIGRAM_INDEX)) : null,
      thorough: !connection.readonly && (full || !isLarge(connection)),
    }
  })
  const compared = async (index: string, problem: string | null) => {
    if (problem !== null || !thorough) return problem
    return executor.write((connection) => (isSound(connection, index) ? null : 'does not match the messages'))
  }
  const reports: IndexReport[] = [{ index: 'words', problem: await compared(WORD_INDEX, words) }]
  if (additions) reports.push({ index: 'unsegmented', problem: await compared(BIGRAM_INDEX, unsegmented) })
  return reports
}

/** Makes the indexes anew, in many transactions where the file is large. */
export async function remakeIndexes({ executor, indexes, additions }: MaintenanceContext): Promise<void> {
  const inChunks = async (chunk: (connection: Connection) => Generator<void, boolean>) => {
    for (let finished = false; !finished; ) {
      const started = performance.now()
      finished = await executor.writeInSteps(chunk)
      if (!finished) await executor.letOthersWrite((performance.now() - started) / 2)
    }
  }
  const whole = await reference(await executor.read((connection) => executedIn(inspect(connection))))
  await executor.write((connection) => remakeWordIndex(connection, whole, false))
  await inChunks((connection) => addToWordIndex(connection, whole))
  if (additions) {
    await executor.write((connection) => remakeBigrams(connection, whole))
    await inChunks(addToBigrams)
  }
  await executor.read((connection) => indexes.restore(connection))
}

/** Pages that one merge may write: some 50 ms of the write lock. */
const MERGED = 500

/** Merges the segments of each index into one, in short transactions. */
export async function mergeIndexes({ executor, indexes }: MaintenanceContext): Promise<void> {
  for (const [index, there] of [
    [WORD_INDEX, indexes.words],
    [BIGRAM_INDEX, indexes.bigrams],
  ] as const) {
    if (!there) continue
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
}
