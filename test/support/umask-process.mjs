// Creates the file argv[2] in a process that hides nothing of what it makes, and says what modes came out.
import { readdirSync, statSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { openStateStore } from '../../dist/src/index.js'

const [path] = process.argv.slice(2)
process.umask(0)
const store = await openStateStore({ path })
await store.sessions.create({ source: 'test' })
const folder = dirname(path)
const mode = (file) => (statSync(file).mode & 0o777).toString(8)
const files = Object.fromEntries(readdirSync(folder).map((name) => [name, mode(join(folder, name))]))
console.log(JSON.stringify({ folder: mode(folder), files }))
await store.close()
