/** Text as Markdown that stays what it is, wherever it stands: on one line, in a code block, in HTML. */

/** Text on a line of its own: line breaks and characters nobody sees become spaces, marks of Markdown are escaped. */
export function oneLine(text: string): string {
  return text
    .toWellFormed()
    .replaceAll(/(?![\u200c\u200d])[\s\p{Cc}\p{Cf}]+/gu, ' ')
    .trim()
    .replaceAll(/[\\`*_[\]<>&|~$#]/g, '\\$&')
}

/** Text on one line of an HTML block, in which Markdown means nothing. */
export function inHtml(text: string): string {
  return text
    .toWellFormed()
    .replaceAll(/(?![\u200c\u200d])[\s\p{Cc}\p{Cf}]+/gu, ' ')
    .trim()
    .replaceAll('&', '&amp;')
    .replaceAll('<', '&lt;')
    .replaceAll('>', '&gt;')
}

/** A code block around a text: its fence is longer than any run of backticks in it. */
export function fenced(text: string, language = ''): string {
  const runs = text.match(/`{3,}/g) ?? []
  const fence = '`'.repeat(runs.reduce((longest, run) => Math.max(longest, run.length + 1), 3))
  return `${fence}${language}\n${shown(text).replace(/\n$/, '')}\n${fence}`
}

/** A part that is folded until somebody opens it. */
export function folded(summary: string, body: string): string {
  return `<details>\n<summary>${summary}</summary>\n\n${body}\n\n</details>`
}

/** A text with line feeds alone, and with pictures of other control characters: a code host takes them for data. */
export function shown(text: string): string {
  return text
    .toWellFormed()
    .replaceAll(/\r\n?/g, '\n')
    .replaceAll(/(?![\t\n])\p{Cc}/gu, (control) => {
      const code = control.charCodeAt(0)
      return String.fromCharCode(code < 0x20 ? 0x2400 + code : code === 0x7f ? 0x2421 : 0xfffd)
    })
}
