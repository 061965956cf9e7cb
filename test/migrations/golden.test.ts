import { copyFileSync, existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import Database from 'better-sqlite3'
import { describe, expect, test } from 'vitest'
import { checksums, schemas } from '../../scripts/schema-text.ts'
import { Connection } from '../../src/database/connection.ts'
import { readShape } from '../../src/database/shape.ts'
import { VERSIONS } from '../support/hermes-file.ts'
import { newPath } from '../support/stores.ts'

const golden = (file: string) => readFileSync(join(import.meta.dirname, '../golden', file), 'utf8')
const fixture = (version: number) =>
  join(import.meta.dirname, `../../../shared/fixtures/state-v${version}.db`)

const all = await schemas()

describe.each(all)('the schema after $name', ({ name, shape, text }) => {
  test('is the one in test/golden (after a change: npm run schema, and review it)', () => {
    expect(text).toBe(golden(`schema-${name}.sql`))
  })

  test('is what the SQL in test/golden makes', () => {
    const db = new Database(':memory:')
    db.exec(golden(`schema-${name}.sql`))
    expect(readShape(new Connection(db, () => {}))).toEqual(shape)
    db.close()
  })
})

describe.skipIf(!existsSync(fixture(1)))(
  'files that Hermes wrote (skipped without ../shared/fixtures)',
  () => {
    test.each(VERSIONS)('a file of schema %i has exactly the schema after that migration', (version) => {
      const path = newPath()
      copyFileSync(fixture(version), path)
      const db = new Database(path, { readonly: true })
      expect(readShape(new Connection(db, () => {}))).toEqual(all[version - 1]!.shape)
      db.close()
    })
  },
)

test('a released migration never changes: write a new one instead', () => {
  expect(checksums()).toEqual(JSON.parse(golden('migration-checksums.json')))
})
