import { json, text } from '../database/cells.ts'
import type { MessageRow } from '../database/schema.ts'
import type { EventHandler } from '../events.ts'
import type { Inactive, Message, ToolCall } from './message-types.ts'
import { fromStoredContent } from './structured-content.ts'

/** A row of `messages` with the JSON of its structured content. */
export type StoredMessage = MessageRow & { structured: string | null; inactive: Inactive | null }

/** The one mapper that every reader of messages goes through. */
export function toMessage(row: StoredMessage, events: EventHandler): Message {
  const owner = { table: 'messages', id: row.id } as const
  const message: Message = {
    id: row.id,
    session_id: row.session_id,
    role: text(row.role) ?? '',
    content: contentOf(row, events),
    tool_call_id: text(row.tool_call_id),
    tool_calls: toolCallsOf(row, events),
    tool_name: text(row.tool_name),
    timestamp: row.timestamp,
    token_count: row.token_count,
    finish_reason: text(row.finish_reason),
    reasoning: text(row.reasoning),
    reasoning_details: json(row.reasoning_details, 'reasoning_details', owner, events) ?? null,
    codex_reasoning_items: json(row.codex_reasoning_items, 'codex_reasoning_items', owner, events) ?? null,
  }
  if (row.inactive) message.inactive = row.inactive
  return message
}

function contentOf(row: StoredMessage, events: EventHandler): Message['content'] {
  const stored = text(row.content)
  const content = fromStoredContent(stored, row.structured)
  if (content !== undefined) return content
  reportBroken(row.id, 'content', events)
  return stored
}

function toolCallsOf(row: StoredMessage, events: EventHandler): ToolCall[] | null {
  const calls = json(row.tool_calls, 'tool_calls', { table: 'messages', id: row.id }, events)
  if (calls === undefined) return []
  if (calls === null || Array.isArray(calls)) return calls
  reportBroken(row.id, 'tool_calls', events)
  return []
}

function reportBroken(id: number, column: string, events: EventHandler): void {
  events({
    level: 'warning',
    type: 'broken-json',
    message: `messages.${column} of row ${id} is not JSON of the expected kind: it reads as ${column === 'content' ? 'text' : 'empty'}, and its text stays in the file.`,
    table: 'messages',
    column,
    id,
  })
}
