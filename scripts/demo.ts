/**
 * npm run demo [-- FILE…]: the main job on real input. Conversations go into a new state file, the process
 * ends with it, and a second process reads everything back. FILEs are conversations of OpenAI, Anthropic, the Vercel
 * AI SDK or ShareGPT, part-list JSONL or SWE-agent .traj; without any, a bundled sample in English, Chinese and Japanese.
 */
import { spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import {
  type ConversationMessage,
  type NewMessage,
  openStateStore,
  type SessionSummary,
  type StateStore,
  type Usage,
} from '../src/index.ts'
import { readConversations } from '../src/transfer/read-conversations.ts'
import { clip, heading, indented } from './terminal.ts'

const SAMPLE = fileURLToPath(new URL('sample/conversations.json', import.meta.url))
const KEPT = 4

// `npm run demo | head` closes the pipe: that is no error.
process.stdout.on('error', (error: NodeJS.ErrnoException) => process.exit(error.code === 'EPIPE' ? 0 : 1))

const [first, ...rest] = process.argv.slice(2)
if (first === '--show') await show(rest[0] ?? '', rest[1] ?? '')
else await demo(first === undefined ? [SAMPLE] : [first, ...rest])

async function demo(files: string[]): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), 'hermes-state-demo-'))
  try {
    const path = join(folder, 'state.db')
    const shown = await fill(path, files)
    console.log('The store is closed. A second process opens the file:')
    const child = spawnSync(
      process.execPath,
      [...process.execArgv, fileURLToPath(import.meta.url), '--show', path, shown],
      { stdio: 'inherit' },
    )
    process.exitCode = child.status ?? 1
  } catch (error) {
    console.error(error instanceof Error ? error.message : error)
    process.exitCode = 1
  } finally {
    rmSync(folder, { recursive: true })
  }
}

/** Imports the files, compresses the longest session, and returns the id of its continuation. */
async function fill(path: string, files: string[]): Promise<string> {
  await using store = await openStateStore({ path })
  console.log(`Created ${path} with Hermes schema ${store.info.schemaVersion}`)
  let longest = { id: '', messages: 0 }
  for (const file of files) {
    const started = performance.now()
    const imported = { sessions: 0, messages: 0 }
    for await (const conversation of readConversations(file)) {
      const { messages, source_format, source, model, title, system_prompt, tools } = conversation
      const id = await store.sessions.create({
        source: source ?? source_format,
        model,
        system_prompt,
        model_config: tools === undefined ? null : { tools },
      })
      await store.messages.appendMany(id, messages)
      if (title !== undefined) await store.titles.setIfEmpty(id, title)
      // What an agent does after each call of a model: adds what this call used.
      for (const delta of callsOf(messages)) await store.usage.add(id, delta)
      imported.sessions++
      imported.messages += messages.length
      if (messages.length > longest.messages) longest = { id, messages: messages.length }
      if (process.stderr.isTTY && imported.sessions % 25 === 0)
        process.stderr.write(`\r${basename(file)}: ${imported.sessions} conversations …\u001b[K`)
    }
    if (process.stderr.isTTY) process.stderr.write('\r\u001b[K')
    const seconds = ((performance.now() - started) / 1000).toFixed(1)
    console.log(
      `Imported ${basename(file)}: ${imported.sessions} conversations, ${imported.messages} messages in ${seconds} s`,
    )
  }
  const continuation = await compress(store, longest.id)
  console.log(`Compressed the longest session (${longest.messages} messages); its continuation keeps ${KEPT}`)
  return continuation
}

/** What an agent does when the context is full: ends the session and goes on in a child, in one transaction. */
async function compress(store: StateStore, id: string): Promise<string> {
  const session = await store.sessions.get(id)
  if (!session) throw new Error('The files hold no conversation: give files with messages in them.')
  const recent = await store.messages.list(id, { latest: KEPT })
  if (session.title === null) await store.titles.setIfEmpty(id, 'The longest session')
  return store.transaction(async (tx) => {
    await tx.sessions.end(id, 'compression')
    const continuation = await tx.sessions.create({
      source: session.source,
      model: session.model,
      system_prompt: session.system_prompt,
      parent_session_id: id,
    })
    const summary = `[Summary of ${session.message_count - recent.length} earlier messages, kept in session ${id}]`
    await tx.messages.appendMany(continuation, [{ role: 'user', content: summary }, ...recent])
    await tx.titles.setIfEmpty(continuation, (await tx.titles.get(id)) ?? '')
    // The other way to count: an agent that keeps totals itself sets them.
    await tx.usage.set(continuation, totalOf(callsOf(recent)))
    return continuation
  })
}

/** Tokens of each call of the model, at four characters a token, and their cost at $1 and $4 a million. */
function callsOf(messages: readonly NewMessage[]): Required<Tokens>[] {
  let read = 0
  return messages.flatMap(({ role, content, reasoning, tool_calls }) => {
    const tokens = Math.ceil(JSON.stringify([content, reasoning, tool_calls]).length / 4)
    const input_tokens = read
    read += tokens
    if (role !== 'assistant') return []
    return [{ input_tokens, output_tokens: tokens, estimated_cost_usd: (input_tokens + 4 * tokens) / 1e6 }]
  })
}

type Tokens = Pick<Usage, 'input_tokens' | 'output_tokens' | 'estimated_cost_usd'>

function totalOf(calls: Required<Tokens>[]): Tokens {
  const sum = (name: keyof Tokens) => calls.reduce((total, call) => total + call[name], 0)
  return {
    input_tokens: sum('input_tokens'),
    output_tokens: sum('output_tokens'),
    estimated_cost_usd: sum('estimated_cost_usd'),
  }
}

/** The second process: everything below comes from the file. */
async function show(path: string, continuation: string): Promise<void> {
  await using store = await openStateStore({ path, readonly: true })
  const sessions = await store.sessions.list({ limit: 8 })
  heading(`Sessions: ${await store.sessions.count()}, messages: ${await store.messages.count()}; the latest`)
  for (const session of sessions) console.log(line(session))

  const parent = (await store.sessions.get(continuation))?.parent_session_id ?? continuation
  heading(`The conversation of ${parent.slice(0, 8)}, which goes on in ${continuation.slice(0, 8)}`)
  const conversation = await store.messages.conversation(parent)
  for (const message of conversation.slice(0, 8)) console.log(indented(message.role, said(message)))
  if (conversation.length > 8) console.log(`… ${conversation.length - 8} more`)

  heading('Its lineage')
  for (const { id } of (await store.lineage.ancestors(continuation)).reverse()) await relative(store, id)
  await relative(store, continuation)

  heading('Tokens by model, the most expensive first')
  for (const {
    model,
    sessions,
    input_tokens,
    output_tokens,
    estimated_cost_usd,
  } of await store.usage.byModel())
    console.log(
      `${clip(model ?? '(no model given)', 26)}${String(sessions).padStart(5)} ${sessions === 1 ? 'session ' : 'sessions'}` +
        `${input_tokens.toLocaleString('en').padStart(13)} in${output_tokens.toLocaleString('en').padStart(11)} out` +
        `  $${estimated_cost_usd.toFixed(4)}`,
    )

  for (const query of ['docker OR error', '翻译 OR 天气 OR 备份', '🚀']) {
    const hits = await store.search.messages(query, { limit: 100 })
    heading(`Search for ${query}: ${hits.length === 100 ? 'over 99' : hits.length} hits`)
    const [hit] = hits
    console.log(hit ? indented(hit.role, hit.snippet) : 'Nothing found.')
  }
}

async function relative(store: StateStore, id: string): Promise<void> {
  const session = await store.sessions.get(id)
  if (!session) return
  const { title, end_reason, message_count, input_tokens, output_tokens } = session
  const tokens = (input_tokens + output_tokens).toLocaleString('en')
  console.log(
    `${id.slice(0, 8)}  ${clip(title ?? '', 32)}${String(message_count).padStart(4)} msgs` +
      `${tokens.padStart(8)} tokens  ${end_reason ?? 'open'}`,
  )
}

function line({ id, source, message_count, title, preview }: SessionSummary): string {
  return `${id.slice(0, 8)}  ${clip(source, 9)}${String(message_count).padStart(4)}  ${clip(title ?? '', 26)}  ${clip(preview, 26)}`
}

function said({ content, tool_calls, reasoning }: ConversationMessage): string {
  const text = typeof content === 'string' ? content : content === null ? '' : JSON.stringify(content)
  const calls = (tool_calls ?? []).map((call) => `→ ${call.function.name}(${call.function.arguments})`)
  return [reasoning ? `(${reasoning})` : '', text, ...calls].filter(Boolean).join(' ')
}
