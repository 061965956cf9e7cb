import type { FixedQuery } from '../database/fixed-query.ts'
import { DamagedFileError } from '../errors.ts'
import { recountSession } from '../sessions/recount.ts'
import {
  deleteOrphanedActivity,
  deleteOrphanedClientId,
  deleteOrphanedContent,
  findOrphans,
  NO_ORPHANS,
} from './additions.ts'
import { backUp } from './backup.ts'
import type { MaintenanceContext } from './context.ts'
import { tally } from './counters.ts'
import { remakeIndexes } from './indexes.ts'
import { checkIntegrity } from './integrity.ts'

export interface RepairOptions {
  /** Copy the store first, beside the file. Default true. A store in memory is not copied. */
  backup?: boolean
  /** Called when each part begins. */
  onProgress?: (progress: { part: RepairPart }) => void
  /** Gives up between two parts, and between two steps of the backup: what is repaired by then stays so. */
  signal?: AbortSignal
}

export type RepairPart = 'integrity' | 'backup' | 'indexes' | 'counters' | 'additions'

export interface RepairResult {
  /** The copy of the store as it was before, absolute; null where none was made. */
  backup: string | null
  /** How many sessions had counters that were not what their rows say. */
  recounted: number
  /** Rows of the additions that were deleted, because their message or session does not exist. */
  deleted: { structuredContent: number; clientIds: number; activity: number }
  /** Messages whose session does not exist. They are kept. */
  orphanedMessages: number
}

export async function repairStore(
  context: MaintenanceContext,
  { backup = true, onProgress, signal }: RepairOptions,
): Promise<RepairResult> {
  const { executor, events } = context
  const begin = (part: RepairPart) => {
    signal?.throwIfAborted()
    onProgress?.({ part })
  }

  begin('integrity')
  const { path, file, problems } = await executor.alone((connection) => ({
    path: connection.path,
    file: connection.file,
    problems: checkIntegrity(connection, 'quick_check').problems,
  }))
  if (problems[0] !== undefined)
    throw new DamagedFileError(
      `'${path}' is damaged (${problems[0]}), which cannot be repaired: do not delete its -wal file; close it, and put a backup in its place with restoreStateFile(backup, path, { replace: true }), which keeps both. Nothing was changed.`,
    )
  const copy = backup && file ? backupPath(path, new Date()) : null
  if (copy !== null) {
    begin('backup')
    await backUp(executor, copy, { signal }, events)
  }
  begin('indexes')
  await remakeIndexes(context)
  begin('counters')
  const { drifted, missing } = await tally(executor, signal)
  for (const { id } of drifted) await executor.write((connection) => connection.run(recountSession, { id }))
  begin('additions')
  return {
    backup: copy,
    recounted: drifted.length,
    deleted: await deleteOrphans(context, signal),
    orphanedMessages: [...missing.values()].reduce((sum, messages) => sum + messages, 0),
  }
}

const backupPath = (path: string, now: Date): string =>
  `${path}.before-repair-${now.toISOString().replaceAll(/[:.]/g, '-')}`

async function deleteOrphans(
  { executor, additions }: MaintenanceContext,
  signal: AbortSignal | undefined,
): Promise<RepairResult['deleted']> {
  const orphans = additions ? await findOrphans(executor, signal) : NO_ORPHANS
  const deleteAll = async <Id>(ids: readonly Id[], query: FixedQuery<{ id: Id }, unknown>) => {
    let deleted = 0
    for (const id of ids)
      deleted += await executor.write((connection) => connection.run(query, { id }).changes)
    return deleted
  }
  return {
    structuredContent: await deleteAll(orphans.structuredContent, deleteOrphanedContent),
    clientIds: await deleteAll(orphans.clientIds, deleteOrphanedClientId),
    activity: await deleteAll(orphans.activity, deleteOrphanedActivity),
  }
}
