import { containsCjk, head, WORD_CHARACTER } from './characters.ts'
import { foldWithOrigins } from './fold.ts'
import { SEARCH_FIELDS, type Searched, type SearchField } from './projection.ts'
import type { Term } from './query.ts'

/** Where a term is in a message, in UTF-16 units of the field as it is searched. */
export interface Match {
  field: SearchField
  start: number
  end: number
}

/** At most so many are found of a message: enough to show it. */
const MOST = 100

/** Texts are folded in pieces of so many units, which overlap by a longest term. */
const PIECE = 100_000
const OVERLAP = 2_048

const WORD = WORD_CHARACTER.source

/** A pattern for a term in a folded text without accents: as words, or wherever it stands. */
export function termPattern(term: Term, asWords: boolean): RegExp {
  const folded = foldWithOrigins(term.text).text
  if (!asWords || !term.indexed || containsCjk(term.text)) return new RegExp(escaped(folded), 'gu')
  const words = folded.split(new RegExp(`[^${WORD.slice(1, -1)}]+`, 'u')).filter(Boolean)
  const between = `[^${WORD.slice(1, -1)}]+`
  return new RegExp(
    `(?<!${WORD})${words.map(escaped).join(between)}${term.prefix ? '' : `(?!${WORD})`}`,
    'gu',
  )
}

/** Where patterns are in a message, in the order of its fields and of their texts. */
export function findMatches(texts: Searched, patterns: readonly RegExp[]): Match[] {
  const matches: Match[] = []
  for (const field of SEARCH_FIELDS) {
    const found = new Map<number, Match>()
    for (let from = 0; from < texts[field].length && found.size < MOST; from += PIECE)
      for (const match of inPiece(texts[field].slice(from, from + PIECE + OVERLAP), patterns))
        found.set(match.start + from, { field, start: match.start + from, end: match.end + from })
    matches.push(...[...found.values()].sort((a, b) => a.start - b.start))
  }
  return matches.slice(0, MOST)
}

function inPiece(text: string, patterns: readonly RegExp[]): { start: number; end: number }[] {
  const folded = foldWithOrigins(text)
  const found: { start: number; end: number }[] = []
  for (const pattern of patterns)
    for (const { 0: match, index } of folded.text.matchAll(pattern)) {
      if (match === '' || found.length >= MOST) break
      const start = folded.origin(index)
      found.push({ start, end: Math.max(folded.origin(index + match.length), start + 1) })
    }
  return found
}

function escaped(text: string): string {
  return text.replaceAll(/[.*+?^${}()|[\]\\/]/g, '\\$&')
}

/** Characters shown before the first match, and in all. */
const BEFORE = 60
const LENGTH = 240

/** The text around the first match, with every match in it between the marks. */
export function snippetOf(
  texts: Searched,
  matches: readonly Match[],
  [open, close]: readonly [string, string],
): string {
  const first = matches[0]
  if (!first) {
    const text = texts.content || texts.tool_calls || texts.tool_name
    return text.length > LENGTH ? `${head(text, LENGTH)}...` : text
  }
  const text = texts[first.field]
  const from = edge(text, Math.max(0, first.start - BEFORE))
  const to = edge(text, Math.min(text.length, Math.max(from + LENGTH, first.end)))
  let snippet = from > 0 ? '...' : ''
  let at = from
  for (const { field, start, end } of matches) {
    if (field !== first.field || start < at || end > to) continue
    snippet += text.slice(at, start) + open + text.slice(start, end) + close
    at = end
  }
  return snippet + text.slice(at, to) + (to < text.length ? '...' : '')
}

/** Not between the halves of a character. */
function edge(text: string, position: number): number {
  const unit = text.charCodeAt(position)
  return unit >= 0xdc00 && unit <= 0xdfff ? position - 1 : position
}
