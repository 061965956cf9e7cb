// Appends messages one after the other and says the id and text of each that was acknowledged.
import { openStateStore } from '../../../dist/src/index.js'
import { ready, say } from './lines.mjs'

const [path, name, count] = process.argv.slice(2)
const store = await openStateStore({ path })
const call = { id: 'c', type: 'function', function: { name: 'look', arguments: '{}' } }
await ready()
for (let n = 0; n < Number(count); n++) {
  const content = `${name} ${n}`
  // Every fourth makes two calls.
  const message =
    n % 4 === 0 ? { role: 'assistant', content, tool_calls: [call, call] } : { role: 'user', content }
  say(`stored ${await store.messages.append('s', message)} ${content} whole`)
}
await store.close()
say('done')
process.exit()
