// Stores many messages in one call.
import { openStateStore } from '../../../dist/src/index.js'
import { ready, say } from './lines.mjs'

const [path, round, count] = process.argv.slice(2)
const store = await openStateStore({ path })
const messages = Array.from({ length: Number(count) }, (_, n) => ({
  role: 'user',
  content: `round${round} ${n} ${'word '.repeat(200)}`,
}))
await ready()
say('storing')
await store.messages.appendMany('s', messages)
say('stored')
process.exit()
