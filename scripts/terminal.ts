import stringWidth from 'string-width'
import wrapAnsi from 'wrap-ansi'

const COLUMNS = 80
const INDENT = 12
const MAX_LINES = 3

const graphemes = new Intl.Segmenter()

/** Text in exactly `width` terminal columns, cut where it is longer: Chinese and emoji take two. */
export function clip(text: string, width: number): string {
  let cut = flat(text.slice(0, 1_000))
  if (stringWidth(cut) > width) {
    const characters = Array.from(graphemes.segment(cut), ({ segment }) => segment)
    while (stringWidth(characters.join('')) > width - 1) characters.pop()
    cut = `${characters.join('')}…`
  }
  return cut + ' '.repeat(width - stringWidth(cut))
}

export function heading(text: string): void {
  console.log(`\n${clip(text, COLUMNS).trimEnd()}\n${'─'.repeat(COLUMNS)}`)
}

/** A label, and at most three lines of text beside it. */
export function indented(label: string, text: string): string {
  const width = COLUMNS - INDENT
  const lines = wrapAnsi(flat(text), width, { hard: true }).split('\n')
  if (lines.length > MAX_LINES)
    lines.splice(
      MAX_LINES - 1,
      lines.length,
      clip(lines.slice(MAX_LINES - 1, MAX_LINES + 1).join(' '), width),
    )
  const [first = '', ...rest] = lines.map((line) => line.trimEnd())
  return [clip(label, INDENT - 1), ` ${first}`, ...rest.map((line) => `\n${' '.repeat(INDENT)}${line}`)].join(
    '',
  )
}

function flat(text: string): string {
  return text.replaceAll(/\s+/g, ' ').trim()
}
