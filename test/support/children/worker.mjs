// Works without end in one of the ways below, and says the id and text of each message that was acknowledged.
import { openStateStore } from '../../../dist/src/index.js'
import { ready, say } from './lines.mjs'

const [path, way, name] = process.argv.slice(2)
let store

/** A kill can cut off what is being said: only what ends with `whole` was heard. */
function acknowledge(ids, texts) {
  say(ids.map((id, n) => `stored ${id} ${texts[n]} whole`).join('\n'))
}

/** Appends one after the other in several lanes: lanes of one tick share a transaction. */
function append(lanes) {
  return Promise.all(
    Array.from({ length: lanes }, async (_, lane) => {
      for (let n = 0; ; n++) {
        const text = `${name}.${lane}-${n}`
        const content = n % 3 === 0 ? [{ type: 'text', text }] : text
        acknowledge([await store.messages.append('s', { role: 'user', content })], [text])
      }
    }),
  )
}

const ways = {
  appends: () => append(5),

  async batches() {
    for (let batch = 0; ; batch++) {
      const messages = Array.from({ length: 500 }, (_, n) => ({
        role: 'user',
        content: `${name}.${batch}-${n} ${'word '.repeat(200)}`,
      }))
      const ids = await store.messages.appendMany('s', messages)
      acknowledge(
        ids,
        messages.map(({ content }) => content),
      )
    }
  },

  prune: () => Promise.all([store.sessions.prune({ olderThanDays: 90 }), append(2)]),

  migration: () => append(2),

  rebuild() {
    const rebuild = async () => {
      for (;;) await store.maintenance.repair({ backup: false })
    }
    return Promise.all([rebuild(), append(2)])
  },

  backup() {
    const backup = async () => {
      for (let n = 0; ; n++) await store.maintenance.backup(`${path}.copy${n}`)
    }
    return Promise.all([backup(), append(2)])
  },
}

const open = async () => {
  store = await openStateStore({ path, onEvent: () => {} })
}
// A migration is interrupted in the opening itself.
if (way !== 'migration') await open()
await ready()
if (way === 'migration') await open()
await ways[way]()
