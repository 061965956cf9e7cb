import { createReadStream } from 'node:fs'
import { open } from 'node:fs/promises'
import { pipeline } from 'node:stream'
import { createGunzip } from 'node:zlib'
import type { JsonArray, JsonValue } from '../json.ts'
import type { ImportedConversation } from './conversation.ts'
import { FORMATS, formatOf } from './formats.ts'
import { isArray, isObject, parseJson } from './guards.ts'

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
    let text = ''
    for await (const chunk of readText(path)) text += chunk
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
  for await (const chunk of readText(path)) {
    const [end = '', ...next] = chunk.split('\n')
    line += end
    for (const start of next) {
      yield line
      line = start
    }
  }
  yield line
}

async function* readText(path: string): AsyncGenerator<string> {
  const isCompressed = await isGzip(path)
  const file = createReadStream(path)
  const bytes = isCompressed ? pipeline(file, createGunzip(), () => {}) : file
  for await (const chunk of bytes.setEncoding('utf8')) yield String(chunk)
}

/** Every gzip file begins with these two bytes: https://www.rfc-editor.org/rfc/rfc1952#page-6 */
async function isGzip(path: string): Promise<boolean> {
  const file = await open(path)
  try {
    const { bytesRead, buffer } = await file.read(Buffer.alloc(2), 0, 2, 0)
    return bytesRead === 2 && buffer.readUInt16BE() === 0x1f8b
  } finally {
    await file.close()
  }
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
