// Opens a file at the same moment as others, says what that did to it, appends and searches.
import { openStateStore } from '../../../dist/src/index.js'
import { ready, say } from './lines.mjs'

const [path, session, count] = process.argv.slice(2)
await ready()
const store = await openStateStore({ path, onEvent: () => {} })
say(`opened ${JSON.stringify(store.info)}`)
await store.sessions.create({ id: session, source: 'test' })
for (let n = 0; n < Number(count); n++)
  await store.messages.append(session, { role: 'user', content: `pelican ${n} of ${session}` })
const hits = await store.search.messages('pelican', { limit: 1000 })
say(`found ${hits.filter(({ session_id }) => session_id === session).length}`)
await store.close()
say('done')
process.exit()
