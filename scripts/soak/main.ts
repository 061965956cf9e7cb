/**
 * npm run soak [-- --minutes N] [-- --seed N]: kills processes in the middle of their work, lets processes open
 * new files and write together, then looks whether anything acknowledged is lost. 200 kills and 50 openings at least, more until
 * the minutes (20) are over. Exits with 1 where a promise was broken.
 */
import { parseArgs } from 'node:util'
import { soak } from './soak.ts'
import { broken, table } from './table.ts'

const { values: flags } = parseArgs({ options: { minutes: { type: 'string' }, seed: { type: 'string' } } })
const minutes = Number(flags.minutes ?? 20)
const seed = Number(flags.seed ?? Math.floor(Math.random() * 2_147_483_646))
if (!(minutes >= 0) || !Number.isSafeInteger(seed) || seed < 0)
  throw new TypeError('--minutes must be a number, and --seed a whole number, of 0 or more.')

console.log(`Seed ${seed}: --seed ${seed} kills at the same moments again.`)
const rounds = await soak({ killRounds: 200, firstOpenRounds: 50, writers: [2, 8, 16], minutes, seed })
console.log(table(rounds))
const failures = broken(rounds)
for (const { kind, lost, doubled, faults } of failures.slice(0, 10))
  console.error(`${kind}: ${lost} lost, ${doubled} doubled; ${faults.slice(0, 3).join('; ')}`)
if (failures.length > 0) process.exitCode = 1
