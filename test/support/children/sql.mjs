// Another program with the file open, that runs the SQL it is sent. Knows nothing of this package.
import Database from 'better-sqlite3'
import { hear, ready, say } from './lines.mjs'

const [path] = process.argv.slice(2)
const db = new Database(path)
await ready()
for (;;) {
  const text = await hear()
  if (text === 'close') break
  try {
    const statement = db.prepare(text)
    say(`ok ${JSON.stringify(statement.reader ? statement.all() : statement.run())}`)
  } catch (error) {
    say(`error ${error.code}: ${error.message}`)
  }
}
db.close()
process.exit(0)
