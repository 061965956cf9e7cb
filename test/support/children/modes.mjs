// Makes a file in a process whose umask hides nothing, and keeps it open.
import { openStateStore } from '../../../dist/src/index.js'
import { hear, ready, say } from './lines.mjs'

const [path] = process.argv.slice(2)
process.umask(0)
await ready()
const store = await openStateStore({ path })
await store.sessions.create({ source: 'cli' })
say('opened')
await hear()
