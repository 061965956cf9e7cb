import { StateStoreError, TextRemainsError } from '../errors.ts'
import { exists, removeSessions } from '../sessions/removal.ts'
import { emptyLog } from './checkpoint.ts'
import type { MaintenanceContext } from './context.ts'
import { remakeIndexes } from './indexes.ts'

/**
 * Deletes a session so that the bytes of the file hold nothing of it. Deleting leaves texts in free pages and in the
 * write-ahead log, and words in segments of the indexes, which they leave when they happen to be merged.
 *
 * @returns whether there was such a session. The file is cleaned either way: of one that was deleted before.
 */
export async function purgeSession(context: MaintenanceContext, id: string): Promise<boolean> {
  const { executor } = context
  const deleted = (await removeSessions(executor, [id], exists)) > 0
  const busy = await cleanFile(context).catch((error: unknown) => {
    if (error instanceof StateStoreError) throw new TextRemainsError(id, error.message, { cause: error })
    throw error
  })
  if (busy)
    throw new TextRemainsError(
      id,
      'Another connection reads an older state, or writes, so that the log cannot be emptied: let it end its transaction.',
    )
  return deleted
}

/** Returns whether somebody was in the way when the log was to be emptied. */
async function cleanFile(context: MaintenanceContext): Promise<boolean> {
  const { executor } = context
  await remakeIndexes(context)
  await executor.alone((connection) => connection.exec('vacuum'))
  return (await emptyLog(executor)).busy
}
