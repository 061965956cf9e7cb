// Opens a file and kills itself where it would write or commit for the nth time; with no n, says how often it did.
import { Connection } from '../../../dist/src/database/connection.js'
import { openStateStore } from '../../../dist/src/index.js'
import { ready, say } from './lines.mjs'

const [path, step] = process.argv.slice(2)
let steps = 0

for (const method of ['exec', 'execute', 'commit']) {
  const original = Connection.prototype[method]
  Connection.prototype[method] = function (what) {
    const writes = method !== 'execute' || !this.onlyReads(what.sql)
    if (this.path === path && this.inTransaction && writes && ++steps === Number(step))
      process.kill(process.pid, 'SIGKILL')
    return original.call(this, what)
  }
}

await ready()
const store = await openStateStore({ path })
say(`steps ${steps}`)
await store.close()
process.exit()
