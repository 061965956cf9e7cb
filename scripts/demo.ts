/**
 * npm run demo [-- FILE…]: the main job on real input. Conversations go into a new state file, the process
 * ends with it, and a second process reads everything back. FILEs are OpenAI message arrays, ShareGPT JSON,
 * part-list JSONL or SWE-agent .traj; without any, a bundled sample in English, Chinese and Japanese.
 */
import { spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import {
  type ConversationMessage,
  openStateStore,
  type SessionSummary,
  type StateStore,
} from '../src/index.ts'
import { readConversations } from '../src/transfer/read-conversations.ts'
import { clip, heading, indented } from './terminal.ts'

const SAMPLE = fileURLToPath(new URL('sample/conversations.json', import.meta.url))
const KEPT = 4

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
  console.log(
    `Created ${path} (Hermes schema ${store.info.schemaVersion}, journal mode ${store.info.journalMode})`,
  )
  let longest = { id: '', messages: 0 }
  for (const file of files) {
    const started = performance.now()
    const imported = { sessions: 0, messages: 0 }
    for await (const { messages, source_format, model, system_prompt, tools } of readConversations(file)) {
      const id = await store.sessions.create({
        source: source_format,
        model,
        system_prompt,
        model_config: tools === undefined ? null : { tools },
      })
      await store.messages.appendMany(id, messages)
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
  console.log(
    `Compressed the longest session (${longest.messages} messages) into a continuation that keeps the last ${KEPT}`,
  )
  return continuation
}

/** What an agent does when the context is full: ends the session and goes on in a child, in one transaction. */
async function compress(store: StateStore, id: string): Promise<string> {
  const session = await store.sessions.get(id)
  if (!session) throw new Error('The files hold no conversation: give files with messages in them.')
  const recent = await store.messages.list(id, { latest: KEPT })
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
    return continuation
  })
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

  for (const query of ['docker OR error', '翻译 OR 天气 OR 备份', '🚀']) {
    const hits = await store.search.messages(query, { limit: 100 })
    heading(`Search for ${query}: ${hits.length === 100 ? 'over 99' : hits.length} hits`)
    const [hit] = hits
    console.log(hit ? indented(hit.role, hit.snippet) : 'Nothing found.')
  }
}

function line({ id, source, started_at, message_count, preview }: SessionSummary): string {
  const started = new Date(started_at * 1000).toISOString().slice(0, 16).replace('T', ' ')
  return [id.slice(0, 8), started, clip(source, 9), String(message_count).padStart(4), clip(preview, 37)].join(
    '  ',
  )
}

function said({ content, tool_calls, reasoning }: ConversationMessage): string {
  const text = typeof content === 'string' ? content : content === null ? '' : JSON.stringify(content)
  const calls = (tool_calls ?? []).map((call) => `→ ${call.function.name}(${call.function.arguments})`)
  return [reasoning ? `(${reasoning})` : '', text, ...calls].filter(Boolean).join(' ')
}
