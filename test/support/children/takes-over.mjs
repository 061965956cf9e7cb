// Another program that writes to a file and then ends in the way it is told. Knows nothing of this package.
import Database from 'better-sqlite3'

const [path, end] = process.argv.slice(2)
const db = new Database(path)
db.exec("insert into sessions (id, source, started_at, message_count) values ('theirs', 'cli', 1, 30)")
const insert = db.prepare(
  "insert into messages (session_id, role, content, timestamp) values ('theirs', 'user', ?, ?)",
)
for (let n = 1; n <= 30; n++) insert.run('w'.repeat(300), n)
if (end === 'killed') process.kill(process.pid, 'SIGKILL')
db.close()
