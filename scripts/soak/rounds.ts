import { copyFileSync, existsSync, readdirSync, rmSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import Database from 'better-sqlite3'
import { openStateStore } from '../../src/index.ts'
import { Child } from '../../test/support/child.ts'
import { faultsOf } from '../../test/support/soundness.ts'
import { acknowledgedBy, compare, storedIn } from './acknowledged.ts'
import type { Kind } from './kinds.ts'

/** What a round found. */
export interface Round {
  kind: string
  /** Messages that the killed process, or those that opened together, had been told were stored. */
  acknowledged: number
  lost: number
  doubled: number
  /** What the checks found, a sentence each. */
  faults: string[]
  /** How long the opening took: after the kill, or the slowest of those together. */
  open_ms: number
}

/**
 * Lets a process work on a file, kills it, opens the file and looks at everything. `moment` from 0 to 1 says when it
 * is killed.
 */
export async function killRound(kind: Kind, folder: string, name: string, moment: number): Promise<Round> {
  const original = join(folder, `${kind.name}.db`)
  if (!existsSync(original)) await kind.write(original)
  const path = join(folder, `${name}.db`)
  copyFileSync(original, path)
  const before = storedIn(original)
  const child = new Child('worker.mjs', [path, kind.name, name])
  try {
    await child.hear('ready')
    child.send('go')
    await delay(kind.within_ms * moment)
  } finally {
    await child.kill()
  }
  const acknowledged = acknowledgedBy(child)
  const faults = child.stderr === '' ? [] : [`the process failed by itself: ${child.stderr}`]

  const started = performance.now()
  const store = await openStateStore({ path, onEvent: () => {} })
  const open_ms = performance.now() - started
  const report = await store.maintenance.check({ full: true })
  if (!report.ok) faults.push(`check(): ${JSON.stringify(report)}`)
  faults.push(...((await kind.check?.(store)) ?? []))
  await store.close()
  faults.push(...faultsOf(path))
  const difference = compare([...before, ...acknowledged], storedIn(path))
  removeFile(path)
  return { kind: kind.name, acknowledged: acknowledged.length, ...difference, faults, open_ms }
}

export const OPENERS = 12

/** Starts the processes that open new files together. */
export async function startOpeners(): Promise<Child[]> {
  const openers = Array.from({ length: OPENERS }, (_, n) => new Child('first-opener.mjs', [`opener ${n}`]))
  for (const opener of openers) await opener.hear('ready')
  for (const opener of openers) opener.send('go')
  return openers
}

/** Lets all of them open one new file at once: one makes it, all append, nothing is there twice. */
export async function firstOpenRound(
  openers: readonly Child[],
  folder: string,
  name: string,
): Promise<Round> {
  const path = join(folder, `${name}.db`)
  const said = openers.map((opener) => acknowledgedBy(opener).length)
  const outcomes = await Promise.allSettled(openers.map((opener) => opener.ask(path, 'opened')))
  const faults = outcomes.flatMap((outcome) => (outcome.status === 'rejected' ? [`${outcome.reason}`] : []))
  const opened: { opened_ms: number; migrations: string[] }[] = outcomes.flatMap((outcome) =>
    outcome.status === 'fulfilled' ? [JSON.parse(outcome.value)] : [],
  )
  const migrated = opened.filter(({ migrations }) => migrations.length > 0)
  if (migrated.length !== 1) faults.push(`${migrated.length} processes made the file`)
  faults.push(...recordFaults(path, migrated[0]?.migrations ?? []), ...faultsOf(path))
  const acknowledged = openers.flatMap((opener, index) => acknowledgedBy(opener).slice(said[index]))
  const difference = compare(acknowledged, storedIn(path))
  removeFile(path)
  return {
    kind: 'first open',
    acknowledged: acknowledged.length,
    ...difference,
    faults,
    open_ms: Math.max(0, ...opened.map(({ opened_ms }) => opened_ms)),
  }
}

/** The schema's version is there once, and each migration that was run. */
function recordFaults(path: string, migrations: string[]): string[] {
  const db = new Database(path, { readonly: true })
  try {
    const versions = JSON.stringify(db.prepare('select version from schema_version').pluck().all())
    const names = db.prepare('select name from kysely_migration order by name').pluck().all()
    return [
      ...(versions === '[6]' ? [] : [`schema_version holds ${versions}`]),
      ...(String(names) === String(migrations) ? [] : [`kysely_migration holds ${names}`]),
    ]
  } finally {
    db.close()
  }
}

/** Removes a file, and what lies beside it under its name. */
export function removeFile(path: string): void {
  for (const name of readdirSync(dirname(path)))
    if (name.startsWith(basename(path))) rmSync(join(dirname(path), name))
}
