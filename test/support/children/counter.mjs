// Counts in transactions that read, wait, and write.
import { setImmediate as nextTick } from 'node:timers/promises'
import { openStateStore } from '../../../dist/src/index.js'
import { ready, say } from './lines.mjs'

const [path, count] = process.argv.slice(2)
const store = await openStateStore({ path })
await ready()
for (let n = 0; n < Number(count); n++)
  await store.transaction(async (tx) => {
    const { model_config } = await tx.db
      .selectFrom('sessions')
      .select('model_config')
      .where('id', '=', 'shared')
      .executeTakeFirstOrThrow()
    const { input_tokens } = await tx.sessions.get('shared')
    await nextTick()
    await tx.db
      .updateTable('sessions')
      .set({ model_config: JSON.stringify({ n: JSON.parse(model_config).n + 1 }) })
      .where('id', '=', 'shared')
      .execute()
    await tx.usage.set('shared', { input_tokens: input_tokens + 1 })
  })
await store.close()
say('done')
process.exit()
