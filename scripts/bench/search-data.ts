/** The file that searches are timed on: built once, in `.cache/`, from a seeded generator. */
import { createHash } from 'node:crypto'
import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import Database from 'better-sqlite3'
import { openStateStore } from '../../src/index.ts'

/** Words of the vocabulary, the commonest first; word n is there 1/n as often as the first (Zipf). */
const WORDS = 60_000
const COMMON = 'the to and of in is it for docker this that with error on file build'.split(' ')

const SEED = 20_260_213

/** Messages with a sentence in Chinese: one in so many. */
const CHINESE = 10
const MESSAGES_A_SESSION = 100
const START = 1_771_000_000

/** What is searched for. */
export interface SearchWords {
  /** A word in about half of the messages, and one in 0.7 %. */
  common: string
  rare: string
  /** Two Chinese characters in 7 % of the messages. */
  chinese: string
}

export function searchWords(): SearchWords {
  const { words, chinese } = vocabulary(generator(SEED))
  return { common: 'docker', rare: words[900]!, chinese: chinese[0]! }
}

/** Makes the file unless it is there from an earlier run of this very generator. Returns its path. */
export async function searchFile(messages: number): Promise<string> {
  const folder = fileURLToPath(new URL('../../.cache/', import.meta.url))
  const path = `${folder}search-${messages}-${fingerprint()}.db`
  if (existsSync(path)) return path
  const random = generator(SEED)
  const { words, chinese } = vocabulary(random)
  const word = zipf(words, random)
  const chineseWord = zipf(chinese, random)
  mkdirSync(folder, { recursive: true })
  for (const old of readdirSync(folder)) if (old.startsWith(`search-${messages}-`)) rmSync(folder + old)

  const building = `${folder}building.db`
  for (const end of ['', '-wal', '-shm']) rmSync(building + end, { force: true })
  await (await openStateStore({ path: building })).close()
  const db = new Database(building)
  db.pragma('synchronous = off')
  const session = db.prepare('insert into sessions (id, source, model, started_at) values (?, ?, ?, ?)')
  const message = db.prepare(
    'insert into messages (session_id, role, content, timestamp) values (?, ?, ?, ?)',
  )
  for (let id = 0; id < messages; ) {
    db.transaction(() => {
      const end = Math.min(id + 10_000, messages)
      for (; id < end; id++) {
        const name = `session-${Math.floor(id / MESSAGES_A_SESSION)}`
        if (id % MESSAGES_A_SESSION === 0)
          session.run([name, id % 300 ? 'cli' : 'telegram', 'model-a', START + id])
        const text = Array.from({ length: 30 + Math.floor(random() * 90) }, word)
        if (id % CHINESE === 0) text.splice(10, 0, `${Array.from({ length: 12 }, chineseWord).join('')}。`)
        message.run([name, id % 2 ? 'assistant' : 'user', text.join(' '), START + id])
      }
    })()
  }
  db.close()
  // The first search for a script without spaces indexes what others have written.
  const store = await openStateStore({ path: building })
  await store.search.messages(chinese[0]!)
  await store.close()
  renameSync(building, path)
  return path
}

function vocabulary(random: () => number): { words: string[]; chinese: string[] } {
  const words = [...COMMON]
  while (words.length < WORDS) words.push(pseudoWord(random, words.length))
  return { words, chinese: Array.from({ length: 2_000 }, () => ideographs(random)) }
}

/** Changes with this generator and with what a new file is made of. */
function fingerprint(): string {
  const hash = createHash('sha256').update(readFileSync(fileURLToPath(import.meta.url)))
  const migrations = fileURLToPath(new URL('../../migrations/', import.meta.url))
  for (const name of readdirSync(migrations).sort()) hash.update(readFileSync(migrations + name))
  return hash.digest('hex').slice(0, 12)
}

function generator(seed: number): () => number {
  let state = seed
  return () => {
    state = (state * 48_271) % 2_147_483_647
    return state / 2_147_483_647
  }
}

function zipf(words: readonly string[], random: () => number): () => string {
  // The inverse of the harmonic sum, which is close to a logarithm.
  return () => words[Math.floor((words.length + 1) ** random()) - 1]!
}

const SYLLABLES = 'ba ce di fo gu ha ki lo mu ne pi ra so tu ve wa xi yo zu'.split(' ')

function pseudoWord(random: () => number, index: number): string {
  const syllables = Array.from(
    { length: 2 + (index % 3) },
    () => SYLLABLES[Math.floor(random() * SYLLABLES.length)],
  )
  return syllables.join('') + index.toString(36)
}

function ideographs(random: () => number): string {
  return String.fromCodePoint(...Array.from({ length: 2 }, () => 0x4e00 + Math.floor(random() * 3_000)))
}
