import { isToolCall } from './calls.ts'
import type { Conversation, Converted, FormatName } from './conversation.ts'
import { addCounts, type Counts, count } from './counts.ts'
import { FORMATS } from './formats.ts'
import { toHermes } from './hermes.ts'
import { SESSION_COLUMNS, type SessionRecord } from './records.ts'

/** What a file of exported sessions can be: a bundle, JSON Lines with a session on each, or Markdown to read. */
export type ExportFormat = 'bundle' | 'hermes' | 'markdown' | FormatName

export const EXPORT_FORMATS: readonly string[] = ['bundle', 'hermes', 'markdown', ...Object.keys(FORMATS)]

/** What a conversation has of its session. */
const CARRIED = new Set<string>(['title', 'source', 'model', 'system_prompt'])

/**
 * A session as Markdown for readers, as code hosts show it: what is known of it, then its messages. Replies look as
 * they were meant, but nothing in a message reaches beyond it: not an open code block, not HTML, not a heading.
 * Reasoning, the calls of tools and their results are folded. Files within messages (`data:` URLs) are cut out.
 *
 * @returns the text, and what of the session it does not show. A promise, because the parser of Markdown is loaded
 * when it is first needed.
 * @example
 * const { value } = await toMarkdown(await store.transfer.exportSession(id))
 */
export async function toMarkdown(session: SessionRecord): Promise<Converted<string>> {
  const { sessionMarkdown } = await import('./session-markdown.ts')
  return sessionMarkdown(session)
}

/** A session as text in a format other than the bundle, and what of it that cannot carry. */
export async function toFormat(
  session: SessionRecord,
  format: Exclude<ExportFormat, 'bundle'>,
): Promise<Converted<string>> {
  if (format === 'markdown') return toMarkdown(session)
  const { value, not_carried } = format === 'hermes' ? toHermes(session) : toChat(session, format)
  return { value: `${JSON.stringify(value)}\n`, not_carried }
}

/** A session in a chat format. */
export function toChat(session: SessionRecord, format: FormatName): Converted<object> {
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
