import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { kinds } from './kinds.ts'
import { firstOpenRound, killRound, type Round, startOpeners } from './rounds.ts'

export interface SoakOptions {
  killRounds: number
  firstOpenRounds: number
  /** Goes on with further rounds of both until so many minutes are over. */
  minutes: number
  /** Where the moments of the kills come from, and only those: what runs between them is up to the machine. */
  seed: number
}

/** Runs the rounds, the two sorts spread over each other. */
export async function soak({ killRounds, firstOpenRounds, minutes, seed }: SoakOptions): Promise<Round[]> {
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
