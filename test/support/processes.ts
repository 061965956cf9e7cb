import { type ChildProcessWithoutNullStreams, spawn, spawnSync } from 'node:child_process'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { setTimeout as delay } from 'node:timers/promises'
import Database from 'better-sqlite3'
import { expect, onTestFinished } from 'vitest'

/** The SQLite of `python3`, or undefined where there is no Python. */
export const pythonSqlite: string | undefined =
  spawnSync('python3', ['-c', 'import sqlite3; print(sqlite3.sqlite_version)'], {
    encoding: 'utf8',
  }).stdout?.trim() || undefined

/**
 * A program of `children/` in a process of its own. It is spoken to in lines: it says `ready`, is sent `go`,
 * and then whatever the two agree on.
 */
export class Child {
  readonly #name: string
  readonly #process: ChildProcessWithoutNullStreams
  readonly #unread: string[] = []
  #stderr = ''
  #over = false
  #wake = () => {}

  /** Every line it has said. */
  readonly lines: string[] = []

  /** Settles when the process has ended and everything it said has arrived. */
  readonly ended: Promise<{ code: number | null; signal: NodeJS.Signals | null }>

  constructor(name: string, args: string[]) {
    this.#name = name
    const program = join(import.meta.dirname, 'children', name)
    this.#process = spawn(name.endsWith('.py') ? 'python3' : process.execPath, [program, ...args])
    // Writing to a child that has just been killed is no failure of the test.
    this.#process.stdin.on('error', () => {})
    this.#process.stderr.setEncoding('utf8').on('data', (text) => {
      this.#stderr += text
    })
    createInterface({ input: this.#process.stdout }).on('line', (line) => {
      this.lines.push(line)
      this.#unread.push(line)
      this.#wake()
    })
    this.ended = new Promise((resolve) => {
      this.#process.on('close', (code, signal) => {
        this.#over = true
        this.#wake()
        resolve({ code, signal })
      })
    })
  }

  /** What it wrote to its error stream. */
  get stderr(): string {
    return this.#stderr
  }

  send(line: string): void {
    this.#process.stdin.write(`${line}\n`)
  }

  /**
   * Waits for the next line that begins with a word, passing over others, and returns what follows the word.
   * Fails when the child says `error` or ends.
   */
  async hear(word: string): Promise<string> {
    for (;;) {
      for (let line = this.#unread.shift(); line !== undefined; line = this.#unread.shift()) {
        if (line === word || line.startsWith(`${word} `)) return line.slice(word.length + 1)
        if (line.startsWith('error ')) throw new Error(`${this.#name}: ${line}`)
      }
      if (this.#over) throw new Error(`${this.#name} ended without saying '${word}':\n${this.#stderr}`)
      await new Promise<void>((resolve) => {
        this.#wake = resolve
      })
    }
  }

  /** Sends a line and waits for the answer to it. */
  ask(line: string, word = 'ok'): Promise<string> {
    this.send(line)
    return this.hear(word)
  }

  /** Ends it at once, wherever it is. */
  async kill(): Promise<void> {
    this.#process.kill('SIGKILL')
    await this.ended
  }
}

/** Starts a program of `children/` and waits until it is ready. It is killed when the test ends. */
export async function start(name: string, ...args: string[]): Promise<Child> {
  const child = new Child(name, args)
  onTestFinished(() => child.kill())
  await child.hear('ready')
  return child
}

/** Starts several at once, and lets them go together. */
export async function startTogether(programs: [name: string, ...args: string[]][]): Promise<Child[]> {
  const children = await Promise.all(programs.map((program) => start(...program)))
  for (const child of children) child.send('go')
  return children
}

/** A process of somebody else with the file open: `ask()` it to run SQL; it answers with the rows. */
export async function startSql(path: string): Promise<Child> {
  const child = await start('sql.mjs', path)
  child.send('go')
  return child
}

/** Waits until something is so. */
export async function until(isSo: () => boolean): Promise<void> {
  while (!isSo()) await delay(2)
}

/** A promise that the test settles. */
export function gate(): { opened: Promise<void>; open: () => void } {
  let open = () => {}
  const opened = new Promise<void>((resolve) => {
    open = resolve
  })
  return { opened, open }
}

/** Runs SQL on a connection of its own. */
export function sql<Row>(path: string, text: string, ...values: unknown[]): Row[] {
  const db = new Database(path)
  try {
    const statement = db.prepare<unknown[], Row>(text)
    if (statement.reader) return statement.all(...values)
    statement.run(...values)
    return []
  } finally {
    db.close()
  }
}

/** Expects a file without any damage: its pages, its word index, its references, its counters, its additions. */
export function expectSound(path: string): void {
  const db = new Database(path)
  try {
    expect(db.pragma('integrity_check', { simple: true })).toBe('ok')
    expect(db.pragma('foreign_key_check')).toEqual([])
    // Rank 1: the index is compared with the texts.
    db.exec("insert into messages_fts(messages_fts, rank) values('integrity-check', 1)")
    expect(
      db
        .prepare(`
          select id, message_count, tool_call_count from sessions
          where message_count is not (select count(*) from messages where session_id = sessions.id)
            or tool_call_count is not (
              select coalesce(sum(json_array_length(tool_calls)), 0) from messages where session_id = sessions.id)`)
        .all(),
    ).toEqual([])
    expect(
      db
        .prepare(`
          select sessions.id, last_active from sessions
          left join hs_session_activity on session_id = sessions.id
          where last_active is not coalesce(
            (select max(timestamp) from messages where session_id = sessions.id), started_at)`)
        .all(),
    ).toEqual([])
    expect(
      db
        .prepare(
          'select message_id from hs_structured_content where message_id not in (select id from messages)',
        )
        .all(),
    ).toEqual([])
    expect(
      db
        .prepare(`
          select message_id from hs_client_ids
          where not exists (
            select 1 from messages where id = message_id and messages.session_id = hs_client_ids.session_id)`)
        .all(),
    ).toEqual([])
  } finally {
    db.close()
  }
}
