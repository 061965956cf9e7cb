import { sql } from 'kysely'
import type { Connection } from './connection.ts'
import { SCHEMA_VERSION } from './limits.ts'
import { HERMES_NAMES } from './reference.ts'
import { listed, normalised, readShape, type Shape, select } from './shape.ts'

/** What a file turned out to be. */
export type FileState =
  /** No table at all: a new file. */
  | { kind: 'empty' }
  /** Somebody else's database; `found` says what is in it. */
  | { kind: 'foreign'; found: string }
  /** A file of Hermes schema 1 to 6, or one whose making was interrupted: version 0. */
  | (HermesFile & { kind: 'hermes'; version: number })
  /** A file of a later Hermes schema; null where it does not say of which. */
  | (HermesFile & { kind: 'newer'; version: number | null })

interface HermesFile {
  /** The rows of `schema_version`, whatever they are; none where the table is missing. */
  stated: unknown[]
  /** The number among them; null where there is none that can be one. */
  number: number | null
  /** The migrations recorded in the file: none where only Hermes has written it. */
  executed: string[]
  shape: Shape
}

/** A file of Hermes schema 1 to 6, or an interrupted one. */
export type HermesState = Extract<FileState, { kind: 'hermes' }>

/** The migrations a file has had, whether they are recorded in it or follow from its version. */
export function executedIn(state: FileState): string[] {
  if (state.kind !== 'hermes') return []
  // Of Hermes's own migrations the version decides: Hermes raises it without recording a migration here.
  return [
    ...HERMES_NAMES.slice(0, state.version),
    ...state.executed.filter((name) => !HERMES_NAMES.includes(name)),
  ]
}

/** What no Hermes file lacks, and what is in its definition. */
const CORE = new Map([
  ['column sessions.id', 'PRIMARY KEY'],
  ['column sessions.source', ''],
  ['column sessions.started_at', ''],
  ['column messages.id', 'PRIMARY KEY'],
  ['column messages.session_id', ''],
  ['column messages.role', ''],
  ['column messages.content', ''],
  ['column messages.timestamp', ''],
])

/** Columns by which a file is known that has lost its version number. */
const TELLING = [
  'column sessions.message_count',
  'column sessions.tool_call_count',
  'column sessions.model_config',
  'column sessions.system_prompt',
  'column messages.tool_calls',
  'column messages.tool_call_id',
]

/** What a file has from Hermes schema 7 on, whatever its number says. */
const LATER = ['column state_meta.key', 'column messages.reasoning_content']

/** The last column that each Hermes schema brought. */
const LATEST_COLUMNS: readonly [string, number][] = [
  ['column messages.codex_reasoning_items', 6],
  ['column sessions.pricing_version', 5],
  ['column sessions.title', 3],
  ['column messages.finish_reason', 2],
]

/** Says what an open file is, by reading only. */
export function inspect(connection: Connection): FileState {
  const objects = select<{ type: string; name: string; sql: string | null }>(
    connection,
    sql`select type, name, sql from sqlite_schema where name not glob 'sqlite_*' order by rowid`,
  )
  if (objects.length === 0) return { kind: 'empty' }
  const shape = readShape(connection)
  const stated = shape.has('column schema_version.version')
    ? select<{ version: unknown }>(connection, sql`select version from schema_version`).map(
        ({ version }) => version,
      )
    : []
  const valid = stated.filter(isVersion)
  const interrupted = isInterrupted(objects, shape, stated)
  const known = valid.length > 0 || TELLING.every((key) => shape.has(key))
  if (!interrupted && !(known && hasCore(shape, 'sessions') && hasCore(shape, 'messages')))
    return { kind: 'foreign', found: `it has ${listed(objects.map(({ type, name }) => `${type} ${name}`))}` }

  const executed = objects.some(({ name }) => name === 'kysely_migration')
    ? select<{ name: string }>(connection, sql`select name from kysely_migration order by name`).map(
        ({ name }) => name,
      )
    : []
  // Processes that made or migrated a file at once have left several rows.
  const version = valid.length > 0 ? Math.max(...valid) : undefined
  const file = { stated, number: version ?? null, executed, shape }
  if (version === undefined && LATER.some((key) => shape.has(key)))
    return { kind: 'newer', version: null, ...file }
  if (version !== undefined && version > SCHEMA_VERSION) return { kind: 'newer', version, ...file }
  const latest = LATEST_COLUMNS.find(([key]) => shape.has(key))
  return { kind: 'hermes', version: interrupted ? 0 : (version ?? latest?.[1] ?? 1), ...file }
}

function isVersion(value: unknown): value is number {
  return typeof value === 'number' && Number.isInteger(value) && value > 0
}

function hasCore(shape: Shape, table: string): boolean {
  return [...CORE]
    .filter(([key]) => key.startsWith(`column ${table}.`))
    .every(([key, part]) => shape.get(key)?.includes(part))
}

/** Whether a process died while it made the file: the first of Hermes's tables, and nothing else. */
function isInterrupted(
  objects: { type: string; name: string; sql: string | null }[],
  shape: Shape,
  stated: unknown[],
): boolean {
  const tables = objects.filter(({ type }) => type === 'table')
  const [first, second] = tables
  return (
    stated.length === 0 &&
    tables.length === objects.length &&
    tables.length <= 2 &&
    normalised(first?.sql ?? '') === 'create table schema_version(version integer not null)' &&
    (second === undefined || (second.name === 'sessions' && hasCore(shape, 'sessions')))
  )
}
