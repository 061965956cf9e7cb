import { spawn } from 'node:child_process'
import { copyFileSync, existsSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { beforeEach, describe, expect, test } from 'vitest'
import { dump, hermesRows, writeHermesFile } from '../support/hermes-file.ts'
import { newFolder, openForTest } from '../support/stores.ts'

const repository = join(import.meta.dirname, '../..')

let folder: string
let path: string

beforeEach(() => {
  folder = newFolder()
  path = join(folder, 'state.db')
})

/** Runs npm run migrate in the folder of the test, without npm. */
async function migrate(...args: string[]) {
  const child = spawn(
    process.execPath,
    [
      '--import',
      join(repository, 'node_modules/tsx/dist/esm/index.mjs'),
      join(repository, 'scripts/migrate.ts'),
      ...args,
    ],
    { cwd: folder, env: { ...process.env, HERMES_HOME: folder } },
  )
  const [stdout, stderr, code] = await Promise.all([
    text(child.stdout),
    text(child.stderr),
    new Promise((resolve) => child.on('close', resolve)),
  ])
  // What a path does to a line aside, everything fits a terminal.
  for (const line of (stdout + stderr).split('\n'))
    if (!line.includes(folder)) expect(line.length).toBeLessThanOrEqual(80)
  const onOneLine = (output: string) => output.replaceAll(/\s+/g, ' ').trim()
  return { stdout, stderr, code, said: onOneLine(stdout), error: onOneLine(stderr) }
}

describe('npm run migrate', () => {
  test('creates the default file, and then finds it up to date', async () => {
    const created = await migrate()
    expect(created).toMatchObject({ code: 0, stderr: '' })
    expect(created.said).toContain(`Created '${path}': Hermes schema 6 with additions. What ran: 001_initial`)
    expect(readdirSync(folder)).toEqual(['state.db'])

    expect(await migrate()).toMatchObject({
      code: 0,
      stderr: '',
      said: `'${path}' is up to date: Hermes schema 6 with additions.`,
    })
  })

  test('brings an old file up to date, after plan said what it would do', async () => {
    writeHermesFile(path, 4)
    const before = readFileSync(path)
    const plan = await migrate('plan', '--db', 'state.db')
    expect(plan).toMatchObject({ code: 0, stderr: '' })
    expect(plan.said).toContain(
      `'${path}': Hermes schema 4 without additions. Migrating would run 005_billing`,
    )
    expect(readFileSync(path).equals(before)).toBe(true)

    const done = await migrate('--db', 'state.db', '--no-additions')
    expect(done.said).toContain(
      `Migrated '${path}': Hermes schema 6 without additions. What ran: 005_billing`,
    )
    expect(done.said).toContain('006_reasoning messages.codex_reasoning_items, messages.reasoning')
    expect(done.said).not.toContain('007')
  })

  test('status lists every migration', async () => {
    writeHermesFile(path, 4)
    const { code, stdout, said } = await migrate('status')
    expect(code).toBe(0)
    expect(said).toContain(`'${path}': Hermes schema 4 without additions.`)
    expect(stdout.slice(stdout.indexOf('\n\n'))).toBe(`

  done      001_initial
  done      002_finish_reason
  done      003_title
  done      004_title_unique
  pending   005_billing
  pending   006_reasoning
  pending   007_structured_content
  pending   008_message_order
  pending   009_session_activity
  pending   010_word_index
  pending   011_unsegmented_index
  pending   012_client_ids

npm run migrate runs what is pending.
`)
  })
})

describe('npm run migrate -- down', () => {
  test('says what is lost, and changes nothing without --yes', async () => {
    writeHermesFile(path, 6)
    const before = readFileSync(path)
    const { code, said, stderr } = await migrate('down', '--to', '5')
    expect({ code, stderr }).toEqual({ code: 2, stderr: '' })
    expect(said).toContain(
      'Going down to 005_billing would undo 006_reasoning messages.codex_reasoning_items',
    )
    expect(said).toContain('messages.reasoning: lost in 1 row ')
    expect(said).toContain('Nothing was changed.')
    expect(readFileSync(path).equals(before)).toBe(true)
    expect(readdirSync(folder).filter((name) => name.includes('backup'))).toEqual([])
  })

  test('backs the file up, goes down, and up again', async () => {
    writeHermesFile(path, 6)
    await (await openForTest({ path })).close()
    const down = await migrate('down', '--to', '005', '--yes')
    expect(down).toMatchObject({ code: 0, stderr: '' })
    expect(down.said).toContain('Done: Hermes schema 5 without additions.')
    expect(dump(path).rows.schema_version).toEqual([{ version: 5 }])

    const [backup] = readdirSync(folder).filter((name) => /^state\.db\.backup-\d{8}T\d{6}Z$/.test(name))
    expect(down.said).toContain(`Backup: ${join(folder, backup!)}`)
    if (process.platform !== 'win32') expect(statSync(join(folder, backup!)).mode & 0o777).toBe(0o600)
    copyFileSync(join(folder, backup!), join(folder, 'copy.db'))
    const copy = await openForTest({ path: join(folder, 'copy.db'), migrate: false })
    expect(await copy.sessions.get('alpha')).toEqual(hermesRows(6).sessions[0])

    expect((await migrate()).said).toContain('What ran: 006_reasoning')
    const store = await openForTest({ path, migrate: false })
    expect(await store.sessions.get('alpha')).toEqual(hermesRows(6).sessions[0])
  })

  test('needs a file', async () => {
    const { code, error } = await migrate('down', '--to', '5', '--yes')
    expect({ code, error }).toEqual({
      code: 1,
      error: `There is no state file at '${path}': check the path.`,
    })
    expect(readdirSync(folder)).toEqual([])
  })
})

describe('a mistake is one sentence on stderr:', () => {
  test.each([{ args: ['down', '--to', '000'] }, { args: ['sideways'] }, { args: ['--frobnicate'] }])(
    '$args is wrong usage, exit code 2',
    async ({ args }) => {
      const { code, stdout, error } = await migrate(...args)
      expect({ code, stdout }).toEqual({ code: 2, stdout: '' })
      expect(error).toMatch(/^[^.]+\. See npm run migrate -- --help$/)
      expect(existsSync(path)).toBe(false)
    },
  )

  test.each([{ args: [] }, { args: ['down', '--to', '5', '--yes'] }])(
    '$args on a text file',
    async ({ args }) => {
      writeFileSync(path, 'Dear diary,\n')
      const { code, stdout, error } = await migrate(...args)
      expect({ code, stdout, error }).toEqual({
        code: 1,
        stdout: '',
        error: `'${path}' is not a SQLite database: give the path of a state.db, or of a new file.`,
      })
      expect(readFileSync(path, 'utf8')).toBe('Dear diary,\n')
      expect(readdirSync(folder)).toEqual(['state.db'])
    },
  )
})
