import type { JsonArray, JsonValue } from '../json.ts'
import type { ImportedConversation } from './conversation.ts'
import { FORMATS, formatOf } from './formats.ts'
import { isArray, isObject, parseJson } from './guards.ts'
import { readLines } from './lines.ts'

/**
 * Reads the conversations of a transcript file, in order. What the file is shows in its content, never in its
 * name: one JSON document (a conversation, an array of messages, or an array of conversations), or JSON Lines
 * with such a document on each line, which are read one at a time; either may be compressed by gzip. A conversation
 * is in OpenAI's form, Anthropic's or the Vercel AI SDK's, a list of parts, ShareGPT or a SWE-agent trajectory; one
 * file may mix them.
 *
 * @example
 * for await (const conversation of readConversations('chats.jsonl')) console.log(conversation.messages.length)
 *
 * @throws TypeError naming the file, the line or the conversation, the message, and what was expected there.
 * Errors of reading the file, such as ENOENT, come as they are.
 */
export async function* readConversations(path: string): AsyncGenerator<ImportedConversation> {
  if (!(await isJsonLines(path))) {
    const lines: string[] = []
    for await (const line of readLines(path)) lines.push(line)
    yield* fromDocument(
      parse(lines.join('\n'), path, 'one JSON document, or JSON Lines with one on each line'),
      path,
    )
    return
  }
  let number = 0
  for await (const line of readLines(path)) {
    number++
    const where = `${path}, line ${number}`
    if (line.trim() !== '') yield* fromDocument(parse(line, where, 'a JSON document'), where)
  }
}

/** JSON Lines is a file of several lines the first of which is a document in itself. */
async function isJsonLines(path: string): Promise<boolean> {
  let first: string | undefined
  for await (const line of readLines(path)) {
    if (line.trim() === '') continue
    if (first !== undefined) return parseJson(withoutMark(first)) !== undefined
    first = line
  }
  return false
}

function parse(text: string, where: string, expected: string): JsonValue {
  try {
    return JSON.parse(withoutMark(text))
  } catch (error) {
    throw new TypeError(`${where} must be ${expected}.`, { cause: error })
  }
}

/** Without the byte order mark that some editors write, which JSON.parse refuses. */
function withoutMark(text: string): string {
  return text.replace(/^\uFEFF/, '')
}

function* fromDocument(value: JsonValue, where: string): Generator<ImportedConversation> {
  if (!isArray(value) || isMessages(value)) {
    yield toConversation(value, where)
    return
  }
  for (const [index, item] of value.entries())
    yield toConversation(item, `${where}, conversation ${index + 1}`)
}

function toConversation(value: JsonValue, where: string): ImportedConversation {
  const format = formatOf(value)
  if (format === undefined)
    throw new TypeError(
      `${where} must be a conversation: {messages: […]} or an array of messages (OpenAI, Anthropic, Vercel AI SDK, or lists of parts), {conversations: […]} (ShareGPT) or {history: […]} (SWE-agent).`,
    )
  return FORMATS[format].from(value, where)
}

function isMessages(values: JsonArray): boolean {
  const first = values[0]
  return isObject(first) && first.role !== undefined
}
