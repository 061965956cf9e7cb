import { sql } from 'kysely'
import { text } from '../database/cells.ts'
import type { Connection } from '../database/connection.ts'
import { headOfContent } from '../database/filters.ts'
import { build, fixedQuery, type Param } from '../database/fixed-query.ts'
import type { EventHandler } from '../events.ts'
import { visibleStored } from '../messages/structured-content.ts'
import { FIELD_COLUMNS, toFields } from './session-row.ts'
import type { SessionSummary } from './session-types.ts'

export interface ListSessionsOptions {
  /** Only sessions of this source. */
  source?: string
  /** At most so many sessions. Default 20. */
  limit?: number
  /** Skip so many sessions. Default 0. */
  offset?: number
}

const PREVIEW_LENGTH = 60

// Enough for the preview whatever white space is in it.
const PREVIEW_SOURCE_LENGTH = 2_000

interface Page {
  source: string | null
  limit: number
  offset: number
}

const page = fixedQuery((param: Param<Page>) =>
  build
    .selectFrom('sessions')
    .innerJoin('hs_session_activity as activity', 'activity.session_id', 'sessions.id')
    .select(FIELD_COLUMNS)
    .select('activity.last_active')
    .select((eb) =>
      eb
        .selectFrom('messages')
        .select(headOfContent(PREVIEW_SOURCE_LENGTH).as('content'))
        .whereRef('messages.session_id', '=', 'sessions.id')
        .where('messages.role', '=', 'user')
        // SQLite's trim knows only the characters it is given: the white space of JavaScript's trim.
        .where(
          sql`trim(messages.content, char(9, 10, 11, 12, 13, 32, 160, 8203, 8232, 8233, 12288, 65279))`,
          '<>',
          '',
        )
        .orderBy('messages.id')
        .limit(1)
        .as('preview'),
    )
    .where((eb) => eb.or([eb(param('source'), 'is', null), eb('sessions.source', '=', param('source'))]))
    .orderBy('sessions.started_at', 'desc')
    .orderBy('sessions.id', 'desc')
    .limit(param('limit'))
    .offset(param('offset')),
)

/** Sessions, the latest started first. */
export function listSessions(connection: Connection, range: Page, events: EventHandler): SessionSummary[] {
  return connection.all(page, range).map((row) => ({
    ...toFields(connection, row, events),
    preview: preview(visibleStored(text(row.preview) ?? '')),
    last_active: row.last_active,
  }))
}

function preview(content: string): string {
  const characters = Array.from(content.replaceAll(/\s+/g, ' ').trim())
  return characters.length > PREVIEW_LENGTH
    ? `${characters.slice(0, PREVIEW_LENGTH).join('')}...`
    : characters.join('')
}
