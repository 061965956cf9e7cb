import MarkdownIt, { type Token } from 'markdown-it'
import { fenced, shown } from './markdown-blocks.ts'

// As code hosts read it: CommonMark with tables.
const parser = new MarkdownIt({ html: true })
const MAX_NESTING = 80

/** Longer texts are not looked into: the time that takes can grow with the square of their length. */
const MAX_LENGTH = 50_000

/** Headings of a text stand below those that it is put under. */
const LEVELS_BELOW = 2

/**
 * A text that is Markdown, such as a model's reply, for a place within a document: it looks as it was meant, and
 * what is around it stays as it is. HTML in it is shown and not obeyed, its headings go below the document's, a code
 * block that nobody closed ends with it, and line breaks stay.
 *
 * What comes out is parsed again. Where anything in it would still reach beyond its place, all of it becomes a code
 * block.
 */
export function contained(text: string): string {
  if (text.length > MAX_LENGTH) return fenced(text)
  const inert = defused(
    shown(text)
      .replace(/^(?:[ \t]*\n)+/, '')
      .trimEnd(),
  )
  if (isContained(inert)) return inert
  const open = parser.parse(inert, {}).at(-1)
  const closed = open?.type === 'fence' ? `${inert}\n${open.markup}` : inert
  return isContained(closed) ? closed : fenced(text)
}

function defused(text: string): string {
  const lines = text.split('\n')
  const parts = new Map<number, { end: number; isCode: boolean }>()
  for (const token of parser.parse(text, {})) {
    const { type, map } = token
    if (!map) continue
    const [from, end] = map
    if (type === 'fence' || type === 'code_block') parts.set(from, { end, isCode: true })
    else if (type === 'inline' || type === 'html_block') parts.set(from, { end, isCode: false })
    else if (type === 'heading_open') lowerHeading(lines, token, from, end)
  }
  const defusedParts: string[] = []
  for (let from = 0; from < lines.length; ) {
    // What no token covers can be the definition of a link, for all of the document.
    const { end, isCode } = parts.get(from) ?? { end: from + 1, isCode: false }
    const part = lines.slice(from, end).join('\n')
    defusedParts.push(isCode ? part : escaped(part))
    from = end
  }
  return defusedParts.join('\n')
}

function lowerHeading(lines: string[], { tag, markup, level }: Token, from: number, end: number): void {
  const marks = '#'.repeat(Math.min(Number(tag.slice(1)) + LEVELS_BELOW, 6))
  if (markup.startsWith('#')) lines[from] = lines[from]!.replace(/#{1,6}/, marks)
  else if (level === 0) {
    lines[end - 1] = ''
    if (end - from === 2) lines[from] = `${marks} ${lines[from]!.trim()}`
  }
}

// In this order: an address that would swallow a mark behind it, as code hosts read it; what stays as it is: escapes,
// code, links in angle brackets; HTML; definitions of footnotes and links; the ends of lines.
const MARKS =
  /(?<scheme>https?:\/\/|ftp:\/\/|www\.|mailto:|xmpp:)(?=[^\s<]*[`\\<])|\\[\s\S]|(?<!`)(?<run>`+)(?!`)[\s\S]*?(?<!`)\k<run>(?!`)|`+|<[a-z][a-z\d+.-]{1,31}:[^\s<>]*>|<|\[(?=\^|[^\]\n]*\]:)|\n/gi

/** Text without HTML, and definitions of links and footnotes; its lines stay lines. */
function escaped(text: string): string {
  return text.replaceAll(MARKS, (mark, scheme: string | undefined) => {
    if (scheme) return scheme.replace(/[:.]/, (end) => `&#${end.charCodeAt(0)};`)
    if (mark === '\n') return '\\\n'
    return mark === '<' ? '&lt;' : mark === '[' ? '\\[' : mark
  })
}

/** Whether a text neither ends nor opens anything around it, nor uses HTML, and its headings are low enough. */
function isContained(markdown: string): boolean {
  const env: { references?: object } = {}
  const tokens = parser.parse(`${markdown}\n\n# End\n`, env)
  const [last] = tokens.splice(-3)
  if (last?.type !== 'heading_open' || last.level > 0) return false
  if (Object.keys(env.references ?? {}).length > 0) return false
  return tokens.every((token, index) => {
    const isHead = tokens[index - 1]?.type === 'th_open'
    return isHarmless(token) && !(isHead && BLOCK_START.test(token.content))
  })
}

// What is the head of a table to some parsers, and a heading, a list or code to others.
const BLOCK_START = /^(?:#{1,6}(?:\s|$)|`{3}|~{3}|>|[-+*](?:\s|$)|\d{1,9}[.)])/

function isHarmless({ type, tag, level, info, children }: Token): boolean {
  if (type === 'fence' && info.includes('|')) return false
  if (type === 'html_block' || type === 'html_inline' || level > MAX_NESTING) return false
  if (type === 'heading_open' && level === 0 && Number(tag.slice(1)) <= LEVELS_BELOW) return false
  return children?.every(isHarmless) ?? true
}
