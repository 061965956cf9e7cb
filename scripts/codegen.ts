/**
 * Writes src/database/schema.generated.ts from an in-memory database that every migration has run on.
 * With --verify it writes nothing and fails when the file is stale.
 */
import Database from 'better-sqlite3'
import { Kysely, SqliteDialect } from 'kysely'
import { generate, getDialect } from 'kysely-codegen'
import { additionMigrations, hermesMigrations } from '../migrations/index.ts'

const outFile = 'src/database/schema.generated.ts'
const verify = process.argv.includes('--verify')

const sqlite = new Database(':memory:')
const db = new Kysely<unknown>({ dialect: new SqliteDialect({ database: sqlite }) })
for (const { up } of Object.values({ ...hermesMigrations, ...additionMigrations })) await up(db)

const shadows = new Set(
  sqlite.prepare("select name from pragma_table_list where type = 'shadow'").pluck().all() as string[],
)

await generate({
  // kysely-codegen is CommonJS: to TypeScript, its Kysely is another class than ours.
  db: db as never,
  dialect: getDialect('sqlite'),
  outFile,
  verify,
  postprocess: async ({ metadata }) => ({
    ...metadata,
    tables: metadata.tables.filter(({ name }) => !shadows.has(name)),
  }),
})
await db.destroy()
console.log(verify ? `${outFile} is up to date.` : `Wrote ${outFile}.`)
