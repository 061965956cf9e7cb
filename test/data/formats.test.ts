import { existsSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import type { FormatName } from '../../src/index.ts'
import { readConversations } from '../../src/index.ts'
import { FORMATS } from '../../src/transfer/formats.ts'
import { expectCarried } from '../support/formats.ts'

const folder = join(import.meta.dirname, '../../../shared/data')
const files = existsSync(folder) ? readdirSync(folder).filter((file) => /\.(jsonl?|traj)$/.test(file)) : []

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
        expectCarried(format, conversation, FORMATS[format].to(conversation))
        compared++
      }
      expect(compared).toBeGreaterThan(0)
    })
  },
)
