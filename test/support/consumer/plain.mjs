// A program that uses the installed package without types.
import { openStateStore, SCHEMA_VERSION, SessionNotFoundError } from 'hermes-state'

const store = await openStateStore({ path: process.argv[2] })
const id = await store.sessions.create({ source: 'cli' })
await store.messages.append(id, { role: 'user', content: 'Where is the walrus?' })
await store.messages.append(id, {
  role: 'assistant',
  content: [{ type: 'text', text: 'In the walrus house.' }],
})
const hits = await store.search.messages('walrus')
const error = await store.messages.append('nobody', { role: 'user', content: '' }).catch((error) => error)
await store.close()

console.log(
  JSON.stringify({
    version: SCHEMA_VERSION,
    hits: hits.length,
    known: error instanceof SessionNotFoundError,
  }),
)
