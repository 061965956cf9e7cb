// Opens what it is sent as a user whom permissions hold back, appends a message, says how that went, closes.
import { openStateStore } from '../../../dist/src/index.js'
import { hear, ready, say } from './lines.mjs'

// Loads all that is loaded late, while that can still be read.
await (await openStateStore({ path: ':memory:' })).close()
if (process.getuid() === 0) {
  process.setgroups([])
  process.setgid(65534)
  process.setuid(65534)
}

await ready()
for (;;) {
  const options = JSON.parse(await hear())
  try {
    const store = await openStateStore(options)
    try {
      if (!options.readonly) await store.messages.append('s', { role: 'user', content: 'more' })
      say(`done ${JSON.stringify({ messages: await store.messages.count('s') })}`)
    } finally {
      await store.close()
    }
  } catch ({ name, message }) {
    say(`done ${JSON.stringify({ name, message })}`)
  }
}
