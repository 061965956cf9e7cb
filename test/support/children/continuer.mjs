// Continues a session that others continue at the same moment, and says what came of it.
import { openStateStore, SessionContinuedError } from '../../../dist/src/index.js'
import { ready, say } from './lines.mjs'

const [path, session] = process.argv.slice(2)
const store = await openStateStore({ path })
await ready()
try {
  say(`result ${JSON.stringify({ made: await store.sessions.continueAs(session) })}`)
} catch (error) {
  if (!(error instanceof SessionContinuedError)) throw error
  const { session_id, child_session_id, tip } = error
  say(`result ${JSON.stringify({ refused: { session_id, child_session_id, tip } })}`)
}
await store.close()
process.exit()
