/**
 * npm run schema: writes test/golden/schema-NNN_*.sql, the schema after each migration, and the checksums of
 * migrations that have none yet; and docs/bundle.schema.json, the JSON Schema of a record of a bundle. A checksum that
 * is there stays: a released migration never changes.
 * With --verify it writes nothing and fails when a file is stale.
 */
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { bundleSchema } from '../src/transfer/records.ts'
import { lineDiff } from './line-diff.ts'
import { checksums, schemas } from './schema-text.ts'

const { values: flags } = parseArgs({ options: { verify: { type: 'boolean' } } })
const root = join(import.meta.dirname, '..')
const folder = 'test/golden'
const checksumFile = `${folder}/migration-checksums.json`

const wanted = new Map((await schemas()).map(({ name, text }) => [`${folder}/schema-${name}.sql`, text]))
const pinned: Record<string, string> = JSON.parse(read(checksumFile) ?? '{}')
const actual = checksums()
wanted.set(checksumFile, `${JSON.stringify({ ...actual, ...pinned }, null, 2)}\n`)

wanted.set('docs/bundle.schema.json', `${JSON.stringify(bundleSchema(), null, 2)}\n`)

const stale = [...wanted].filter(([file, text]) => read(file) !== text)
const leftover = listed().filter((file) => !wanted.has(file))
const changed = Object.keys(pinned).filter((file) => pinned[file] !== actual[file])

if (flags.verify) {
  for (const [file, text] of stale) console.error(`${file} is stale:\n${lineDiff(read(file) ?? '', text)}\n`)
  if (stale.length > 0) console.error('Run npm run schema and review the difference.')
} else {
  for (const [file, text] of stale) {
    writeFileSync(join(root, file), text)
    console.log(`Wrote ${file}.`)
  }
}
for (const file of leftover) console.error(`${file} belongs to no migration: delete it.`)
for (const file of changed)
  console.error(
    actual[file]
      ? `migrations/${file} is not what was released: undo the change and write a new migration.`
      : `migrations/${file} was released and is gone: bring it back.`,
  )

if (leftover.length + changed.length > 0 || (flags.verify && stale.length > 0)) process.exitCode = 1
else console.log(`The schemas are up to date: ${wanted.size} files.`)

function read(file: string): string | undefined {
  const path = join(root, file)
  return existsSync(path) ? readFileSync(path, 'utf8') : undefined
}

function listed(): string[] {
  return readdirSync(join(root, folder))
    .filter((file) => /^schema-.*\.sql$/.test(file))
    .map((file) => `${folder}/${file}`)
}
