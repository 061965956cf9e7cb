import { type CheckpointResult, emptyLog } from './checkpoint.ts'
import type { MaintenanceContext } from './context.ts'
import { mergeIndexes } from './indexes.ts'
import { bytesAvailable, type FileUse, fileUse, type Vacuum, whyNotVacuum } from './vacuum.ts'

export interface OptimizeResult {
  /** The size of the file in bytes, before and after. */
  bytesBefore: number
  bytesAfter: number
  /** Whether the file was written anew without its free pages, or why not. */
  vacuum: Vacuum
  /** What emptying the write-ahead log left. */
  checkpoint: CheckpointResult
}

/**
 * Without ANALYZE: the queries are written for a planner that knows no statistics, and these would be of one moment.
 */
export async function optimizeFile(context: MaintenanceContext): Promise<OptimizeResult> {
  const { executor } = context
  const before = await executor.alone(fileUse)
  await mergeIndexes(context)
  const vacuum = await vacuumIfWorthwhile(context)
  const checkpoint = await emptyLog(executor)
  return {
    bytesBefore: bytesOf(before),
    bytesAfter: bytesOf(await executor.read(fileUse)),
    vacuum,
    checkpoint,
  }
}

async function vacuumIfWorthwhile({ executor }: MaintenanceContext): Promise<Vacuum> {
  const { use, path, file } = await executor.read((connection) => ({
    use: fileUse(connection),
    path: connection.path,
    file: connection.file,
  }))
  const reason = whyNotVacuum(use, file ? await bytesAvailable(path) : Number.POSITIVE_INFINITY)
  if (reason) return reason
  await executor.alone((connection) => connection.exec('vacuum'))
  return 'done'
}

const bytesOf = ({ used, free }: FileUse): number => used + free
