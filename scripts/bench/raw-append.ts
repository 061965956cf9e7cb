import type Database from 'better-sqlite3'
import { CHECKPOINT_EVERY_N_WRITES } from '../../src/database/limits.ts'
import type { NewMessage } from '../../src/index.ts'
import { bigramsOf } from '../../src/search/bigrams.ts'

/** The SQL of an append to session `bench`, as one writes it by hand: a transaction of some messages. */
export function rawAppend(raw: Database.Database): (items: NewMessage[]) => void {
  const begin = raw.prepare('begin immediate')
  const commit = raw.prepare('commit')
  const insert = raw.prepare(`
    insert into messages (session_id, role, content, tool_call_id, tool_calls, tool_name, timestamp, token_count,
      finish_reason, reasoning, reasoning_details, codex_reasoning_items)
    values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`)
  const count = raw.prepare(`
    update sessions set message_count = coalesce(message_count, 0) + ?,
      tool_call_count = coalesce(tool_call_count, 0) + ?
    where id = ? returning ended_at, end_reason`)
  const advance = raw.prepare('update hs_bigrams_state set watermark = ? where watermark = ? - 1')
  const pairs = raw.prepare('insert into hs_bigrams (rowid, text) values (cast(? as integer), ?)')
  let commits = 0
  return (items) => {
    begin.run()
    try {
      count.get([items.length, 0, 'bench'])
      const ids = items.map(({ role, content, timestamp }) => {
        const values = ['bench', role, content, null, null, null, timestamp, null, null, null, null, null]
        return Number(insert.run(values).lastInsertRowid)
      })
      advance.run([ids.at(-1), ids[0]])
      for (const [index, { content }] of items.entries())
        pairs.run([ids[index], bigramsOf([String(content)])])
      commit.run()
    } catch (error) {
      if (raw.inTransaction) raw.exec('rollback')
      throw error
    }
    // As often as the store.
    if (++commits % CHECKPOINT_EVERY_N_WRITES === 0) raw.pragma('wal_checkpoint(passive)')
  }
}
