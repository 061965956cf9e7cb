// Opens the file argv[2] when it reads 'go', and appends 20 messages to a session named argv[3].
import { openStateStore } from '../../dist/src/index.js'

const [path, session] = process.argv.slice(2)
console.log('ready')
await new Promise((resolve) => process.stdin.once('data', resolve))

const store = await openStateStore({ path })
await store.sessions.create({ id: session, source: 'test' })
for (let index = 0; index < 20; index++)
  await store.messages.append(session, { role: 'user', content: `walrus ${index} of ${session}` })
await store.close()
console.log(JSON.stringify(store.info.migrations))
process.exit()
