import type { ToolCall } from '../messages/message-types.ts'
import { argumentsValue, isToolCall } from './calls.ts'
import { contained } from './contained-markdown.ts'
import { isTextPart } from './content.ts'
import type { Converted } from './conversation.ts'
import { type Counts, count } from './counts.ts'
import { isArray } from './guards.ts'
import { imageUrl } from './images.ts'
import { fenced, folded, inHtml, oneLine } from './markdown-blocks.ts'
import { type MessageRecord, SESSION_COLUMNS, type SessionRecord } from './records.ts'

const NOT_SHOWN = new Set<string>([
  'model_config',
  'billing_provider',
  'billing_base_url',
  'billing_mode',
  'cost_status',
  'cost_source',
  'pricing_version',
])

const MESSAGE_NOT_SHOWN = [
  'client_id',
  'finish_reason',
  'token_count',
  'reasoning_details',
  'codex_reasoning_items',
  'tool_call_id',
] as const

/** Makes a text shorter by what is no text. */
type Shortener = (text: string) => string

const DATA_URL = /data:([\w.+-]+\/[\w.+-]+);base64,([\w+/=]{100,})/g

/** A session for readers; {@link Converted} says what of it is not shown. */
export function sessionMarkdown(session: SessionRecord): Converted<string> {
  const not_carried: Counts = {}
  for (const column of SESSION_COLUMNS)
    if (session[column] && NOT_SHOWN.has(column)) count(not_carried, column)
  const blocks = [`# ${oneLine(session.title ?? '') || oneLine(session.id)}`, factsOf(session)]
  if (session.system_prompt) blocks.push(folded('System prompt', contained(session.system_prompt)))
  for (const message of session.messages) {
    if (message.inactive) count(not_carried, 'messages.inactive')
    else blocks.push(...messageBlocks(message, not_carried))
  }
  return { value: `${blocks.join('\n\n')}\n`, not_carried }
}

function factsOf(session: SessionRecord): string {
  const { actual_cost_usd, estimated_cost_usd, ended_at, end_reason } = session
  const cost = actual_cost_usd ?? estimated_cost_usd
  const tokens = [
    [session.input_tokens, 'in'],
    [session.output_tokens, 'out'],
    [session.cache_read_tokens, 'read from cache'],
    [session.cache_write_tokens, 'written to cache'],
    [session.reasoning_tokens, 'of reasoning'],
  ] as const
  const counted = tokens.flatMap(([amount, kind]) => (amount ? [`${number(amount)} ${kind}`] : []))
  const facts = {
    Session: session.id,
    Parent: session.parent_session_id,
    Source: session.source,
    User: session.user_id,
    Model: session.model,
    Started: timeOf(session.started_at),
    Ended: ended_at === null ? null : `${timeOf(ended_at)}, ${end_reason ?? 'no reason'}`,
    Messages: `${number(session.message_count)}, ${number(session.tool_call_count)} calls of tools`,
    Tokens: counted.join(', '),
    Cost: cost === null ? null : `${actual_cost_usd === null ? 'about ' : ''}${dollarsText(cost)}`,
  }
  const [first, ...rest] = Object.entries(facts).flatMap(([name, value]) =>
    value ? [`| ${name} | ${oneLine(value)} |`] : [],
  )
  return [first, '| --- | --- |', ...rest].join('\n')
}

function messageBlocks(message: MessageRecord, not_carried: Counts): string[] {
  for (const field of MESSAGE_NOT_SHOWN) if (message[field]) count(not_carried, `messages.${field}`)
  const { role, timestamp, reasoning, raw } = message
  const short: Shortener = (text) => withoutData(text, not_carried)
  const content = contentBlocks(message, short)
  if (role === 'tool') {
    const name = message.tool_name ? ` of <code>${inHtml(message.tool_name)}</code>` : ''
    return [folded(`Result${name} · ${timeOf(timestamp)}`, content.join('\n\n') || '*Nothing.*')]
  }
  const blocks = [`## ${oneLine(role.slice(0, 1).toUpperCase() + role.slice(1))} · ${timeOf(timestamp)}`]
  if (reasoning) blocks.push(folded('Reasoning', contained(short(reasoning))))
  blocks.push(...content)
  // A file may hold anything there.
  const calls: readonly unknown[] = message.tool_calls ?? []
  for (const call of calls) {
    if (isToolCall(call) && call.id) count(not_carried, 'messages.tool_calls.id')
    blocks.push(isToolCall(call) ? callBlock(call, short) : folded('Call', json(call, short)))
  }
  if (!message.tool_calls && raw?.tool_calls) blocks.push(folded('Calls', fenced(short(raw.tool_calls))))
  return blocks.length === 1 ? [...blocks, '*Nothing.*'] : blocks
}

function contentBlocks({ role, content, raw }: MessageRecord, short: Shortener): string[] {
  // A tool says what it says, whatever it means to Markdown.
  const words = (text: string) => (role === 'tool' ? fenced(short(text)) : contained(short(text)))
  if (typeof content === 'string') return content === '' ? [] : [words(content)]
  if (content === undefined || content === null) return raw?.content ? [fenced(short(raw.content))] : []
  if (!isArray(content)) return [json(content, short)]
  return content.map((part) => {
    if (typeof part === 'string') return words(part)
    if (isTextPart(part)) return words(part.text)
    const url = imageUrl(part)
    return url === undefined ? json(part, short) : `Image: ${oneLine(short(url))}`
  })
}

function callBlock({ function: { name, arguments: text } }: ToolCall, short: Shortener): string {
  const value = argumentsValue(text)
  const summary = `Calls <code>${inHtml(name)}</code>`
  if (typeof value === 'string') return folded(summary, fenced(short(value)))
  // Programs and documents, which JSON puts on one line.
  const texts = Object.entries(value).filter(
    (entry): entry is [string, string] => typeof entry[1] === 'string' && entry[1].includes('\n'),
  )
  const rest = Object.entries(value).filter(([key]) => !texts.some(([name]) => name === key))
  const blocks = texts.map(([key, argument]) => `${oneLine(key)}:\n\n${fenced(short(argument))}`)
  if (rest.length > 0 || texts.length === 0) blocks.unshift(json(Object.fromEntries(rest), short))
  return folded(summary, blocks.join('\n\n'))
}

function json(value: unknown, short: Shortener): string {
  return fenced(short(JSON.stringify(value, null, 2)), 'json')
}

/** Images and other files would fill the page with base64. */
function withoutData(text: string, not_carried: Counts): string {
  return text.replaceAll(DATA_URL, (_, type: string, data: string) => {
    count(not_carried, 'messages.content')
    return `data:${type};base64,… (${number(Math.floor((data.length * 3) / 4))} bytes)`
  })
}

function timeOf(seconds: number): string {
  const time = new Date(seconds * 1_000)
  if (Number.isNaN(time.getTime())) return `${seconds} s`
  return `${time.toISOString().slice(0, -5).replace('T', ' ')} UTC`
}

function number(value: number): string {
  return value.toLocaleString('en')
}

function dollarsText(amount: number): string {
  return amount.toLocaleString('en', { style: 'currency', currency: 'USD', maximumSignificantDigits: 4 })
}
