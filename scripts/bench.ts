/**
 * npm run bench [-- --small] [--json]: times the store against better-sqlite3 doing the same SQL by hand, in
 * interleaved rounds on two files of the same content. A ratio of 1.00 is as fast as raw.
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import Database from 'better-sqlite3'
import { CHECKPOINT_EVERY_N_WRITES, type NewMessage, openStateStore } from '../src/index.ts'

const { values: flags } = parseArgs({ options: { small: { type: 'boolean' }, json: { type: 'boolean' } } })
const ROUNDS = flags.small ? 5 : 15
const folder = mkdtempSync(join(tmpdir(), 'hermes-state-bench-'))

const store = await openStateStore({ path: join(folder, 'store.db') })
const rawStore = await openStateStore({ path: join(folder, 'raw.db') })
await rawStore.close()
const raw = new Database(join(folder, 'raw.db'))
raw.pragma('synchronous = full')
raw.pragma('foreign_keys = on')

const begin = raw.prepare('begin immediate')
const commit = raw.prepare('commit')
const insertSession = raw.prepare('insert into sessions (id, source, started_at) values (?, ?, ?)')
const insertMessage = raw.prepare(`
  insert into messages (session_id, role, content, tool_call_id, tool_calls, tool_name, timestamp, token_count,
    finish_reason, reasoning, reasoning_details, codex_reasoning_items)
  values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`)
const count = raw.prepare(`
  update sessions set message_count = coalesce(message_count, 0) + ?, tool_call_count = coalesce(tool_call_count, 0) + ?
  where id = ? returning ended_at, end_reason`)
const selectSession = raw.prepare('select * from sessions where id = ?')
const selectMessages = raw.prepare(`
  select messages.*, structured.content as structured from messages
  left join hs_structured_content as structured on structured.message_id = messages.id
  where messages.session_id = ? and messages.id > ? and messages.id < ? order by messages.id limit ?`)

const words =
  'deploy build docker error config server login token cache retry branch merge commit the of to and in'
    .split(' ')
    .concat(['服务端', '部署', 'ビルド'])
let seed = 1
function random(below: number): number {
  seed = (seed * 48_271) % 2_147_483_647
  return seed % below
}
function message(): NewMessage {
  const content = Array.from({ length: 100 }, () => words[random(words.length)]).join(' ')
  return { role: random(2) ? 'user' : 'assistant', content, timestamp: 1_771_000_000 + random(1_000_000) }
}
/** Commits and checkpoints as often as the store does. */
let commits = 0
function rawCommit(): void {
  commit.run()
  if (++commits % CHECKPOINT_EVERY_N_WRITES === 0) raw.pragma('wal_checkpoint(passive)')
}
function rawAppend(session: string, { role, content, timestamp }: NewMessage): void {
  count.get([1, 0, session])
  insertMessage.run([session, role, content, null, null, null, timestamp, null, null, null, null, null])
}

interface Case {
  name: string
  /** Calls a round. */
  calls: number
  ours: () => Promise<unknown>
  raw: () => unknown
}

await store.sessions.create({ id: 'bench', source: 'cli' })
insertSession.run(['bench', 'cli', 1_771_000_000])
await store.sessions.create({ id: 'read', source: 'cli' })
insertSession.run(['read', 'cli', 1_771_000_000])
for (let index = 0; index < 200; index++) {
  const next = message()
  await store.messages.append('read', next)
  rawAppend('read', next)
}

const cases: Case[] = [
  {
    name: 'append',
    calls: 200,
    ours: () => store.messages.append('bench', message()),
    raw: () => {
      begin.run()
      rawAppend('bench', message())
      rawCommit()
    },
  },
  {
    name: '8 appends at once',
    calls: 25,
    ours: () => Promise.all(Array.from({ length: 8 }, () => store.messages.append('bench', message()))),
    raw: () => {
      for (let index = 0; index < 8; index++) {
        begin.run()
        rawAppend('bench', message())
        rawCommit()
      }
    },
  },
  {
    name: 'batch of 100',
    calls: 5,
    ours: () =>
      store.messages.appendMany(
        'bench',
        Array.from({ length: 100 }, () => message()),
      ),
    raw: () => {
      begin.run()
      for (let index = 0; index < 100; index++) rawAppend('bench', message())
      rawCommit()
    },
  },
  {
    name: 'get session',
    calls: 2_000,
    ours: () => store.sessions.get('bench'),
    raw: () => selectSession.get(['bench']),
  },
  {
    name: 'list 200 messages',
    calls: 50,
    ours: () => store.messages.list('read'),
    raw: () => selectMessages.all(['read', 0, Number.MAX_SAFE_INTEGER, Number.MAX_SAFE_INTEGER]),
  },
  {
    name: 'conversation of 200',
    calls: 50,
    ours: () => store.messages.conversation('read'),
    raw: () => selectMessages.all(['read', 0, Number.MAX_SAFE_INTEGER, Number.MAX_SAFE_INTEGER]),
  },
]

const results = []
for (const { name, calls, ours, raw } of cases) {
  const times: { ours: number[]; raw: number[] } = { ours: [], raw: [] }
  for (let round = -2; round < ROUNDS; round++) {
    for (const side of round % 2 ? (['ours', 'raw'] as const) : (['raw', 'ours'] as const)) {
      const started = performance.now()
      for (let call = 0; call < calls; call++) side === 'ours' ? await ours() : raw()
      // The first rounds warm up.
      if (round >= 0) times[side].push((performance.now() - started) / calls)
    }
  }
  const [oursMs, rawMs] = [median(times.ours), median(times.raw)]
  results.push({ name, ours_us: oursMs * 1_000, raw_us: rawMs * 1_000, ratio: oursMs / rawMs })
}

if (flags.json) console.log(JSON.stringify(results))
else {
  console.log(
    `${'median of a call'.padEnd(24)}${'ours'.padStart(12)}${'raw'.padStart(12)}${'ratio'.padStart(8)}`,
  )
  for (const { name, ours_us, raw_us, ratio } of results)
    console.log(`${name.padEnd(24)}${micros(ours_us)}${micros(raw_us)}${ratio.toFixed(2).padStart(8)}`)
}

await store.close()
raw.close()
rmSync(folder, { recursive: true })

function median(values: number[]): number {
  return [...values].sort((a, b) => a - b)[Math.floor(values.length / 2)]!
}

function micros(value: number): string {
  return `${value.toFixed(1)} us`.padStart(12)
}
