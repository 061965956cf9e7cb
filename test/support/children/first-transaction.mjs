// Code that is under way before the process opens its first transaction, as a gateway's loops are, appends
// while that transaction waits. Says what became of each append.
import { setTimeout as delay } from 'node:timers/promises'
import { openStateStore } from '../../../dist/src/index.js'
import { ready, say } from './lines.mjs'

const [way] = process.argv.slice(2)
await ready()
const store = await openStateStore({ path: ':memory:' })
await store.sessions.create({ id: 's', source: 'cli' })

const appends = { timer: [], loop: [] }
const append = (from) =>
  appends[from].push(
    store.messages.append('s', { role: 'user', content: from }).then(
      () => 'stored',
      (error) => error.code,
    ),
  )
let open = true
const timer = setInterval(() => append('timer'), 1)
const loop = (async () => {
  while (open) {
    await delay(1)
    append('loop')
  }
})()

const transact =
  way === 'store.db' ? (fn) => store.db.transaction().execute(fn) : (fn) => store.transaction(fn)
await transact(async () => {
  const enough = Object.values(appends).map(({ length }) => length + 5)
  while (Object.values(appends).some(({ length }, index) => length < enough[index])) await delay(1)
})
open = false
clearInterval(timer)
await loop
const outcomes = {}
for (const from of Object.keys(appends)) outcomes[from] = [...new Set(await Promise.all(appends[from]))]
say(`outcomes ${JSON.stringify(outcomes)}`)
process.exit()
