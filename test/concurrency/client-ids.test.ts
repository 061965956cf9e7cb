import { expect, it } from 'vitest'
import { expectSound, sql, startTogether } from '../support/processes.ts'
import { newPath, openForTest } from '../support/stores.ts'

it('8 processes that send the same messages store each of them once', async () => {
  const path = newPath()
  const store = await openForTest({ path })
  await store.sessions.create({ id: 's', source: 'cli' })
  await store.close()

  const children = await startTogether(Array.from({ length: 8 }, () => ['resender.mjs', path, 's', '40']))
  const said = await Promise.all(
    children.map(async (child) => JSON.parse(await child.hear('ids')) as { ids: number[]; all: number[] }),
  )

  const rows = sql<{ id: number; client_id: string; content: string }>(
    path,
    `select messages.id, client_id, content from messages
     left join hs_client_ids on message_id = messages.id order by messages.id`,
  )
  const names = Array.from({ length: 40 }, (_, n) => `m${n}`)
  expect(rows.map(({ client_id }) => client_id).toSorted()).toEqual(names.toSorted())
  // Every process was told the same ids, in the order in which it gave the messages.
  const byName = new Map(rows.map(({ id, client_id }) => [client_id, id]))
  const ids = names.map((name) => byName.get(name))
  for (const child of said) expect(child).toEqual({ ids: ids.slice(0, 20), all: ids })
  expect(sql(path, "select message_count from sessions where id = 's'")).toEqual([{ message_count: 40 }])
  expectSound(path)
})
