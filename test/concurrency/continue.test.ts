import { expect, it } from 'vitest'
import { expectSound, sql, startTogether } from '../support/processes.ts'
import { newPath, openForTest } from '../support/stores.ts'

interface Result {
  made?: string
  refused?: { session_id: string; child_session_id: string; tip: string }
}

it('of 8 processes that continue one session at once, one does, and the others learn which', async () => {
  const path = newPath()
  const store = await openForTest({ path })
  await store.sessions.create({ id: 's', source: 'cli' })
  await store.titles.set('s', 'Fix build')

  const children = await startTogether(Array.from({ length: 8 }, () => ['continuer.mjs', path, 's']))
  const results = await Promise.all(
    children.map(async (child) => JSON.parse(await child.hear('result')) as Result),
  )

  const made = results.flatMap((result) => result.made ?? [])
  expect(made).toHaveLength(1)
  const [winner] = made
  expect(results.flatMap((result) => result.refused ?? [])).toEqual(
    Array.from({ length: 7 }, () => ({ session_id: 's', child_session_id: winner, tip: winner })),
  )
  expect(
    sql(path, 'select id, parent_session_id, title, end_reason from sessions order by started_at'),
  ).toEqual([
    { id: 's', parent_session_id: null, title: 'Fix build', end_reason: 'compression' },
    { id: winner, parent_session_id: 's', title: 'Fix build #2', end_reason: null },
  ])
  expectSound(path)
})
