import { rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { build } from 'esbuild'

/** Puts the program of the reader's thread, with all it imports but better-sqlite3, into `dist` as one script. */

const folder = join(import.meta.dirname, '../dist/src/reader')

const { outputFiles } = await build({
  entryPoints: [join(folder, 'worker.js')],
  bundle: true,
  write: false,
  platform: 'node',
  format: 'cjs',
  target: 'node20',
  minify: true,
  external: ['better-sqlite3'],
  // A script has no folder of its own to look modules up from.
  banner: {
    js: "(require=>{require=require('node:module').createRequire(require('node:worker_threads').workerData.from);",
  },
  footer: { js: '})(require)' },
})
const source = outputFiles.map(({ text }) => text).join('')
writeFileSync(
  join(folder, 'worker-source.js'),
  `/** The program of the reader's thread. */\nexport const workerSource = () => ${JSON.stringify(source)}\n`,
)
for (const file of ['worker.js', 'worker.d.ts']) rmSync(join(folder, file))
