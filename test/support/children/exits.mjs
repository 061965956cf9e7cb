// Ends in the way it is told, with writes still queued.
import { openStateStore } from '../../../dist/src/index.js'
import { hangUp, ready, say } from './lines.mjs'

const [path, way] = process.argv.slice(2)
// Before the store's own, so that this is said before it writes.
process.on('exit', () => say('exiting'))
const store = await openStateStore({ path })
const user = (content) => ({ role: 'user', content })
const append = (content) => {
  store.messages.append('s', user(content)).then(
    () => say(`acknowledged ${content}`),
    (error) => say(`rejected ${content}: ${error}`),
  )
}

const ways = {
  exit() {
    for (let n = 0; n < 20; n++) append(`queued ${n}`)
    process.exit(0)
  },

  closing() {
    append('queued')
    void store.close()
    process.exit(0)
  },

  return() {
    append('queued')
    hangUp()
  },

  throw() {
    append('queued')
    setImmediate(() => append('in the last tick'))
    setImmediate(() => {
      throw new Error('a mistake elsewhere')
    })
  },

  bad() {
    append('before')
    store.messages.append('nobody', user('bad')).catch(() => {})
    append('after')
    process.exit(0)
  },

  async transaction() {
    let append
    // Outside the transaction, whose own calls on the store are refused.
    const outside = new Promise((resolve) => {
      append = resolve
    }).then(() => {
      for (let n = 0; n < 3; n++) void store.messages.append('s', user(`queued ${n}`))
      process.exit(0)
    })
    void store.transaction(async (tx) => {
      await tx.messages.append('s', user('in the transaction'))
      append()
      await outside
    })
  },

  async two() {
    // The first store was opened before the one whose transaction is in its way.
    const second = await openStateStore({ path })
    let go
    const outside = new Promise((resolve) => {
      go = resolve
    })
    void second.transaction(async (tx) => {
      await tx.messages.append('s', user('in the transaction'))
      go()
      await new Promise(() => {})
    })
    await outside
    append('queued')
    process.exit(0)
  },

  many() {
    void store.messages.appendMany('s', [user('one'), user('two')])
    process.exit(0)
  },

  async acknowledged() {
    await Promise.all([
      store.messages.appendMany('s', [user('one'), user('two')]).then(() => say('acknowledged many')),
      store.messages.append('s', user('three')).then(() => process.exit(0)),
    ])
  },

  async acknowledgedMany() {
    await store.messages.appendMany('s', [user('one'), user('two')])
    process.exit(0)
  },

  async halfway() {
    // So many that they are stored in several ticks.
    void store.messages.appendMany(
      's',
      Array.from({ length: 2_000 }, (_, n) => user(`many ${n}`)),
    )
    append('queued')
    await new Promise((resolve) => setImmediate(() => setImmediate(() => setImmediate(resolve))))
    process.exit(0)
  },

  locked() {
    // The lock was found taken before the process ends.
    append('queued')
    setTimeout(() => process.exit(0), 50)
  },
}

await ready()
await ways[way]()
