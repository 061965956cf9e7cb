import { closeSync, openSync, writeSync } from 'node:fs'
import Database from 'better-sqlite3'

export const INDEXES = ['messages_fts', 'hs_bigrams'] as const

export type IndexName = (typeof INDEXES)[number]

/** What can happen to the tables that FTS5 keeps an index in. */
export const DAMAGES = {
  'an overwritten structure record': (index: IndexName) =>
    `update ${index}_data set block = x'ffffffffffffffff' where id = 10`,
  'zeroed segments': (index: IndexName) =>
    `update ${index}_data set block = zeroblob(length(block)) where id > 10`,
  'a lost newest segment': (index: IndexName) =>
    `delete from ${index}_data where id = (select max(id) from ${index}_data)`,
  'lost sizes': (index: IndexName) => `delete from ${index}_docsize`,
  'lost settings': (index: IndexName) => `delete from ${index}_config`,
}

export type Damage = keyof typeof DAMAGES

export const ALL_DAMAGES = Object.keys(DAMAGES) as Damage[]

/** Damages an index behind the back of SQLite, on a connection of its own. */
export function damage(path: string, index: IndexName, kind: Damage): void {
  const db = new Database(path)
  try {
    db.unsafeMode(true)
    db.exec(DAMAGES[kind](index))
  } finally {
    db.close()
  }
}

/** Damages a table of a file that nobody has open: its first page becomes noise. */
export function overwriteRoot(path: string, table: string): void {
  const [page] = query<number>(path, 'select rootpage from sqlite_schema where name = ?', table)
  const [size] = query<number>(path, 'pragma page_size')
  const file = openSync(path, 'r+')
  writeSync(file, Buffer.alloc(size as number, 0xa5), 0, size, ((page as number) - 1) * (size as number))
  closeSync(file)
}

/** Compares both indexes with the messages, word by word; throws where they differ. */
export function expectIndexesSound(path: string): void {
  const db = new Database(path)
  try {
    for (const index of INDEXES) {
      const there = db.prepare('select 1 from sqlite_schema where name = ?').get(index)
      if (there) db.exec(`insert into ${index}(${index}, rank) values ('integrity-check', 1)`)
    }
  } finally {
    db.close()
  }
}

/** How many segments an index is in. */
export function segments(path: string, index: IndexName): number {
  return query<number>(path, `select count(distinct segid) from ${index}_idx`)[0] as number
}

/** Bytes that an index takes. */
export function indexBytes(path: string, index: IndexName): number {
  return query<number>(path, `select sum(length(block)) from ${index}_data`)[0] as number
}

/** The ids that FTS5 text matches, asked of the index itself. */
export function matching(path: string, index: IndexName, match: string): number[] {
  return query<number>(path, `select rowid from ${index} where ${index} match ? order by rowid`, match)
}

/** The values of the first column of a query, on a connection of its own. */
export function query<Value>(path: string, text: string, ...values: unknown[]): Value[] {
  const db = new Database(path, { readonly: true })
  try {
    return db
      .prepare(text)
      .pluck()
      .all(...values) as Value[]
  } finally {
    db.close()
  }
}

/** Runs SQL as another program would, without waiting for a lock. */
export function change(path: string, text: string): void {
  const db = new Database(path, { timeout: 0 })
  try {
    db.exec(text)
  } finally {
    db.close()
  }
}
