// Gives a session a title that others give at the same moment, and says which it got.
import { openStateStore } from '../../../dist/src/index.js'
import { ready, say } from './lines.mjs'

const [path, session, title] = process.argv.slice(2)
const store = await openStateStore({ path })
await ready()
say(`given ${await store.titles.setIfEmpty(session, title)}`)
await store.close()
say('done')
process.exit()
