import Database from 'better-sqlite3'

/** Rows that no sound file has, by what is wrong with them. */
const FLAWED_ROWS = {
  'a counter is off': `
    select id, message_count, tool_call_count from sessions
    where message_count is not (select count(*) from messages where session_id = sessions.id)
      or tool_call_count is not (
        select coalesce(sum(json_array_length(tool_calls)), 0) from messages where session_id = sessions.id)`,
  'the activity of a session is off': `
    select sessions.id, last_active from sessions
    left join hs_session_activity on session_id = sessions.id
    where last_active is not coalesce(
      (select max(timestamp) from messages where session_id = sessions.id), started_at)`,
  'structured content is of no message':
    'select message_id from hs_structured_content where message_id not in (select id from messages)',
  'a client id is of no message': `
    select message_id from hs_client_ids
    where not exists (
      select 1 from messages where id = message_id and messages.session_id = hs_client_ids.session_id)`,
}

/** What is damaged in a file, read by SQL alone: its pages, references, word index, counters, additions. */
export function faultsOf(path: string): string[] {
  const db = new Database(path)
  try {
    const faults: string[] = []
    const integrity = db.pragma('integrity_check', { simple: true })
    if (integrity !== 'ok') faults.push(`integrity_check: ${integrity}`)
    const references = db.pragma('foreign_key_check')
    if (!Array.isArray(references) || references.length > 0)
      faults.push(`foreign_key_check: ${JSON.stringify(references)}`)
    try {
      // Rank 1: the index is compared with the texts.
      db.exec("insert into messages_fts(messages_fts, rank) values('integrity-check', 1)")
    } catch (error) {
      faults.push(`word index: ${error}`)
    }
    for (const [fault, sql] of Object.entries(FLAWED_ROWS))
      for (const row of db.prepare(sql).all()) faults.push(`${fault}: ${JSON.stringify(row)}`)
    return faults
  } finally {
    db.close()
  }
}
