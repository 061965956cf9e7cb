import Database from 'better-sqlite3'
import { type NewMessage, openStateStore } from '../../src/index.ts'

const WORDS =
  'deploy build docker error config server login token cache retry branch merge commit the of to and in'
    .split(' ')
    .concat(['服务端', '部署', 'ビルド'])
const START = 1_771_000_000

let seed = 1
function random(below: number): number {
  seed = (seed * 48_271) % 2_147_483_647
  return seed % below
}

/** A message of about 600 characters, a tenth of its words Chinese or Japanese. */
export function message(): NewMessage {
  const content = Array.from({ length: 100 }, () => WORDS[random(WORDS.length)]).join(' ')
  return { role: random(2) ? 'user' : 'assistant', content, timestamp: START + random(1_000_000) }
}

/** The same text for the same number, about 600 characters, of a vocabulary of 2,000 words. */
export function englishMessage(number: number): NewMessage {
  const words = Array.from({ length: 100 }, (_, index) => {
    const at = (number * 7_919 + index * index * 31) % 2_000
    return at < 1_000 ? WORDS[at % 18] : `word${at}`
  })
  return { role: number % 2 ? 'user' : 'assistant', content: words.join(' '), timestamp: START + number }
}

async function fill(path: string, write: (db: Database.Database) => void): Promise<void> {
  await (await openStateStore({ path })).close()
  const db = new Database(path)
  db.pragma('foreign_keys = off')
  db.transaction(() => write(db))()
  db.close()
  // The first search for a script without spaces indexes what others have written.
  const store = await openStateStore({ path })
  await store.search.messages('部署')
  await store.close()
}

const INSERT_SESSION =
  'insert into sessions (id, source, parent_session_id, started_at, title, ended_at) values (?, ?, ?, ?, ?, ?)'
const INSERT_MESSAGE = 'insert into messages (session_id, role, content, timestamp) values (?, ?, ?, ?)'

/** A session to append to, and one of 200 messages to read. */
export async function makeSmall(path: string): Promise<void> {
  await fill(path, (db) => {
    const insert = db.prepare(INSERT_SESSION)
    for (const id of ['bench', 'read']) insert.run([id, 'cli', null, START, null, null])
    const add = db.prepare(INSERT_MESSAGE)
    for (let index = 0; index < 200; index++) {
      const { role, content, timestamp } = message()
      add.run(['read', role, content, timestamp])
    }
  })
}

/** A session to append to, in a file with or without additions. */
export async function makeEmpty(path: string, additions: boolean): Promise<void> {
  const store = await openStateStore({ path, additions })
  await store.sessions.create({ id: 'bench', source: 'cli' })
  await store.close()
}

/** Sessions of three sources, one of which has only twenty, most with a parent, each with a message. */
export async function makeSessions(path: string, sessions: number): Promise<void> {
  await fill(path, (db) => {
    const insert = db.prepare(INSERT_SESSION)
    const add = db.prepare(INSERT_MESSAGE)
    for (let index = 0; index < sessions; index++) {
      const id = `s${String(index).padStart(7, '0')}`
      const source = index % (sessions / 20) === 3 ? 'rare' : index % 3 ? 'cli' : 'telegram'
      const parent = index % 5 ? `s${String(index - (index % 5)).padStart(7, '0')}` : null
      insert.run([id, source, parent, START + ((index * 7_919) % sessions), `title ${id.slice(1)}`, null])
      add.run([id, 'user', `question ${index} about the deploy`, START + ((index * 104_729) % sessions)])
    }
  })
}

/** A chain of 10,000, and a root with 100,000 descendants in three levels. */
export async function makeLineage(path: string): Promise<void> {
  await fill(path, (db) => {
    const insert = db.prepare(INSERT_SESSION)
    for (let index = 0; index < 10_000; index++)
      insert.run([`chain-${index}`, 'cli', index ? `chain-${index - 1}` : null, START, null, null])
    insert.run(['tree', 'cli', null, START, null, null])
    for (let index = 0; index < 100_000; index++) {
      const parent = index < 10 ? 'tree' : `tree-${Math.floor(index / 10) - 1}`
      insert.run([`tree-${index}`, 'cli', parent, START, null, null])
    }
  })
}

/** Ended sessions of 100 messages each, long ago. */
export async function makeOld(path: string, sessions: number): Promise<void> {
  await fill(path, (db) => {
    const insert = db.prepare(INSERT_SESSION)
    const add = db.prepare(INSERT_MESSAGE)
    for (let index = 0; index < sessions; index++) {
      insert.run([`old-${index}`, 'cli', null, START, null, START + 1])
      for (let count = 0; count < 100; count++) {
        const { role, content } = message()
        add.run([`old-${index}`, role, content, START])
      }
    }
  })
}
