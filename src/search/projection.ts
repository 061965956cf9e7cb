import { text } from '../database/cells.ts'
import { visibleStored } from '../messages/structured-content.ts'
import { head } from './characters.ts'

/** Characters of a tool's result that are searched; migration 010 has the same. */
const TOOL_RESULT = 8_192

const MEDIA = ';base64,'

/** The columns of a message that are searched. */
export interface SearchedRow {
  role: unknown
  content: unknown
  tool_name: unknown
  tool_calls: unknown
}

/** The texts of a message as they are searched, by field. */
export type Searched = Record<SearchField, string>

export type SearchField = 'content' | 'tool_name' | 'tool_calls'

export const SEARCH_FIELDS: readonly SearchField[] = ['content', 'tool_name', 'tool_calls']

/**
 * What is searched of a message: its visible text, of a tool's result the first 8,192 characters, without what
 * follows `;base64,`; the name of its tool; its tool calls, with quotes and escaped white space as spaces and other
 * escapes as what they stand for.
 *
 * @param whole Do not shorten the text.
 */
export function searched(row: SearchedRow, whole = false): Searched {
  const visible = visibleStored(text(row.content) ?? '')
  return {
    content: whole ? visible : bounded(visible, row.role === 'tool'),
    tool_name: text(row.tool_name) ?? '',
    tool_calls: (text(row.tool_calls) ?? '').replaceAll(ESCAPE, characterOf).toWellFormed(),
  }
}

/**
 * Escapes of JSON. Arguments are JSON inside the JSON, whose backslashes are four; and Python's `json.dumps` escapes
 * every character beyond ASCII, which the word index cannot read.
 */
const ESCAPE = /\\{4}|\\{0,3}"|\\{1,2}(?:[ntr]|u([0-9a-fA-F]{4}))/g

function characterOf(escaped: string, code: string | undefined): string {
  if (code !== undefined) return String.fromCharCode(Number.parseInt(code, 16))
  return escaped === '\\'.repeat(4) ? '\\' : ' '
}

function bounded(visible: string, isToolResult: boolean): string {
  const media = visible.indexOf(MEDIA)
  const words = media === -1 ? visible : visible.slice(0, media + MEDIA.length)
  return isToolResult ? head(words, TOOL_RESULT) : words
}
