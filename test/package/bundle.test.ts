import { execFile } from 'node:child_process'
import { symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { build } from 'esbuild'
import { expect, it } from 'vitest'
import { newFolder } from '../support/stores.ts'

const repository = join(import.meta.dirname, '../..')

/** Searches, and ends without closing the store. */
const PROGRAM = `
  import { openStateStore } from ${JSON.stringify(join(repository, 'dist/src/index.js'))}
  async function main() {
    const events = []
    const store = await openStateStore({ path: 'state.db', onEvent: ({ type }) => events.push(type) })
    await store.sessions.create({ id: 's', source: 'cli' })
    await store.messages.append('s', { role: 'user', content: 'docker 修改' })
    const [hits, sessions] = [await store.search.messages('修改'), await store.search.sessions('docker')]
    console.log(JSON.stringify({ hits: hits.length, sessions: sessions.length, events }))
  }
  main()`

it.each([
  ['the built package', undefined],
  ['a bundle that is an ES module', 'esm'],
  ['a bundle that is CommonJS', 'cjs'],
] as const)('%s searches in another thread, and ends by itself', async (_, format) => {
  const folder = newFolder()
  const program = join(folder, format === 'cjs' ? 'program.cjs' : 'program.mjs')
  writeFileSync(program, PROGRAM)
  if (format) {
    symlinkSync(join(repository, 'node_modules'), join(folder, 'node_modules'))
    await build({
      entryPoints: [program],
      outfile: program,
      allowOverwrite: true,
      bundle: true,
      platform: 'node',
      format,
      external: ['better-sqlite3'],
      logLevel: 'error',
    })
  }
  const { stdout } = await promisify(execFile)(process.execPath, [program], {
    cwd: newFolder(),
    timeout: 20_000,
  })
  expect(JSON.parse(stdout)).toEqual({ hits: 1, sessions: 1, events: ['created'] })
})
