import { brokenLink, fileSize, SIDECARS } from './database/file-access.ts'
import { fileKey, realPath } from './database/file-identity.ts'
import type { FileState } from './database/inspection.ts'
import { BUSY_TIMEOUT_MS } from './database/limits.ts'
import { assertUsable } from './database/migrator.ts'
import { isFileDamage, toStoreError } from './database/sqlite-errors.ts'
import { CannotOpenError, DamagedFileError, NotAStateFileError } from './errors.ts'
import { look } from './inspect.ts'
import { type BackupResult, copyTo } from './maintenance/backup.ts'
import { checkTarget, makeFile } from './new-file.ts'
import { moveAside } from './quarantine.ts'
import { assertNotOpen } from './shared-files.ts'

export interface RestoreOptions {
  /** Move what is at the path aside first, as {@link quarantineStateFile} does. Default false: it is refused. */
  replace?: boolean
}

export interface RestoreResult extends BackupResult {
  /** Where the file that was at the path is now; null where none was. */
  quarantined: string | null
}

/**
 * Puts a copy of a backup where a store is to be: of any state file that can be read, also with a write-ahead log
 * beside it, which is copied too. The copy is checked to the last row before it takes the place, has mode 0600, and
 * never meets the log of the file that was there. The backup stays as it is.
 *
 * Nothing is deleted. Where the process dies on the way, the old file, the new one or none has the name; the old one
 * has its own or that of a quarantined file. The checks are single statements, during which the event loop stands
 * still: some 3 s for a million messages.
 *
 * @param path Where to put it; what may open it meanwhile must be shut down, as for {@link quarantineStateFile}.
 * @throws TypeError, TargetExistsError for a file that is there, unless `replace` is set; then FileInUseError where
 * that is open; NotAStateFileError, UnsupportedSchemaError, DamagedFileError for what is wrong with the backup;
 * CannotOpenError, ReadonlyStoreError, DiskFullError
 * @example
 * const { quarantined } = await restoreStateFile('/backups/state-2026-02-03.db', 'state.db', { replace: true })
 */
export async function restoreStateFile(
  backup: string,
  path: string,
  { replace = false }: RestoreOptions = {},
): Promise<RestoreResult> {
  const source = checkTarget(backup, 'backup')
  const target = realPath(checkTarget(path))
  if (typeof replace !== 'boolean') throw new TypeError('replace must be true or false.')
  if (fileSize(source) === undefined)
    throw new CannotOpenError(`There is no backup at '${source}': check the path.`)
  if (fileSize(target) !== undefined && fileKey(target) === fileKey(source))
    throw new TypeError('backup and path lead to the same file.')
  const link = brokenLink(target)
  if (link) throw new CannotOpenError(`'${target}' cannot be made: ${link}.`)
  if (replace) assertNotOpen(target)

  const looking = { readonly: true, synchronous: 'full', busyTimeout: BUSY_TIMEOUT_MS } as const
  return look({ ...looking, path: source, signal: undefined, events: () => {} }, async ({ state }, open) => {
    assertStateFile(state, source)
    let quarantined: string | null = null
    try {
      const copied = await makeFile(
        target,
        SIDECARS,
        async (partial) => {
          const { problem, ...rest } = await copyTo(partial, open, 'integrity_check', () => {})
          if (problem === null) return rest
          throw new DamagedFileError(
            `The backup '${source}' is damaged (${problem}): restore another one. '${target}' was not touched.`,
          )
        },
        replace
          ? () => {
              quarantined = moveAside(target)
            }
          : undefined,
      )
      return { path: target, ...copied, quarantined }
    } catch (error) {
      const reason = isFileDamage(error) ? error : toStoreError(error, target)
      if (quarantined === null) throw reason
      throw new CannotOpenError(
        `The backup could not be put at '${target}' (${String(reason)}). What was there is at '${quarantined}' now: call restoreStateFile() again, with that one to have it back.`,
        { cause: error },
      )
    }
  })
}

/** @throws NotAStateFileError, UnsupportedSchemaError */
function assertStateFile(state: FileState, path: string): void {
  assertUsable(state, path)
  if (state.kind === 'empty' || (state.kind === 'hermes' && state.version === 0))
    throw new NotAStateFileError(`The backup '${path}' has no sessions and no messages: give another one.`)
}
