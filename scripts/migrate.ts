/** npm run migrate: brings a state file up to date, says what is pending, or takes migrations back. See --help. */
import { resolve } from 'node:path'
import { parseArgs } from 'node:util'
import { sql } from 'kysely'
import { executedIn } from '../src/database/inspection.ts'
import { pendingMigrations } from '../src/database/migrator.ts'
import { MIGRATIONS } from '../src/database/reference.ts'
import { openStateStore, UnsupportedSchemaError } from '../src/index.ts'
import { defaultPath } from '../src/open.ts'
import { down, targetOf } from './migrate-down.ts'
import { count, printWarning, withFile } from './migrate-file.ts'
import { HELP, migrationLines, plural, schemaLine, stateLine, UsageError, wrap } from './migrate-text.ts'
import { schemas } from './schema-text.ts'

try {
  await main()
} catch (error) {
  const { code } = error as { code?: unknown }
  const isUsage = error instanceof UsageError || String(code).startsWith('ERR_PARSE_ARGS')
  const message = error instanceof Error ? error.message : String(error)
  // Node's own messages go on about positional arguments.
  const [mistake] = message.split(/\.(?: |$)/)
  console.error(wrap(isUsage ? `${mistake}. See npm run migrate -- --help` : message))
  process.exitCode = isUsage ? 2 : 1
}

async function main(): Promise<void> {
  const { values: flags, positionals } = parseArgs({
    allowPositionals: true,
    options: {
      db: { type: 'string' },
      to: { type: 'string' },
      yes: { type: 'boolean', default: false },
      'no-additions': { type: 'boolean', default: false },
      help: { type: 'boolean', short: 'h' },
    },
  })
  if (flags.help) return console.log(HELP)
  const [command = 'up', ...rest] = positionals
  if (rest.length > 0) throw new UsageError(`'${rest.join(' ')}' is too much after '${command}'.`)
  if (command !== 'down' && (flags.to !== undefined || flags.yes))
    throw new UsageError('--to and --yes belong to down.')
  if (flags.db === '' || flags.db === ':memory:') throw new UsageError('--db must be the path of a file.')
  const path = flags.db === undefined ? defaultPath() : resolve(flags.db)
  const additions = !flags['no-additions']

  if (command === 'up') await up(path, additions)
  else if (command === 'status') await status(path, additions)
  else if (command === 'plan') await plan(path, additions)
  else if (command === 'down') {
    if (!additions) throw new UsageError('--no-additions does not belong to down: --to 006 removes them.')
    await down(path, targetOf(flags.to), flags.yes)
  } else throw new UsageError(`There is no command '${command}'.`)
}

async function up(path: string, additions: boolean): Promise<void> {
  let created = false
  const store = await openStateStore({
    path,
    additions,
    onEvent: (event) => {
      created ||= event.type === 'created'
      printWarning(event)
    },
  })
  await store.close()
  const { migrations, mended, schemaVersion, readonlyBecause } = store.info
  if (readonlyBecause !== null)
    throw new UnsupportedSchemaError(`'${path}' is not migrated: ${readonlyBecause}`)
  const now = schemaLine(schemaVersion ?? 0, store.info.additions ? 'with' : 'without')
  if (migrations.length === 0 && mended.length === 0)
    return console.log(wrap(`'${path}' is up to date: ${now}.`))
  if (migrations.length === 0) return console.log(wrap(`Mended '${path}': ${now}.`))
  console.log(wrap(`${created ? 'Created' : 'Migrated'} '${path}': ${now}. What ran:`))
  console.log(`\n${migrationLines(migrations, await schemas())}`)
}

async function status(path: string, additions: boolean): Promise<void> {
  await withFile(path, ({ state, flaws }) => {
    const done = executedIn(state)
    const pending = pendingMigrations(state, additions)
    const later = done.filter((name) => !(name in MIGRATIONS))
    console.log(`${wrap(`'${path}': ${stateLine(state)}.`)}\n`)
    for (const name of [...Object.keys(MIGRATIONS), ...later]) {
      const mark = done.includes(name) ? 'done' : pending.includes(name) ? 'pending' : 'left out'
      console.log(`  ${mark.padEnd(10)}${name}${later.includes(name) ? ' (of a later release)' : ''}`)
    }
    if (flaws.length > 0)
      console.log(`\n${wrap(`It is flawed: ${flaws.join(', ')}. npm run migrate mends that.`)}`)
    if (pending.length > 0) console.log('\nnpm run migrate runs what is pending.')
    else if (flaws.length === 0) console.log('\nUp to date.')
  })
}

async function plan(path: string, additions: boolean): Promise<void> {
  await withFile(path, async ({ state, flaws, connection }) => {
    const pending = pendingMigrations(state, additions)
    if (flaws.length > 0) console.log(`${wrap(`Migrating would mend ${flaws.join(', ')}.`)}\n`)
    if (pending.length === 0 && flaws.length > 0) return
    if (pending.length === 0) return console.log(wrap(`'${path}' is up to date: ${stateLine(state)}.`))
    console.log(wrap(`'${path}': ${stateLine(state)}. Migrating would run`))
    console.log(`\n${migrationLines(pending, await schemas())}`)
    if (connection && state.kind === 'hermes' && state.version === 3) {
      const spare = count(connection, sql`select count(title) - count(distinct title) from sessions`)
      if (spare > 0) console.log(`\n${plural(spare, 'session')} would lose a title that a newer session has.`)
    }
  })
}
