import { type RawBuilder, type SqlBool, sql } from 'kysely'
import { text } from '../database/cells.ts'
import type { Connection } from '../database/connection.ts'
import { visibleStored } from '../messages/structured-content.ts'
import { SEPARATOR } from './characters.ts'

const SEPARATORS = new RegExp(`${SEPARATOR.source}+`, 'gu')

/**
 * Gives a connection the function that {@link containsText} calls. Triggers and indexes never use it: other
 * programs that write the file do not have it.
 */
export function defineContains(connection: Connection): void {
  let last = { term: '', folded: '' }
  connection.define('hs_contains', (cell, term) => {
    const content = text(cell)
    if (content === null || typeof term !== 'string') return 0
    if (last.term !== term) last = { term, folded: fold(term) }
    return fold(visibleStored(content)).includes(last.folded) ? 1 : 0
  })
}

/**
 * Whether `messages.content` holds a text, letter case, width and kind of white space aside. LIKE would stop at
 * a NUL, pass over BLOBs and know no case but that of ASCII.
 */
export function containsText(term: string): RawBuilder<SqlBool> {
  return sql`hs_contains(messages.content, ${term})`
}

/** A text as it is compared: full width and case folded, whatever parts words one space. */
function fold(text: string): string {
  return text.normalize('NFKC').toLowerCase().replaceAll(SEPARATORS, ' ')
}
