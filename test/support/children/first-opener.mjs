// Opens each path it is sent at the same moment as others do, and appends one message to what it opened.
import { openStateStore } from '../../../dist/src/index.js'
import { hear, ready, say } from './lines.mjs'

const [name] = process.argv.slice(2)
await ready()
for (let round = 0; ; round++) {
  const path = await hear()
  try {
    const started = performance.now()
    const store = await openStateStore({ path })
    const opened_ms = performance.now() - started
    await store.sessions.ensure({ id: 's' })
    const content = `${name} ${round}`
    const id = await store.messages.append('s', { role: 'user', content })
    await store.close()
    say(`stored ${id} ${content} whole`)
    say(`opened ${JSON.stringify({ opened_ms, migrations: store.info.migrations })}`)
  } catch (error) {
    say(`error ${error}`)
  }
}
