import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { now } from '../arguments.ts'
import type { Connection } from '../database/connection.ts'
import { fileSize } from '../database/file-access.ts'
import { BUSY_TIMEOUT_MS } from '../database/limits.ts'
import { openConnection } from '../database/open-connection.ts'
import { MigrationNeededError, NotAStateFileError, OptionConflictError } from '../errors.ts'
import { MAX_TITLE_LENGTH, sanitizeTitle } from '../sessions/title-text.ts'
import { isBundleHeader, readBundle } from './bundle-file.ts'
import type { ImportedConversation } from './conversation.ts'
import { addCounts, type Counts } from './counts.ts'
import { parseJson } from './guards.ts'
import { fromHermes, isHermesSession } from './hermes.ts'
import { readLines } from './lines.ts'
import { readConversations } from './read-conversations.ts'

/** Opens another state file, for what it holds. */
export type OpenOther = (path: string, readonly: boolean) => Promise<OtherStore & AsyncDisposable>

interface OtherStore {
  transfer: {
    exportAll(options: { signal?: AbortSignal }): AsyncIterable<unknown>
    countFurther(signal: AbortSignal | undefined): Promise<Counts>
  }
}

/** The records of a file to import, whatever it is. `notCarried` gets what they do not have of it. */
export async function* recordsOfFile(
  path: string,
  openOther: OpenOther,
  notCarried: Counts,
  signal: AbortSignal | undefined,
): AsyncGenerator<unknown> {
  if (await isDatabase(path, signal)) return yield* recordsOfState(path, openOther, notCarried, signal)
  let line = ''
  for await (line of readLines(path)) if (line.trim() !== '') break
  const text = line.replace(/^\uFEFF/, '')
  if (!/^\s*[[{]/.test(text))
    throw new TypeError(
      `'${path}' must be a bundle, an export of Hermes, a state.db or conversations in JSON, and begins like none of them. Nothing was imported.`,
    )
  const first = parseJson(text)
  if (isBundleHeader(first)) yield* readBundle(path, readLines(path))
  else if (isHermesSession(first)) yield* hermesSessions(path)
  else for await (const conversation of readConversations(path)) yield toRecord(conversation)
}

async function* hermesSessions(path: string): AsyncGenerator<unknown> {
  let number = 0
  for await (const line of readLines(path)) {
    const where = `${path}, line ${++number}`
    if (line.trim() === '') continue
    const session = parseJson(line.replace(/^\uFEFF/, ''))
    if (session === undefined)
      throw new TypeError(`${where} must be a JSON document: the file may be cut off.`)
    yield fromHermes(session, where)
  }
}

/** What a state file holds. One of an earlier schema, or half migrated, is brought up to date in a copy. */
async function* recordsOfState(
  path: string,
  openOther: OpenOther,
  notCarried: Counts,
  signal: AbortSignal | undefined,
): AsyncGenerator<unknown> {
  try {
    await using other = await openOther(path, true).catch((error: unknown) => {
      // This process has it open to write, so it is up to date: sharing that writes nothing.
      if (error instanceof OptionConflictError) return openOther(path, false)
      throw error
    })
    yield* other.transfer.exportAll({ signal })
    addCounts(notCarried, await other.transfer.countFurther(signal))
    return
  } catch (error) {
    if (!(error instanceof MigrationNeededError)) throw error
  }
  const folder = mkdtempSync(join(tmpdir(), 'hermes-state-'))
  try {
    const copy = join(folder, 'state.db')
    await copyState(path, copy, signal)
    await using other = await openOther(copy, false)
    yield* other.transfer.exportAll({ signal })
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

/** Asks SQLite: this process may have the file open, and reading it in another way would drop its locks on it. */
async function isDatabase(path: string, signal: AbortSignal | undefined): Promise<boolean> {
  if (!fileSize(path)) return false
  try {
    const connection = await openToRead(path, signal)
    connection.close()
    return true
  } catch (error) {
    if (error instanceof NotAStateFileError) return false
    throw error
  }
}

function openToRead(path: string, signal: AbortSignal | undefined): Promise<Connection> {
  return openConnection({
    path: resolve(path),
    readonly: true,
    synchronous: 'full',
    busyTimeout: BUSY_TIMEOUT_MS,
    signal,
    events: () => {},
  })
}

async function copyState(path: string, copy: string, signal: AbortSignal | undefined): Promise<void> {
  const source = await openToRead(path, signal)
  try {
    source.exec('begin')
    await source.copyTo(copy, () => signal?.throwIfAborted())
  } finally {
    source.close()
  }
}

/** A conversation from elsewhere as a session of its own, which began with its first message that has a time. */
function toRecord({
  messages,
  title,
  model,
  source,
  source_format,
  system_prompt,
  tools,
}: ImportedConversation): unknown {
  const times = messages.map(({ timestamp }) => timestamp).filter((time) => time !== undefined)
  const started_at = times[0] ?? now()
  return {
    type: 'session',
    id: crypto.randomUUID(),
    source: source ?? source_format,
    model,
    system_prompt,
    model_config: tools === undefined ? undefined : { tools },
    started_at,
    // From outside: one that is too long is no reason to refuse the conversation.
    title:
      title === undefined
        ? undefined
        : sanitizeTitle(Array.from(title.normalize('NFC')).slice(0, MAX_TITLE_LENGTH).join('')),
    message_count: messages.length,
    tool_call_count: messages.reduce((sum, { tool_calls }) => sum + (tool_calls?.length ?? 0), 0),
    messages: messages.map((message) => ({ ...message, timestamp: message.timestamp ?? started_at })),
  }
}
