import { driftedCounters, flawList, isFlawed } from './database/adoption.ts'
import type { Connection } from './database/connection.ts'
import { createFile } from './database/file-access.ts'
import { SCHEMA_VERSION } from './database/limits.ts'
import { type MigrationReport, migrate, pendingMigrations } from './database/migrator.ts'
import { missingColumns, prepareNewer } from './database/newer.ts'
import { type ConnectionOptions, MEMORY, openConnection } from './database/open-connection.ts'
import { patiently } from './database/waiting.ts'
import { CannotOpenError, MigrationNeededError, UnsupportedSchemaError } from './errors.ts'
import type { EventHandler } from './events.ts'
import type { Found } from './inspect.ts'
import type { OpenOptions } from './options.ts'
import { PROGRESS } from './search/word-index.ts'

/** What happened on the way to an open connection. */
export interface Opened {
  connection: Connection
  migrations: string[]
  mended: string[]
}

/** Opens a new file, or one of schema 1 to 6: mended and migrated, unless it is only read. */
export async function openOwn(
  { state, flaws }: Found,
  size: number | undefined,
  connecting: ConnectionOptions,
  { migrate: mayMigrate = true, additions = true }: OpenOptions,
): Promise<Opened> {
  const { path, readonly, busyTimeout, journalMode = 'wal', signal, events } = connecting
  const interrupted = state.kind === 'hermes' && state.version === 0
  if (readonly && (state.kind === 'empty' || interrupted))
    throw new CannotOpenError(
      interrupted
        ? `The making of '${path}' was interrupted: open it once without readonly, so that it is finished.`
        : `There is no state file at '${path}' to read: check the path, or open it without readonly.`,
    )
  const needed = [...pendingMigrations(state, additions), ...(flaws ? flawList(flaws) : [])]
  if (state.kind === 'hermes' && state.shape.has(`column ${PROGRESS}.done`))
    needed.push('the rest of its word index')
  if (!readonly && !mayMigrate && needed.length > 0)
    throw new MigrationNeededError(
      `'${path}' lacks ${needed.join(', ')}: open it with migrate: true to bring it up to date.`,
    )
  if (size === undefined && path !== MEMORY) createFile(path)

  const behind = needed.length > 0 || (flaws !== null && isFlawed(flaws))
  // Where adopting it fails, a file is what it was: also in rollback-journal mode.
  const keepJournalMode = behind && state.kind === 'hermes'
  const connection = await openConnection({ ...connecting, keepJournalMode })
  try {
    if (readonly || !behind) return { connection, migrations: [], mended: [] }
    const report = await migrate(connection, { additions, busyTimeout, signal })
    if (keepJournalMode)
      await patiently(() => connection.pragma(`journal_mode = ${journalMode}`), busyTimeout, signal)
    if (size === 0) reportEmptyFile(path, events)
    reportMigration(connection, report, events)
    return { connection, ...report }
  } catch (error) {
    connection.close()
    throw error
  }
}

/** Opens a file of a later Hermes schema: to read it, or where that was asked for and goes, to write it. */
export async function openNewer(
  { state }: Found,
  connecting: ConnectionOptions,
  { newerSchema, migrate: mayMigrate = true }: OpenOptions,
): Promise<Opened> {
  if (state.kind !== 'newer') throw new Error(`A file of kind ${state.kind} is not newer.`)
  const { path, readonly, events } = connecting
  const schema = `Hermes schema ${state.version ?? `above ${SCHEMA_VERSION}`}`
  if (newerSchema === 'refuse')
    throw new UnsupportedSchemaError(
      `'${path}' has ${schema}, and newerSchema is 'refuse': open it with newerSchema 'readonly' or 'write'. It was not touched.`,
    )
  if (readonly) return { connection: await openConnection(connecting), migrations: [], mended: [] }

  let because = `it has ${schema}, which this release only reads unless it is opened with newerSchema: 'write'.`
  if (newerSchema === 'write') {
    const missing = await missingColumns(state.shape)
    if (!mayMigrate && missing.length > 0)
      throw new MigrationNeededError(
        `'${path}' lacks ${missing.join(', ')}: open it with migrate: true to add that, or with readonly: true.`,
      )
    const connection = await openConnection({ ...connecting, keepJournalMode: true })
    try {
      const prepared = await prepareNewer(connection, connecting)
      if (!('obstacle' in prepared)) {
        reportMended(path, prepared.mended, events)
        return { connection, migrations: [], mended: prepared.mended }
      }
      because = `it has ${schema}, and a message cannot be written to it here (${prepared.obstacle}).`
      connection.close()
    } catch (error) {
      connection.close()
      throw error
    }
  }
  const connection = await openConnection({ ...connecting, readonly: true })
  connection.readonlyBecause = because
  events({
    level: 'warning',
    type: 'opened-readonly',
    message: `'${path}' was opened read-only: ${because}`,
    path,
    reason: because,
  })
  return { connection, migrations: [], mended: [] }
}

function reportEmptyFile(path: string, events: EventHandler): void {
  events({
    level: 'warning',
    type: 'empty-file',
    message: `'${path}' was there with 0 bytes, and is a new store now: if it had sessions before, close it and put a backup in its place with restoreStateFile(backup, path, { replace: true }).`,
    path,
  })
}

function reportMigration(
  connection: Connection,
  { from_version, migrations, mended, untitled }: MigrationReport,
  events: EventHandler,
): void {
  const { path } = connection
  if (migrations.length > 0 && from_version === 0 && mended.length === 0)
    events({ level: 'info', type: 'created', message: `Created '${path}'.`, path })
  else if (migrations.length > 0)
    events({
      level: 'info',
      type: 'migrated',
      message: `Brought '${path}' from schema ${from_version} up to date: ${migrations.join(', ')}.`,
      path,
      from_version,
      migrations,
    })
  reportMended(path, mended, events)
  for (const { id, title } of untitled)
    events({
      level: 'warning',
      type: 'duplicate-title',
      message: `Session '${id}' lost its title '${title}': a newer session has the same.`,
      session_id: id,
      title,
    })
  const sessions = from_version > 0 ? driftedCounters(connection) : 0
  if (sessions > 0)
    events({
      level: 'warning',
      type: 'counters-drifted',
      message: `message_count of ${sessions} sessions in '${path}' is not the number of their messages: sessions.recount() counts them again.`,
      path,
      sessions,
    })
}

function reportMended(path: string, mended: string[], events: EventHandler): void {
  if (mended.length > 0)
    events({
      level: 'warning',
      type: 'mended',
      message: `Mended '${path}': ${mended.join(', ')}.`,
      path,
      mended,
    })
}
