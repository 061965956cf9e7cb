import { reportIllFormed } from '../database/cells.ts'
import type { Connection } from '../database/connection.ts'
import { build, fixedQuery, type Param } from '../database/fixed-query.ts'
import type { EventHandler } from '../events.ts'
import { type StoredMessage, toMessage } from './message-row.ts'
import type { Message } from './message-types.ts'

/** The columns that messages are read by, of `messages` and `structured`. */
export const MESSAGE_COLUMNS = [
  'messages.id',
  'messages.session_id',
  'messages.role',
  'messages.content',
  'messages.tool_call_id',
  'messages.tool_calls',
  'messages.tool_name',
  'messages.timestamp',
  'messages.token_count',
  'messages.finish_reason',
  'messages.reasoning',
  'messages.reasoning_details',
  'messages.codex_reasoning_items',
  'messages.inactive',
  'structured.content as structured',
] as const

const live = build
  .selectFrom('live_messages as messages')
  .leftJoin('hs_structured_content as structured', 'structured.message_id', 'messages.id')
  .select(MESSAGE_COLUMNS)

const all: typeof live = build
  .selectFrom('all_messages as messages')
  .leftJoin('hs_structured_content as structured', 'structured.message_id', 'messages.id')
  .select(MESSAGE_COLUMNS)

const byId = fixedQuery((param: Param<{ id: number }>) => all.where('messages.id', '=', param('id')))

/** Ids, both ends exclusive. */
interface IdRange {
  after: number
  before: number
  limit: number
}

interface Range extends IdRange {
  session_id: string
}

/** Which messages of a session are read, and from which end. */
export interface PageKind {
  from: 'start' | 'end'
  includeInactive: boolean
}

const inRange = (messages: typeof live, param: Param<IdRange>, direction: 'asc' | 'desc') =>
  messages
    .where('messages.id', '>', param('after'))
    .where('messages.id', '<', param('before'))
    .orderBy('messages.id', direction)
    .limit(param('limit'))

const page = (messages: typeof live, direction: 'asc' | 'desc') =>
  fixedQuery((param: Param<Range>) =>
    inRange(messages.where('messages.session_id', '=', param('session_id')), param, direction),
  )

const pageOfFile = fixedQuery((param: Param<IdRange>) => inRange(live, param, 'asc'))

const newestId = fixedQuery((_: Param<object>) =>
  build.selectFrom('all_messages').select('id').orderBy('id', 'desc').limit(1),
)

const livePages = { start: page(live, 'asc'), end: page(live, 'desc') }
const allPages = { start: page(all, 'asc'), end: page(all, 'desc') }

export function readMessage(connection: Connection, id: number, events: EventHandler): Message | null {
  const row = connection.get(byId, { id })
  return row ? read(connection, row, events) : null
}

/** Messages of a session between two ids (exclusive), in id order: the first `limit` of them, or the last. */
export function readPage(
  connection: Connection,
  range: Range,
  { from, includeInactive }: PageKind,
  events: EventHandler,
): Message[] {
  const rows = connection.all((includeInactive ? allPages : livePages)[from], range)
  if (from === 'end') rows.reverse()
  return rows.map((row) => read(connection, row, events))
}

/** As {@link readPage} from the start, of one session or of the whole file. */
export function readNextPage(
  connection: Connection,
  { session_id, ...range }: IdRange & { session_id: string | undefined },
  events: EventHandler,
): Message[] {
  const rows =
    session_id === undefined
      ? connection.all(pageOfFile, range)
      : connection.all(livePages.start, { session_id, ...range })
  return rows.map((row) => read(connection, row, events))
}

/** The highest id of a message in the file; 0 where there is none. */
export function readNewestId(connection: Connection): number {
  return connection.get(newestId, {})?.id ?? 0
}

function read(connection: Connection, row: StoredMessage, events: EventHandler): Message {
  const message = toMessage(row, events)
  const suspicious = TEXT_COLUMNS.filter((column) => row[column]?.includes('\uFFFD'))
  if (suspicious.length > 0)
    reportIllFormed(connection, suspicious, { table: 'messages', id: row.id }, events)
  return message
}

const TEXT_COLUMNS = ['content', 'tool_calls', 'tool_name', 'reasoning'] as const
