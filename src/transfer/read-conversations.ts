import { createReadStream } from 'node:fs'
import { readFile } from 'node:fs/promises'
import type { JsonArray, JsonValue } from '../json.ts'
import type { ImportedConversation } from './conversation.ts'
import { isArray, isObject, parseJson } from './guards.ts'
import { fromOpenAi } from './openai.ts'
import { fromParts } from './parts.ts'
import { fromShareGpt } from './sharegpt.ts'
import { fromSweAgent } from './swe-agent.ts'

/**
 * Reads the conversations of a transcript file, in order. What the file is shows in its content, never in its
 * name: one JSON document (a conversation, an array of messages, or an array of conversations), or JSON Lines
 * with such a document on each line, which are read one at a time. A conversation is in OpenAI form, a list of
 * parts, ShareGPT or a SWE-agent trajectory; one file may mix them.
 *
 * @example
 * for await (const conversation of readConversations('chats.jsonl')) console.log(conversation.messages.length)
 *
 * @throws TypeError naming the file, the line or the conversation, the message, and what was expected there.
 * Errors of reading the file, such as ENOENT, come as they are.
 */
export async function* readConversations(path: string): AsyncGenerator<ImportedConversation> {
  if (!(await isJsonLines(path))) {
    const text = await readFile(path, 'utf8')
    yield* fromDocument(parse(text, path, 'one JSON document, or JSON Lines with one on each line'), path)
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

/**
 * Lines end at \n alone. Node's readline also ends them at U+2028 from version 24, which JSON text may hold:
 * https://github.com/nodejs/node/pull/57591
 */
async function* readLines(path: string): AsyncGenerator<string> {
  let line = ''
  for await (const chunk of createReadStream(path, 'utf8')) {
    const [end = '', ...next] = String(chunk).split('\n')
    line += end
    for (const start of next) {
      yield line
      line = start
    }
  }
  yield line
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
  if (isObject(value)) {
    if (isArray(value.history)) return fromSweAgent(value, where)
    if (isArray(value.conversations)) return fromShareGpt(value, where)
  }
  const messages = isObject(value) ? value.messages : value
  if (!isArray(messages))
    throw new TypeError(
      `${where} must be a conversation: {messages: […]} or an array of messages (OpenAI, or lists of parts), {conversations: […]} (ShareGPT) or {history: […]} (SWE-agent).`,
    )
  return messages.some(hasParts) ? fromParts(value, where) : fromOpenAi(value, where)
}

function isMessages(values: JsonArray): boolean {
  const first = values[0]
  return isObject(first) && first.role !== undefined
}

/** Whether a message's content is a list of parts `{ type, value }`; OpenAI's parts have no `value`. */
function hasParts(message: JsonValue): boolean {
  return (
    isObject(message) &&
    isArray(message.content) &&
    message.content.some((part) => isObject(part) && typeof part.value === 'string')
  )
}
