// Imports a file and kills itself at the nth moment of a kind: a step of `checking` or `writing` that it is told of,
// or, inside a transaction, a `statement` or the `commit`. Temporary files go to a folder of their own.
import { Connection } from '../../../dist/src/database/connection.js'
import { openStateStore } from '../../../dist/src/index.js'
import { ready, say } from './lines.mjs'

const [path, file, temporary, kind, count] = process.argv.slice(2)
process.env.TMPDIR = temporary
let left = Number(count)

function reach(moment) {
  if (moment === kind && --left === 0) process.kill(process.pid, 'SIGKILL')
}

const store = await openStateStore({ path })
for (const [method, moment] of [
  ['run', 'statement'],
  ['commit', 'commit'],
]) {
  const original = Connection.prototype[method]
  Connection.prototype[method] = function (...values) {
    if (this.path === path && this.inTransaction) reach(moment)
    return original.apply(this, values)
  }
}
await ready()
await store.transfer.importFile(file, { onProgress: ({ phase }) => reach(phase) })
await store.close()
say('done')
process.exit()
