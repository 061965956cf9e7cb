import type { Generated, Insertable, Selectable } from 'kysely'
import type { JsonArray, JsonObject, JsonText, JsonValue } from '../json.ts'
import type { Inactive, ToolCall } from '../messages/message-types.ts'
import type {
  DB,
  HsClientIds,
  HsSessionActivity,
  HsStructuredContent,
  Messages,
  Sessions,
} from './schema.generated.ts'

/** `Base` with some columns typed more closely. A column that `Base` does not have fails to compile. */
type Refine<
  Base,
  Columns extends { [Name in keyof Columns]: Name extends keyof Base ? unknown : never },
> = Omit<Base, keyof Columns> & Columns

/** The `sessions` table. */
export type SessionsTable = Refine<
  Sessions,
  {
    // SQLite itself would let a TEXT primary key be NULL.
    id: string
    model_config: JsonText<JsonObject> | null
  }
>

/** The `messages` table. */
export type MessagesTable = Refine<
  Messages,
  {
    id: Generated<number>
    tool_calls: JsonText<ToolCall[]> | null
    reasoning_details: JsonText<JsonValue> | null
    codex_reasoning_items: JsonText<JsonValue> | null
  }
>

/** The word index: the searched texts of `messages`, and the columns that FTS5 hides. */
export interface MessagesFtsTable {
  content: string | null
  tool_name: string | null
  tool_calls: string | null
  rowid: number
  /** bm25: the smaller, the better. */
  rank: number
  /** The table's own name, as `match` wants it. */
  messages_fts: string
}

/** Additions table: the JSON of content that is not plain text. */
export type StructuredContentTable = Refine<
  HsStructuredContent,
  { message_id: number; content: JsonText<JsonArray | JsonObject> }
>

/** Additions table: the names that senders gave their messages. */
export type ClientIdsTable = Refine<HsClientIds, { message_id: number }>

/** Every table of the file, for `store.db` and for queries of your own. */
export type StateDatabase = Refine<
  Pick<
    DB,
    | 'sessions'
    | 'messages'
    | 'messages_fts'
    | 'schema_version'
    | 'hs_structured_content'
    | 'hs_session_activity'
    | 'hs_client_ids'
  >,
  {
    sessions: SessionsTable
    messages: MessagesTable
    messages_fts: MessagesFtsTable
    hs_structured_content: StructuredContentTable
    hs_session_activity: HsSessionActivity
    hs_client_ids: ClientIdsTable
  }
>

/** What queries read from: the tables, and views over a file of any schema, see views.ts. */
export interface ReadDatabase extends StateDatabase, Pick<DB, 'hs_bigrams_state' | 'hs_bigrams_pending'> {
  all_messages: MessagesTable & { inactive: Inactive | null }
  /** Without those that Hermes has taken back or summarised away. */
  live_messages: MessagesTable & { inactive: Inactive | null }
  all_sessions: SessionsTable
  /** Without those that Hermes has archived or hidden. */
  listed_sessions: SessionsTable
  /** Of listed sessions. */
  listed_activity: HsSessionActivity
  /** What each session used of each model. */
  model_usage: Pick<
    SessionsTable,
    | 'model'
    | 'input_tokens'
    | 'output_tokens'
    | 'cache_read_tokens'
    | 'cache_write_tokens'
    | 'reasoning_tokens'
    | 'estimated_cost_usd'
    | 'actual_cost_usd'
  > & { session_id: string }
}

export type SessionRow = Selectable<SessionsTable>
export type MessageRow = Selectable<MessagesTable>
export type NewMessageRow = Insertable<MessagesTable>
