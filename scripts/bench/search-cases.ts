import type Database from 'better-sqlite3'
import type { StateStore } from '../../src/index.ts'
import { unfiltered } from '../../src/search/filters.ts'
import { neighbours } from '../../src/search/hits.ts'
import type { Case } from './cases.ts'
import { searchWords } from './search-data.ts'

/** Searches on the file of search-data.ts. The targets want 1,000,000 messages: of fewer, showing the hits is most of a search. */
export function searchCases(store: StateStore, raw: Database.Database): Case[] {
  const { common, rare, chinese } = searchWords()
  const messages = raw.prepare('select count(*) from messages').pluck().get() as number
  const whenLarge = (target: number) => (messages >= 1_000_000 ? target : undefined)

  const probe = raw.prepare('select 1 from messages_fts where messages_fts match ? limit 1 offset 10000')
  const rank = raw.prepare<unknown[], { id: number }>(`
    select id from (select rowid as id, rank as score from messages_fts where messages_fts match ?)
    order by score, id desc limit 20 offset 0`)
  // The store's own texts, which read from the view that it makes.
  raw.exec('create temp view all_messages as select *, null as inactive from main.messages')
  const read = raw.prepare<unknown[], { id: number; session_id: string }>(unfiltered.sql)
  const around = raw.prepare(neighbours.sql)
  const hits = (word: string) => {
    const ids = JSON.stringify(rank.all([word]).map(({ id }) => id))
    for (const { id, session_id } of read.all(unfiltered.values({ ids })))
      around.all(neighbours.values({ session_id, id, limit: 1 }))
  }
  const byRank = raw.prepare(
    'select rowid from messages_fts where messages_fts match ? order by rank limit 20',
  )
  const like = raw.prepare(`
    select messages.*, source, model, started_at from messages join sessions on sessions.id = session_id
    where content like '%' || ? || '%' order by timestamp desc limit 20`)

  return [
    {
      name: 'rank a word of 0.7 %',
      calls: 10,
      warmUp: 200,
      ours: () => store.search.messages(rare),
      raw: () => {
        probe.all([rare])
        hits(rare)
      },
      target: whenLarge(1.05),
    },
    {
      name: 'rank a word of half, exact',
      calls: 1,
      ours: () => store.search.messages(common, { exact: true }),
      raw: () => hits(common),
      target: whenLarge(1.05),
    },
    {
      name: 'a word of half / FTS5 order by rank',
      calls: 1,
      warmUp: 20,
      ours: () => store.search.messages(common),
      raw: () => byRank.all([common]),
      target: whenLarge(1 / 20),
    },
    {
      name: '2 Chinese characters / LIKE by time',
      calls: 1,
      warmUp: 200,
      ours: () => store.search.messages(chinese, { orderBy: 'newest' }),
      raw: () => like.all([chinese]),
      target: whenLarge(1 / 500),
    },
  ]
}
