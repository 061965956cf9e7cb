const STRONG =
  'password|passwd|passphrase|secret|(?:api|access|account|auth|encryption|master|private|secret|shared|signing)[_-]?(?:access[_-]?)?key'
const WEAK = 'token|credentials?|auth'
const NAME = String.raw`(?:(?<strong>${STRONG})|(?<weak>${WEAK}))(?:[_-]?\d{1,2})?`
const QUOTE = String.raw`\\{0,15}["'\u0060]`

/**
 * The end of a name such as `DB_PASSWORD`, and what follows it: `=`, `": "`, ` := b'`; or, after an option such as
 * `--password`, a space or a comma.
 */
const ASSIGNMENT = new RegExp(
  String.raw`${NAME}(?:${QUOTE})?(?<sign>[ \t]{0,8}(?::[ \t]{0,4}str(?:ing)?[ \t]{0,4}=|=>|:=|[:=])[ \t]{0,8}|,?[ \t]{1,4}|,)(?:[bfru]{0,2}(?<open>${QUOTE}))?`,
  'gi',
)
const WHOLE_NAME = new RegExp(`${NAME}$`, 'i')

/** A value without quotes ends where a shell, a query string, a connection string or a list would end it. */
const BARE = /[^\s"'`\\;,&|<>(){}[\]$%*][^\s"'`\\;,&|<>()]{0,511}/y
const LONGEST = 4096

/** What stands for a value, or says its type; and what code reads it from. */
const PLACEHOLDER =
  /^(?:[$<{%].*|\[redacted:.*|[*x.•]+|str(?:ing)?|null|none|nil|true|false|undefined|required|optional)$/is
/** In JSON text such as `["PASSWORD=", "x"]` the quote ends a text. */
const BETWEEN_TEXTS = /^\s*[,:}\]]/
const PATH = /^[a-z_]\w*(?:\.[a-z_]\w*)+\[?$/i

/**
 * The values that are assigned to names like `API_KEY`, `"password"` or `--client-secret`, in code, in configuration
 * and in JSON text, also in JSON text that is itself a string in JSON text: there a quote has backslashes before it.
 *
 * @returns the place of each value, without its quotes.
 */
export function* secretAssignments(text: string): Generator<[start: number, end: number]> {
  for (const match of text.matchAll(ASSIGNMENT)) {
    const { strong, open, sign = '' } = match.groups ?? {}
    const isOption = /--[\w-]{0,40}$/.test(text.slice(Math.max(0, match.index - 42), match.index))
    if (!/[:=]/.test(sign) && !isOption) continue
    const start = match.index + match[0].length
    const end = open === undefined ? endOfBare(text, start) : endOfQuoted(text, start, open)
    const value = text.slice(start, end)
    const isAssigned =
      open === undefined
        ? isBareSecret(value, sign, strong !== undefined)
        : !BETWEEN_TEXTS.test(value) && isSecret(value, strong)
    if (isAssigned) yield [start, end]
  }
}

/** Whether a value is to be masked for the name it has: that of a property of an object. */
export function isSecretProperty(name: string, value: string): boolean {
  const groups = WHOLE_NAME.exec(name)?.groups
  return groups !== undefined && isSecret(value, groups.strong)
}

function isSecret(value: string, strong: string | undefined): boolean {
  if (value === '' || PLACEHOLDER.test(value)) return false
  return strong !== undefined || looksRandom(value)
}

function isBareSecret(value: string, sign: string, strong: boolean): boolean {
  if (PLACEHOLDER.test(value) || PATH.test(value)) return false
  if (!strong) return looksRandom(value)
  // With a space or a colon it may be a sentence.
  return value.length >= 6 && (sign === '=' || /\d/.test(value))
}

function looksRandom(value: string): boolean {
  return value.length >= 16 && /\d/.test(value) && /[A-Za-z]/.test(value) && !/\s/.test(value)
}

function endOfBare(text: string, start: number): number {
  BARE.lastIndex = start
  const end = start + (BARE.exec(text)?.[0].length ?? 0)
  // The name of a function that is called.
  return text[end] === '(' ? start : end
}

/**
 * The index of the quote that closes, with its backslashes. Where JSON text lies in JSON text, n levels deep, a quote
 * has b = 2ⁿ - 1 backslashes, one inside the value 2b + 1, and each backslash of the value itself is 2b + 2 of them.
 * A value ends at a double quote that may end the JSON text it stands in, even where its own quote is missing.
 */
function endOfQuoted(text: string, start: number, open: string): number {
  const quote = open.at(-1)
  const before = open.length - 1
  let backslashes = 0
  for (let index = start; index < text.length && index - start < LONGEST; index++) {
    const character = text[index]
    if (character === '\n') break
    if (character === quote && isEnd(backslashes, before)) return index - before
    if (character === '"' && (quote !== '"' || endsOuter(backslashes, before))) return index - backslashes
    backslashes = character === '\\' ? backslashes + 1 : 0
  }
  return endOfBare(text, start)
}

function isEnd(backslashes: number, before: number): boolean {
  return (backslashes - before) % (2 * before + 2) === 0
}

/** Whether a quote ends a text that the one with so many backslashes before its quotes stands in. */
function endsOuter(backslashes: number, before: number): boolean {
  for (let outer = 0; outer < before; outer = 2 * outer + 1) if (isEnd(backslashes, outer)) return true
  return false
}
