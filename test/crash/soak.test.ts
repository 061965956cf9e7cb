import { expect, it } from 'vitest'
import { kinds } from '../../scripts/soak/kinds.ts'
import { soak } from '../../scripts/soak/soak.ts'
import { broken, table } from '../../scripts/soak/table.ts'

it('20 processes killed at work and 5 files made by 12 processes at once: nothing acknowledged is lost', {
  timeout: 300_000,
}, async () => {
  const rounds = await soak({ killRounds: 20, firstOpenRounds: 5, writers: [], minutes: 0, seed: 7 })
  expect(broken(rounds), table(rounds)).toEqual([])
  const acknowledged = (name: string) =>
    rounds.filter(({ kind }) => kind === name).reduce((sum, round) => sum + round.acknowledged, 0)
  // A migration may be killed before its first append, each time.
  for (const { name } of kinds.filter(({ name }) => name !== 'migration'))
    expect(acknowledged(name), name).toBeGreaterThan(0)
  expect(acknowledged('first open')).toBe(5 * 12)
})
