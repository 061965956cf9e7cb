// Appends without end, several at a time, and says the id of each that was acknowledged.
import { openStateStore } from '../../../dist/src/index.js'
import { ready, say } from './lines.mjs'

const [path, round] = process.argv.slice(2)
const store = await openStateStore({ path })
await ready()
await Promise.all(
  Array.from({ length: 5 }, async (_, lane) => {
    for (let n = 0; ; n++) {
      const content =
        n % 3 === 0 ? [{ type: 'text', text: `round ${round} lane ${lane} ${n}` }] : `${round} ${n}`
      const id = await store.messages.append('s', { role: 'user', content })
      say(`stored ${id}`)
    }
  }),
)
