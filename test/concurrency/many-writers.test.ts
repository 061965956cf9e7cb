import { expect, it } from 'vitest'
import { expectSound, sql, startTogether } from '../support/processes.ts'
import { newPath, openForTest } from '../support/stores.ts'

it('4 processes append 100 messages each to one session: every acknowledged id is there once', async () => {
  const path = newPath()
  const store = await openForTest({ path })
  await store.sessions.create({ id: 'shared', source: 'cli' })
  const names = ['ada', 'ben', 'cleo', 'dan']
  const children = await startTogether(names.map((name) => ['appender.mjs', path, name, '100']))
  for (const child of children) await child.hear('done')

  const stored = children.flatMap((child, index) =>
    child.lines.flatMap((line) => {
      const [word, id, n] = line.split(' ')
      // As the child makes them: every fourth message is two calls without text.
      return word === 'stored' ? [[Number(id), Number(n) % 4 === 0 ? null : `${names[index]} ${n}`]] : []
    }),
  )
  expect(stored).toHaveLength(400)
  const rows = sql<{ id: number; content: string | null }>(
    path,
    'select id, content from messages order by id',
  )
  expect(rows.map(({ id, content }) => [id, content])).toEqual(
    stored.toSorted(([a], [b]) => Number(a) - Number(b)),
  )
  // 4 processes, of 100 messages every fourth with 2 calls.
  expect(await store.sessions.get('shared')).toMatchObject({ message_count: 400, tool_call_count: 200 })
  expect(await store.search.messages('cleo', { limit: 1_000 })).toHaveLength(75)
  expectSound(path)
})

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
