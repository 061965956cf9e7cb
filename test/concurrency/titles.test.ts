import { expect, it } from 'vitest'
import { expectSound, sql, startTogether } from '../support/processes.ts'
import { newPath, openForTest } from '../support/stores.ts'

it('20 processes that give the same automatic title give 20 titles', async () => {
  const path = newPath()
  const store = await openForTest({ path })
  const ids = Array.from({ length: 20 }, (_, index) => `s${index}`)
  for (const id of ids) await store.sessions.create({ id, source: 'cli' })

  const children = await startTogether(ids.map((id) => ['titler.mjs', path, id, 'Fix build']))
  const given = await Promise.all(children.map((child) => child.hear('given')))
  await Promise.all(children.map((child) => child.hear('done')))

  const numbered = Array.from({ length: 19 }, (_, index) => `Fix build #${index + 2}`)
  expect(given.toSorted()).toEqual(['Fix build', ...numbered].toSorted())
  // Each was told what is in the file.
  for (const [index, id] of ids.entries())
    expect(sql(path, 'select title from sessions where id = ?', id)).toEqual([{ title: given[index] }])
  expect(await store.titles.next('Fix build')).toBe('Fix build #21')
  expectSound(path)
})
