// As loses-log.mjs, with a thread that has searched, and another process that begins another log and dies.
import { spawnSync } from 'node:child_process'
import { rmSync } from 'node:fs'
import { openStateStore } from '../../../dist/src/index.js'
import { ready, say } from './lines.mjs'

const OTHER = `
  const db = new (require('better-sqlite3'))(process.argv[1])
  db.exec("insert into messages (session_id, role, content, timestamp) values ('s', 'user', 'other', 1)")
  process.kill(process.pid, 'SIGKILL')`

const [path] = process.argv.slice(2)
const store = await openStateStore({ path, onEvent: () => {} })
await ready()
await store.messages.append('s', { role: 'user', content: 'acknowledged' })
const hits = await store.search.messages('before')
say(`found ${hits.length}`)
for (const suffix of ['-wal', '-shm']) rmSync(path + suffix)
spawnSync(process.execPath, ['-e', OTHER, path], { cwd: import.meta.dirname })
void store.messages.append('s', { role: 'user', content: 'queued' })
process.exit(0)
