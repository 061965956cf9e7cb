// Saves trajectories one after the other, every tenth of them large.
import { saveTrajectory } from '../../../dist/src/index.js'
import { ready, say } from './lines.mjs'

const [file, name, count] = process.argv.slice(2)
await ready()
for (let n = 0; n < Number(count); n++)
  await saveTrajectory([{ from: 'gpt', value: `${name} ${n} ${'ü'.repeat(n % 10 === 0 ? 100_000 : 10)}` }], {
    model: name,
    completed: true,
    file,
  })
say('done')
process.exit()
