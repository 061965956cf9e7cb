import Database from 'better-sqlite3'
import type { Child } from '../../test/support/child.ts'

/** A message whose append was acknowledged: its promise had resolved. */
export interface Acknowledged {
  id: number
  content: string
}

/** What a child said was acknowledged: `stored ID TEXT whole`; the last line may be cut off by its death. */
export function acknowledgedBy(child: Child): Acknowledged[] {
  return child.lines.flatMap((line) => {
    const [, id, content] = /^stored (\d+) (.*) whole$/.exec(line) ?? []
    return id !== undefined && content !== undefined ? [{ id: Number(id), content }] : []
  })
}

/** The messages of session `s`, read by SQL alone. No two of them were given the same text. */
export function storedIn(path: string): Acknowledged[] {
  const db = new Database(path, { readonly: true })
  try {
    return db
      .prepare<[], Acknowledged>("select id, content from messages where session_id = 's' order by id")
      .all()
  } finally {
    db.close()
  }
}

/** How many acknowledged messages are not there, and how many are there more than once. */
export function compare(acknowledged: readonly Acknowledged[], stored: readonly Acknowledged[]) {
  const contents = new Map(stored.map(({ id, content }) => [id, content]))
  return {
    lost: acknowledged.filter(({ id, content }) => contents.get(id) !== content).length,
    doubled: stored.length - new Set(stored.map(({ content }) => content)).size,
  }
}
