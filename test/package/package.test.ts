import { execFile } from 'node:child_process'
import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'

const repository = join(import.meta.dirname, '../..')
const modules = join(repository, 'node_modules')
const temporary = mkdtempSync(join(tmpdir(), 'hermes-state-package-'))
const consumer = join(temporary, 'consumer')

let tarball: string
let files: string[]

beforeAll(async () => {
  const [packed] = JSON.parse(
    await run('npm', ['pack', '--json', '--ignore-scripts', '--pack-destination', temporary], repository),
  ) as [{ filename: string; files: { path: string }[] }]
  tarball = join(temporary, packed.filename)
  files = packed.files.map(({ path }) => path)
})

afterAll(() => rmSync(temporary, { recursive: true, force: true }))

describe('the tarball', () => {
  test('holds the built package and its texts, and nothing else', () => {
    const expected =
      /^(package\.json|README\.md|LICENSE|CHANGELOG\.md|docs\/bundle\.schema\.json|dist\/(src|migrations)\/[\w./-]+\.(js|d\.ts))$/
    expect(files.filter((file) => !expected.test(file))).toEqual([])
    expect(files).toEqual(
      expect.arrayContaining([
        'package.json',
        'README.md',
        'LICENSE',
        'CHANGELOG.md',
        'docs/bundle.schema.json',
        'dist/src/index.js',
        'dist/src/index.d.ts',
        'dist/migrations/index.js',
      ]),
    )
  })

  test('has nothing that publint objects to', async () => {
    expect(await run(bin('publint'), [tarball, '--strict'], temporary)).toContain('All good!')
  })

  test('has types that resolve for every importer of an ES module', async () => {
    // Fails by its exit code, too.
    const report = await run(bin('attw'), [tarball, '--profile', 'esm-only', '--no-color'], temporary)
    expect(report).toMatch(/node16 \(from ESM\) │ 🟢 \(ESM\)/)
    expect(report).toMatch(/bundler +│ 🟢/)
  })
})

describe('installed in another folder, the package', () => {
  beforeAll(async () => {
    cpSync(join(import.meta.dirname, '../support/consumer'), consumer, { recursive: true })
    writeFileSync(join(consumer, 'package.json'), '{ "private": true, "type": "module" }')
    await run(
      'npm',
      [
        ...['install', '--prefer-offline', '--no-audit', '--no-fund', '--ignore-scripts', tarball],
        ...['kysely', 'better-sqlite3', '@types/node'].map((name) => `${name}@${installedVersion(name)}`),
      ],
      consumer,
    )
    // Compiling better-sqlite3 takes a minute: it is the same version, so its binary is too.
    const binary = 'better-sqlite3/build/Release/better_sqlite3.node'
    cpSync(join(modules, binary), join(consumer, 'node_modules', binary), { recursive: true })
  }, 120_000)

  test('runs', async () => {
    expect(JSON.parse(await run(process.execPath, ['plain.mjs', 'plain.db'], consumer))).toEqual({
      version: 6,
      hits: 2,
      known: true,
    })
  })

  // skipLibCheck is off: the published types themselves must compile where nobody installed @types/better-sqlite3.
  // The path in the configurations keeps the compiler from finding those of a folder further up.
  test.each(['nodenext', 'bundler'])('compiles under %s resolution, and runs', async (resolution) => {
    await run(bin('tsc'), ['-p', `tsconfig.${resolution}.json`], consumer)
    const output = await run(process.execPath, [join(resolution, 'typed.js'), `${resolution}.db`], consumer)
    expect(JSON.parse(output)).toEqual({
      user: 'ada',
      contents: ['Where is the walrus?'],
      hits: 1,
      count: 1,
      code: 'SESSION_NOT_FOUND',
      created: true,
      wrong: 1,
    })
  })
})

function bin(name: string): string {
  return join(modules, '.bin', name)
}

function installedVersion(name: string): string {
  return JSON.parse(readFileSync(join(modules, name, 'package.json'), 'utf8')).version
}

/** Runs a program. Where it fails, the error carries what it printed. */
async function run(program: string, args: string[], cwd: string): Promise<string> {
  try {
    return (await promisify(execFile)(program, args, { cwd, maxBuffer: 10_000_000 })).stdout
  } catch (error) {
    const { message, stdout } = error as Error & { stdout?: string }
    throw new Error(`${message}\n${stdout ?? ''}`)
  }
}
