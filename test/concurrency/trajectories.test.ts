import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { startTogether } from '../support/processes.ts'
import { newFolder } from '../support/stores.ts'

it('8 processes append 200 trajectories each, some of 200 kB: every line is one whole trajectory', async () => {
  const file = join(newFolder(), 'samples.jsonl')
  const names = Array.from({ length: 8 }, (_, n) => `writer ${n}`)
  const children = await startTogether(names.map((name) => ['trajectories.mjs', file, name, '200']))
  for (const child of children) await child.hear('done')

  const saved: Record<string, string[]> = {}
  for (const line of readFileSync(file, 'utf8').trimEnd().split('\n')) {
    const { conversations, model } = JSON.parse(line)
    const [, name = '', number = '', filling = ''] =
      /^(writer \d) (\d+) (ü+)$/.exec(conversations[0].value) ?? []
    expect(name).toBe(model)
    expect(filling).toHaveLength(Number(number) % 10 === 0 ? 100_000 : 10)
    saved[name] = [...(saved[name] ?? []), number]
  }
  const inOrder = Array.from({ length: 200 }, (_, n) => String(n))
  expect(saved).toEqual(Object.fromEntries(names.map((name) => [name, inOrder])))
})
