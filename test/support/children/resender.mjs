// Sends messages that others send at the same moment, one by one and then as one batch, and says their ids.
import { openStateStore } from '../../../dist/src/index.js'
import { ready, say } from './lines.mjs'

const [path, session, count] = process.argv.slice(2)
const store = await openStateStore({ path })
const messages = Array.from({ length: Number(count) }, (_, n) => ({
  role: 'user',
  client_id: `m${n}`,
  content: `message ${n}`,
}))
await ready()
const ids = []
for (const message of messages.slice(0, messages.length / 2))
  ids.push(await store.messages.append(session, message))
const all = await store.messages.appendMany(session, messages)
say(`ids ${JSON.stringify({ ids, all })}`)
await store.close()
process.exit()
