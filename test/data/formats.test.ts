import { existsSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import type { FormatName, ImportedConversation } from '../../src/index.ts'
import { readConversations } from '../../src/index.ts'
import { FORMATS } from '../../src/transfer/formats.ts'

const folder = join(import.meta.dirname, '../../../shared/data')
const files = existsSync(folder) ? readdirSync(folder).filter((file) => /\.(jsonl?|traj)$/.test(file)) : []

/** Without what a format says it did not carry; arguments by their value, and what is empty left out. */
function carried(
  { source_format: _, messages, ...fields }: ImportedConversation,
  lost: ReadonlySet<string>,
): unknown {
  const kept = (names: object, prefix: string) =>
    Object.fromEntries(
      Object.entries(names).filter(
        ([name, value]) =>
          value !== undefined && value !== null && value !== '' && !lost.has(`${prefix}${name}`),
      ),
    )
  return JSON.parse(
    JSON.stringify({
      ...kept(fields, ''),
      messages: messages.map(({ tool_calls, ...message }) => ({
        ...kept(message, 'messages.'),
        calls: tool_calls?.map(({ id, function: { name, arguments: text } }) => [
          lost.has('messages.tool_calls.id') ? '' : id,
          name,
          lost.has('messages.tool_calls') ? '' : JSON.parse(text),
        ]),
      })),
    }),
  )
}

describe.skipIf(files.length === 0)(
  'real transcripts (skipped where they are not beside the package)',
  () => {
    it('are five files', () => {
      expect(files).toHaveLength(5)
    })

    it.each(
      files.flatMap((file) => Object.keys(FORMATS).map((format) => ({ file, format: format as FormatName }))),
    )('$file goes out as $format, and comes back equal in what that carries', async ({ file, format }) => {
      let compared = 0
      for await (const conversation of readConversations(join(folder, file))) {
        const { value, not_carried } = FORMATS[format].to(conversation)
        const again = FORMATS[format].from(JSON.parse(JSON.stringify(value)), file)
        const lost = new Set(Object.keys(not_carried))
        // Messages that were joined or split have no counterpart: that is said, and the second time nothing is lost.
        if (lost.has('messages')) {
          expect(FORMATS[format].to(again).value).toEqual(value)
          expect(FORMATS[format].to(again).not_carried).toEqual({})
        } else expect(carried(again, lost)).toEqual(carried(conversation, lost))
        compared++
      }
      expect(compared).toBeGreaterThan(0)
    })
  },
)
