import { containsCjk, SEPARATOR, WORD_CHARACTER } from './characters.ts'

/** A query as it was understood. */
export type QueryTree =
  | Term
  | { kind: 'and'; items: QueryTree[] }
  | { kind: 'or'; items: QueryTree[] }
  | { kind: 'not'; keep: QueryTree; drop: Term }

export interface Term {
  kind: 'term'
  text: string
  /** Whether the last word may go on: `deploy*`. */
  prefix: boolean
  /** Whether the word index can find it. Not so an emoji, or a run of a script without spaces. */
  indexed: boolean
}

type Operator = 'AND' | 'OR' | 'NOT'
type Token = Term | Operator

const MAX_LENGTH = 2_048
const MAX_TOKENS = 128

const OPERATORS = new Set<string>(['AND', 'OR', 'NOT'] satisfies Operator[])
const FTS5_KEYWORDS = new Set(['AND', 'OR', 'NOT', 'NEAR'])

const PUNCTUATION =
  '[!-/:-@[-`{-~\\s¡-©«-±´¶-¸»¿\u2010-\u2027\u2030-\u205e\u3001-\u3003\u3008-\u3011\u3014-\u301f！-／：-＠［-｀｛-･]'
// A sign with a mark on it is another one: `<` with a stroke is `≮`.
const EDGE_PUNCTUATION = new RegExp(`^(?:${PUNCTUATION}(?!\\p{M}))+|${PUNCTUATION}+$`, 'gu')
const BARE_WORD = /^(?:[A-Za-z0-9_]|[^\p{ASCII}])+$/u

/**
 * Understands a query: terms are ANDed; `"a phrase"`, `OR`, `NOT` and `prefix*` mean what they say, every other
 * character is text. NOT takes the next term only, then AND, then OR. Queries are cut at 2,048 characters and
 * 128 terms and operators. Never throws; undefined where nothing is left to look for.
 */
export function parseQuery(query: string): QueryTree | undefined {
  const tokens = tokenize(query.slice(0, MAX_LENGTH).toWellFormed())
  // Punctuation alone is noise beside words, and all there is to go by without them.
  const terms = tokens.filter((token) => isTerm(token))
  const spoken = terms.some(({ text }) => !isPunctuation(text))
  return parse(spoken ? tokens.filter((token) => !isTerm(token) || !isPunctuation(token.text)) : tokens)
}

/**
 * The FTS5 text of a query: what the word index is asked. `sanitizeFts5Query('chat-send OR')` is
 * `"chat-send"`. Terms that the word index cannot find are left out.
 */
export function sanitizeFts5Query(query: string): string {
  const tree = parseQuery(query)
  return tree === undefined ? '' : (render(tree, true) ?? '')
}

/** FTS5 text that means exactly the tree. */
export function renderFts5(tree: QueryTree): string {
  return render(tree, false) ?? ''
}

/** All terms of a query, those after NOT aside. */
export function wantedTerms(tree: QueryTree): Term[] {
  if (tree.kind === 'term') return [tree]
  return tree.kind === 'not' ? wantedTerms(tree.keep) : tree.items.flatMap(wantedTerms)
}

/** The tree that is content with one of the terms. */
export function anyOf(tree: QueryTree): QueryTree {
  return { kind: 'or', items: wantedTerms(tree) }
}

/** Whether a query has a word that may be an operator. */
export function hasOperators(query: string): boolean {
  return query
    .slice(0, MAX_LENGTH)
    .split(/\s+/)
    .some((word) => OPERATORS.has(word))
}

/** Whether the word index alone can answer the query. */
export function isIndexed(tree: QueryTree): boolean {
  if (tree.kind === 'term') return tree.indexed
  return tree.kind === 'not' ? isIndexed(tree.keep) && tree.drop.indexed : tree.items.every(isIndexed)
}

const isTerm = (token: Token | undefined): token is Term => typeof token === 'object'

function isPunctuation(text: string): boolean {
  return /^[\p{ASCII}\p{P}]*$/u.test(text) && !WORD_CHARACTER.test(text)
}

function tokenize(query: string): Token[] {
  const tokens: Token[] = []
  let position = 0
  while (position < query.length && tokens.length < MAX_TOKENS) {
    const character = query.charAt(position)
    if (SEPARATOR.test(character)) {
      position++
      continue
    }
    if (character === '"') {
      const end = query.indexOf('"', position + 1)
      if (end === -1) {
        position++
        continue
      }
      const prefix = query.charAt(end + 1) === '*'
      addTerm(tokens, query.slice(position + 1, end), prefix)
      position = end + (prefix ? 2 : 1)
      continue
    }
    let end = position
    while (end < query.length && query.charAt(end) !== '"' && !SEPARATOR.test(query.charAt(end))) end++
    const word = query.slice(position, end)
    if (OPERATORS.has(word)) tokens.push(word as Operator)
    else addTerm(tokens, word.replace(/\*+$/, ''), word.endsWith('*'))
    position = end
  }
  return tokens
}

function addTerm(tokens: Token[], written: string, prefix: boolean): void {
  const spaced = written.split(SEPARATOR).filter(Boolean).join(' ')
  // Only what FTS5 surely parts words at may be trimmed: `rust🦀` is one word to it.
  const text = WORD_CHARACTER.test(spaced) ? spaced.replaceAll(EDGE_PUNCTUATION, '') : spaced
  if (text === '') return
  tokens.push({ kind: 'term', text, prefix, indexed: WORD_CHARACTER.test(text) && !containsCjk(text) })
}

function parse(tokens: Token[]): QueryTree | undefined {
  const words = tokens.some(isTerm) ? tokens : tokens.map(asWord)
  const first = words[0]
  // Nothing precedes a leading NOT that it could take away from.
  if (first === 'NOT') words[0] = asWord(first)

  const alternatives: QueryTree[][] = [[]]
  let operators: Operator[] = []
  for (const token of words) {
    if (!isTerm(token)) {
      operators.push(token)
      continue
    }
    const group = alternatives.at(-1)!
    const left = group.at(-1)
    if (left === undefined) group.push(token)
    else if (operators.includes('NOT')) group[group.length - 1] = { kind: 'not', keep: left, drop: token }
    else if (operators[0] === 'OR') alternatives.push([token])
    else group.push(token)
    operators = []
  }
  return combine(
    'or',
    alternatives.map((group) => combine('and', group)).filter((tree) => tree !== undefined),
  )
}

function combine(kind: 'and' | 'or', items: QueryTree[]): QueryTree | undefined {
  return items.length > 1 ? { kind, items } : items[0]
}

function asWord(token: Token): Term {
  return isTerm(token) ? token : { kind: 'term', text: token, prefix: false, indexed: true }
}

function render(tree: QueryTree, onlyIndexed: boolean): string | undefined {
  if (tree.kind === 'term') {
    if (onlyIndexed && !tree.indexed) return undefined
    const bare = BARE_WORD.test(tree.text) && !FTS5_KEYWORDS.has(tree.text)
    return (bare ? tree.text : `"${tree.text.replaceAll('"', '""')}"`) + (tree.prefix ? '*' : '')
  }
  if (tree.kind === 'not') {
    const keep = inner(tree.keep, onlyIndexed)
    const drop = render(tree.drop, onlyIndexed)
    return keep === undefined || drop === undefined ? keep : `${keep} NOT ${drop}`
  }
  const parts = tree.items.map((item) => inner(item, onlyIndexed)).filter((part) => part !== undefined)
  return parts.length === 0 ? undefined : parts.join(tree.kind === 'and' ? ' AND ' : ' OR ')
}

function inner(tree: QueryTree, onlyIndexed: boolean): string | undefined {
  const text = render(tree, onlyIndexed)
  return tree.kind === 'term' || text === undefined ? text : `(${text})`
}
