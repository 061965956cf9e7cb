import { expect } from 'vitest'
import type { Conversation, FormatName, JsonValue } from '../../src/index.ts'
import type { Converted } from '../../src/transfer/conversation.ts'
import { FORMATS } from '../../src/transfer/formats.ts'

/** A list of one text is the same as that text. */
function plain(content: unknown): unknown {
  if (!Array.isArray(content) || content.length !== 1) return content
  const { type, text, ...further } = content[0] ?? {}
  return type === 'text' && typeof text === 'string' && Object.keys(further).length === 0 ? text : content
}

/** The value of arguments, which are JSON text; what is none stays text. */
function parsed(text: string): JsonValue {
  try {
    return JSON.parse(text)
  } catch {
    return text
  }
}

/** A conversation without what a format did not carry: arguments by their value, and what is empty left out. */
function carried(
  { messages, title, model, source, system_prompt, tools }: Conversation,
  lost: ReadonlySet<string>,
): unknown {
  const kept = (names: object, prefix: string) =>
    Object.fromEntries(
      Object.entries(names).filter(
        ([name, value]) =>
          value !== undefined && value !== null && value !== '' && !lost.has(`${prefix}${name}`),
      ),
    )
  return JSON.parse(
    JSON.stringify({
      ...kept({ title, model, source, system_prompt, tools }, ''),
      messages: messages.map(({ tool_calls, content, ...message }) => ({
        ...kept({ ...message, content: plain(content) }, 'messages.'),
        calls: (tool_calls ?? []).map(({ id, function: { name, arguments: text } }) => [
          lost.has('messages.tool_calls.id') ? '' : id,
          name,
          lost.has('messages.tool_calls') ? '' : parsed(text),
        ]),
      })),
    }),
  )
}

/** Expects that a conversation comes back from a format equal in all that this says it carries. */
export function expectCarried(
  format: FormatName,
  conversation: Conversation,
  { value, not_carried }: Converted<object>,
): void {
  const again = FORMATS[format].from(JSON.parse(JSON.stringify(value)), format)
  const lost = new Set(Object.keys(not_carried))
  // Messages that were joined or split have no counterpart: that is said, and the second time nothing is lost.
  if (lost.has('messages')) {
    expect(FORMATS[format].to(again), format).toEqual({ value, not_carried: {} })
  } else expect(carried(again, lost), format).toEqual(carried(conversation, lost))
}
