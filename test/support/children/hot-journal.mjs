// Another program in the middle of a large transaction on a file in rollback-journal mode.
import Database from 'better-sqlite3'
import { hear, ready, say } from './lines.mjs'

const [path] = process.argv.slice(2)
const db = new Database(path)
// So small that pages are written to the file before the commit, with the old ones in the journal.
db.pragma('cache_size = 5')
await ready()
db.exec('begin immediate')
const insert = db.prepare(
  "insert into messages (session_id, role, content, timestamp) values ('s', 'user', ?, 1)",
)
for (let n = 0; n < 300; n++) insert.run(`lost ${n} ${'x'.repeat(1000)}`)
db.exec("update messages set content = 'lost'")
say('writing')
await hear()
