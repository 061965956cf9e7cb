import fc from 'fast-check'
import { anyContent, anyJson, anyObject, anyText } from './arbitraries.ts'

/** What better-sqlite3 binds to a cell. */
export type Cell = string | number | Buffer | null
export type Cells = Record<string, Cell>

/** Text, the same as bytes, bytes that are no UTF-8, and NULL. */
const text = fc.oneof(
  { weight: 4, arbitrary: anyText },
  { weight: 1, arbitrary: anyText.map((value) => Buffer.from(value)) },
  { weight: 1, arbitrary: fc.uint8Array({ maxLength: 6 }).map((bytes) => Buffer.from(bytes)) },
  { weight: 2, arbitrary: fc.constant(null) },
)

const count = fc.oneof(
  fc.nat({ max: 9 }),
  fc.integer({ min: -Number.MAX_SAFE_INTEGER, max: Number.MAX_SAFE_INTEGER }),
  fc.constant(null),
)

const number = fc.double({ noNaN: true, noDefaultInfinity: true })
const time = fc.oneof(fc.constantFrom(0, -1.5, 1e300, 1_770_000_000.125), number)

/** JSON of which the value would lose something, that is broken, or of another kind than is expected. */
const oddJson = fc.constantFrom(
  ...['{"a": 1.0}', '[12345678901234567890]', '{"a": 1, "a": 2}', '[1e400]', '1e400', '[-0]', '{broken', ''],
  ...['null', '7', 'true', '"text"', '"\\ud800"', '[]', '{}', '[7]', '["a"]', '[{"id": "c"}, {"id": 2.50}]'],
  ...['{"tools": [{"n": 12345678901234567890}]}', '{"tools": "look"}', '[{"function": {"name": "f"}}]'],
  ...[' [ 1 ] ', '"\\u0041\\/"', '{"__proto__": {"a": 1}}', '{"\\u0061": "\\n\\"", "b": [ ] }'],
)

const json = fc.oneof(
  { weight: 2, arbitrary: fc.oneof(anyJson, anyContent, anyObject).map((value) => JSON.stringify(value)) },
  { weight: 1, arbitrary: anyJson.map((value) => JSON.stringify(value, null, 2)) },
  { weight: 3, arbitrary: oddJson },
)

const jsonCell = fc.oneof(
  { weight: 4, arbitrary: json },
  { weight: 1, arbitrary: json.map((value) => Buffer.from(value)) },
  {
    weight: 1,
    arbitrary: fc.constantFrom(
      Buffer.from([0x22, 0xff, 0x22]),
      `${'['.repeat(1000)}${']'.repeat(1000)}`,
      `[${'{"a":'.repeat(1000)}1${'}'.repeat(1000)}]`,
    ),
  },
  { weight: 2, arbitrary: fc.constant(null) },
)

/** For columns that hold something in every file that can be imported: others say why they are refused. */
const word = fc.oneof(
  anyText.map((value) => `x${value}`),
  fc.constant(Buffer.from('x\xff', 'latin1')),
)

/** The columns of a session, each with what its cells may hold. */
export const sessionCells = {
  id: anyText.map((value) => value.toWellFormed().replaceAll('\0', '')),
  source: word,
  user_id: text,
  model: text,
  model_config: jsonCell,
  system_prompt: text,
  /** Which of the sessions before it; none where it is the first. */
  parent_session_id: fc.option(fc.nat({ max: 3 })),
  started_at: time,
  ended_at: fc.option(time),
  end_reason: text,
  title: text,
  message_count: count,
  tool_call_count: count,
  input_tokens: count,
  output_tokens: count,
  cache_read_tokens: count,
  cache_write_tokens: count,
  reasoning_tokens: count,
  billing_provider: text,
  billing_base_url: text,
  billing_mode: text,
  estimated_cost_usd: fc.option(number),
  actual_cost_usd: fc.option(number),
  cost_status: text,
  cost_source: text,
  pricing_version: text,
}

/** The columns of a message. */
export const messageCells = {
  /** The ids of a file have gaps. */
  id: fc.nat({ max: 2 }),
  /** Which of the sessions. */
  session_id: fc.nat({ max: 3 }),
  role: word,
  content: fc.oneof(
    text,
    json.map((value) => `\0json:${value}`),
  ),
  tool_call_id: text,
  tool_calls: jsonCell,
  tool_name: text,
  timestamp: time,
  token_count: fc.option(fc.nat({ max: Number.MAX_SAFE_INTEGER })),
  finish_reason: text,
  reasoning: text,
  reasoning_details: jsonCell,
  codex_reasoning_items: jsonCell,
}

/** What the tables beside a message hold of it. */
const beside = {
  structured: fc.option(json),
  client_id: fc.option(anyText.map((value) => value.toWellFormed().replaceAll('\0', ''))),
}

/** Rows of the tables of a file. */
export interface Rows {
  sessions: Cells[]
  messages: Cells[]
  structured: Cells[]
  clientIds: Cells[]
}

const anyCells = fc.record({
  sessions: fc.array(fc.record(sessionCells), { minLength: 1, maxLength: 4 }),
  messages: fc.array(fc.tuple(fc.record(messageCells), fc.record(beside)), { maxLength: 6 }),
})

/** What a file may hold that goes out and comes in again: with ids and titles of their own, and no circles. */
export const anyRows: fc.Arbitrary<Rows> = anyCells.map(({ sessions, messages }) => {
  const ids = sessions.map(({ id }, index) => `${id}${index}`)
  const rows: Rows = { sessions: [], messages: [], structured: [], clientIds: [] }
  for (const [index, { title, parent_session_id: parent, ...cells }] of sessions.entries())
    rows.sessions.push({
      ...cells,
      id: ids[index]!,
      title:
        typeof title === 'string'
          ? `${title}${index}`
          : title && Buffer.concat([title, Buffer.from(`${index}`)]),
      parent_session_id: parent === null || index === 0 ? null : ids[parent % index]!,
    })
  let message_id = 0
  for (const [
    index,
    [{ id: gap, session_id: place, ...cells }, { structured, client_id }],
  ] of messages.entries()) {
    message_id += 1 + gap
    const session_id = ids[place % ids.length]!
    rows.messages.push({ ...cells, id: message_id, session_id })
    if (structured !== null) rows.structured.push({ message_id, content: structured })
    if (client_id !== null) rows.clientIds.push({ message_id, session_id, client_id: `${client_id}${index}` })
  }
  return rows
})
