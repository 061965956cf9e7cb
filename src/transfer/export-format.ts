import { isToolCall } from './calls.ts'
import type { Conversation, Converted, FormatName } from './conversation.ts'
import { addCounts, type Counts, count } from './counts.ts'
import { FORMATS } from './formats.ts'
import { toHermes } from './hermes.ts'
import { SESSION_COLUMNS, type SessionRecord } from './records.ts'

/** What a file of exported sessions can be: a bundle, or JSON Lines with a session on each. */
export type ExportFormat = 'bundle' | 'hermes' | FormatName

export const EXPORT_FORMATS: readonly string[] = ['bundle', 'hermes', ...Object.keys(FORMATS)]

/** What a conversation has of its session. */
const CARRIED = new Set<string>(['title', 'source', 'model', 'system_prompt'])

/** A session in a format other than the bundle, and what of it that cannot carry. */
export function toFormat(session: SessionRecord, format: Exclude<ExportFormat, 'bundle'>): Converted<object> {
  if (format === 'hermes') return toHermes(session)
  const { tools, ...config } = session.model_config ?? {}
  const not_carried: Counts = {}
  for (const column of SESSION_COLUMNS) {
    const value = column === 'model_config' ? Object.keys(config).length : session[column]
    if (value && !CARRIED.has(column)) count(not_carried, column)
  }
  if (session.raw) count(not_carried, 'raw')
  const messages = session.messages.flatMap(({ raw, inactive, client_id, id: _, ...message }) => {
    if (raw) count(not_carried, 'messages.raw')
    if (client_id) count(not_carried, 'messages.client_id')
    if (inactive) {
      count(not_carried, 'messages.inactive')
      return []
    }
    const { tool_calls } = message
    const calls = tool_calls?.filter(isToolCall)
    const others = (tool_calls?.length ?? 0) - (calls?.length ?? 0)
    if (others > 0) count(not_carried, 'messages.tool_calls', others)
    return [{ ...message, tool_calls: calls }]
  })
  const conversation: Conversation = {
    title: session.title ?? undefined,
    model: session.model ?? undefined,
    source: session.source,
    system_prompt: session.system_prompt ?? undefined,
    tools,
    messages,
  }
  const converted = FORMATS[format].to(conversation)
  addCounts(not_carried, converted.not_carried)
  return { value: converted.value, not_carried }
}
