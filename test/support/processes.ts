import { setTimeout as delay } from 'node:timers/promises'
import Database from 'better-sqlite3'
import { expect, onTestFinished } from 'vitest'
import { Child } from './child.ts'
import { pythonSqlite } from './python.ts'
import { faultsOf } from './soundness.ts'

export { Child, pythonSqlite }

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

/** Adds a message to session `s` that is only in the log of the file: the process that wrote it was killed. */
export async function writeToLog(path: string, content: string): Promise<void> {
  const child = await startSql(path)
  await child.ask('pragma journal_mode = wal')
  await child.ask('begin')
  await child.ask("update sessions set message_count = message_count + 1 where id = 's'")
  await child.ask(
    `insert into messages (session_id, role, content, timestamp) values ('s', 'user', '${content}', 1)`,
  )
  await child.ask('commit')
  await child.kill()
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
  expect(faultsOf(path)).toEqual([])
}
