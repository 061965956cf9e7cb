import { expect, it } from 'vitest'
import { writersRound } from '../../scripts/soak/writers.ts'
import { pythonSqlite, startTogether } from '../support/processes.ts'
import { newFolder, newPath, openForTest } from '../support/stores.ts'

it.each([2, 8])(
  `%i processes append 100 messages each to one session, ${pythonSqlite ? 'every second one Python' : 'all Node (there is no python3 with sqlite3)'}: every acknowledged id is there once`,
  { timeout: 60_000 },
  async (processes) => {
    expect(await writersRound(processes, newFolder(), 'state')).toMatchObject({
      acknowledged: processes * 100,
      lost: 0,
      doubled: 0,
      faults: [],
    })
  },
)

it('2 processes that read, wait and write in transactions count to the exact sum', async () => {
  const path = newPath()
  const store = await openForTest({ path })
  await store.sessions.create({ id: 'shared', source: 'cli', model_config: { n: 0 } })
  const children = await startTogether([
    ['counter.mjs', path, '50'],
    ['counter.mjs', path, '50'],
  ])
  for (const child of children) await child.hear('done')
  expect(await store.sessions.get('shared')).toMatchObject({ model_config: { n: 100 }, input_tokens: 100 })
})
