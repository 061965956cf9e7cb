// Has its write-ahead log deleted between an acknowledged write and its end, with another write queued.
import { rmSync } from 'node:fs'
import { openStateStore } from '../../../dist/src/index.js'
import { ready } from './lines.mjs'

const [path] = process.argv.slice(2)
const store = await openStateStore({ path, onEvent: () => {} })
await ready()
await store.messages.append('s', { role: 'user', content: 'acknowledged' })
void store.messages.append('s', { role: 'user', content: 'queued' })
for (const suffix of ['-wal', '-shm']) rmSync(path + suffix)
process.exit(0)
