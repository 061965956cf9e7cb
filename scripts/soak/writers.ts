import { join } from 'node:path'
import { openStateStore } from '../../src/index.ts'
import { Child } from '../../test/support/child.ts'
import { pythonSqlite } from '../../test/support/python.ts'
import { faultsOf } from '../../test/support/soundness.ts'
import { type Acknowledged, acknowledgedBy, compare, storedIn } from './acknowledged.ts'
import { type Round, removeFile } from './rounds.ts'

/** How many messages each writer appends. */
const COUNT = 100

/**
 * Lets so many processes append to one session without a pause; every second one is a Python program, where there is
 * one. Whatever they were told was stored is there once, and nothing else is.
 */
export async function writersRound(processes: number, folder: string, name: string): Promise<Round> {
  const path = join(folder, `${name}.db`)
  const store = await openStateStore({ path })
  await store.sessions.create({ id: 's', source: 'cli' })
  await store.close()
  const writers = Array.from({ length: processes }, (_, n) =>
    pythonSqlite && n % 2 === 1
      ? { name: `python ${n}`, child: new Child('hermes_writer.py', [path]) }
      : { name: `node ${n}`, child: new Child('appender.mjs', [path, `node ${n}`, String(COUNT)]) },
  )
  const faults: string[] = []
  let acknowledged: Acknowledged[] = []
  try {
    for (const { child } of writers) await child.hear('ready')
    const outcomes = await Promise.allSettled(
      writers.map(({ name, child }) => (name.startsWith('python') ? python(child, name) : ours(child))),
    )
    for (const outcome of outcomes)
      if (outcome.status === 'fulfilled') acknowledged = acknowledged.concat(outcome.value)
      else faults.push(String(outcome.reason))
  } finally {
    await Promise.all(writers.map(({ child }) => child.kill()))
  }

  const started = performance.now()
  await (await openStateStore({ path })).close()
  const open_ms = performance.now() - started
  const stored = storedIn(path)
  if (acknowledged.length !== processes * COUNT) faults.push(`${acknowledged.length} were acknowledged`)
  if (stored.length !== acknowledged.length) faults.push(`${stored.length} messages are stored`)
  faults.push(...faultsOf(path))
  removeFile(path)
  return {
    kind: `${processes} writers`,
    acknowledged: acknowledged.length,
    ...compare(acknowledged, stored),
    faults,
    open_ms,
  }
}

async function ours(child: Child): Promise<Acknowledged[]> {
  await child.ask('go', 'done')
  return acknowledgedBy(child)
}

async function python(child: Child, name: string): Promise<Acknowledged[]> {
  const ids: number[] = JSON.parse(await child.ask(JSON.stringify(['append_many', 's', name, COUNT])))
  return ids.map((id, n) => ({ id, content: `${name} ${n}` }))
}
