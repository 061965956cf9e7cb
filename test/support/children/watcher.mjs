// Says the id of each message it sees, until it has seen so many. Closes nothing: leaving the loop must be enough
// for the process to end.
import { openStateStore } from '../../../dist/src/index.js'
import { hangUp, ready, say } from './lines.mjs'

const [path, after, count] = process.argv.slice(2)
const store = await openStateStore({ path })
await ready()
hangUp()
let seen = 0
for await (const { id } of store.watch({ after: Number(after) })) {
  say(`saw ${id}`)
  if (++seen === Number(count)) break
}
say('left')
