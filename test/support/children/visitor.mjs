// Another program that opens each file it is sent, tries to write, and closes it. Knows nothing of this package.
import Database from 'better-sqlite3'
import { hear, ready, say } from './lines.mjs'

await ready()
for (;;) {
  const db = new Database(await hear(), { timeout: 0 })
  let outcome = 'writes'
  try {
    db.exec('begin immediate; rollback')
  } catch (error) {
    outcome = error.code
  }
  const messages = db.prepare('select id, content from messages order by id').all()
  db.close()
  say(`visited ${JSON.stringify({ outcome, messages })}`)
}
