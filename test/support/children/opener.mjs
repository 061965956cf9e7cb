// Opens each path it is sent, says what it found, closes it again.
import { openStateStore } from '../../../dist/src/index.js'
import { hear, ready, say } from './lines.mjs'

await ready()
for (;;) {
  const path = await hear()
  say('opening')
  try {
    const store = await openStateStore({ path })
    say(`opened ${JSON.stringify(store.info)}`)
    await store.close()
  } catch (error) {
    say(`error ${error}`)
  }
}
