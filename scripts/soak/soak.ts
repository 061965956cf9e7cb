import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { kinds } from './kinds.ts'
import { firstOpenRound, killRound, type Round, startOpeners } from './rounds.ts'
import { writersRound } from './writers.ts'

export interface SoakOptions {
  killRounds: number
  firstOpenRounds: number
  /** How many processes write together, in a round after every 20th kill: in turn. */
  writers: readonly number[]
  /** Goes on with further rounds until so many minutes are over. */
  minutes: number
  /** Where the moments of the kills come from, and only those: what runs between them is up to the machine. */
  seed: number
}

/** Runs the rounds, the sorts spread over each other. */
export async function soak({
  killRounds,
  firstOpenRounds,
  writers,
  minutes,
  seed,
}: SoakOptions): Promise<Round[]> {
  const end = performance.now() + minutes * 60_000
  const random = generator(seed)
  const folder = mkdtempSync(join(tmpdir(), 'hermes-state-soak-'))
  const openers = await startOpeners()
  const rounds: Round[] = []
  try {
    const every = Math.floor(killRounds / firstOpenRounds)
    for (let n = 0; n < killRounds || performance.now() < end; n++) {
      // Every kind in its turn.
      const kind = kinds[n % kinds.length]!
      rounds.push(await killRound(kind, folder, `round${n}`, random()))
      if (n % every === every - 1) rounds.push(await firstOpenRound(openers, folder, `first${n}`))
      const processes = n % 20 === 19 ? writers[((n - 19) / 20) % writers.length] : undefined
      if (processes) rounds.push(await writersRound(processes, folder, `writers${n}`))
    }
  } finally {
    await Promise.all(openers.map((opener) => opener.kill()))
    rmSync(folder, { recursive: true, force: true })
  }
  return rounds
}

/** Numbers from 0 to 1 that follow from the seed (Park and Miller). */
function generator(seed: number): () => number {
  let state = (seed % 2_147_483_646) + 1
  return () => {
    state = (state * 48_271) % 2_147_483_647
    return state / 2_147_483_647
  }
}
