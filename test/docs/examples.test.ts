import { execFile } from 'node:child_process'
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import ts from 'typescript'
import { afterAll, describe, expect, it } from 'vitest'

// Inside the package, so that `hermes-state` resolves to what it exports: the built package.
const folder = join(import.meta.dirname, '../../.cache/examples')
rmSync(folder, { recursive: true, force: true })
mkdirSync(folder, { recursive: true })
const workplace = mkdtempSync(join(tmpdir(), 'hermes-state-examples-'))
afterAll(() => rmSync(workplace, { recursive: true }))

const root = join(import.meta.dirname, '../..')
const pages = [
  'README.md',
  ...readdirSync(join(root, 'docs'))
    .filter((name) => name.endsWith('.md'))
    .map((name) => `docs/${name}`),
]
const examples = pages.flatMap((page) =>
  [...readFileSync(join(root, page), 'utf8').matchAll(/^```ts\n(.*?)^```/gms)].map(
    ([, code = ''], index) => ({
      name: `${page} example ${index + 1}`,
      file: join(folder, `${page.replaceAll(/\W/g, '-')}-${index + 1}.ts`),
      code,
    }),
  ),
)

for (const { file, code } of examples) writeFileSync(file, complete(code))

/** An example that does not open a store is given one. */
function complete(code: string): string {
  if (code.includes('await using store')) return code
  const imports = code.includes('openStateStore(')
    ? "import { openStateStore } from 'hermes-state'\n"
    : "import { openStateStore } from 'hermes-state'\nawait using store = await openStateStore({ path: ':memory:' })\n"
  return imports + code
}

describe('the examples of the documentation', () => {
  it('compile', () => {
    const program = ts.createProgram(
      examples.map(({ file }) => file),
      {
        target: ts.ScriptTarget.ES2023,
        module: ts.ModuleKind.NodeNext,
        lib: ['lib.es2024.d.ts', 'lib.esnext.disposable.d.ts'],
        types: ['node'],
        strict: true,
        skipLibCheck: true,
        noEmit: true,
      },
    )
    const problems = ts
      .getPreEmitDiagnostics(program)
      .map(
        ({ file, messageText }) => `${file?.fileName}: ${ts.flattenDiagnosticMessageText(messageText, '\n')}`,
      )
    expect(problems).toEqual([])
  })

  it.each(examples)('$name prints what it says', async ({ file, code }) => {
    const expected = [...code.matchAll(/^.*console\.log\(.*\) \/\/ (.*?)(?: \(.*)?$/gm)].map(
      ([, output]) => output,
    )
    const { stdout, stderr } = await promisify(execFile)(
      process.execPath,
      ['--import', import.meta.resolve('tsx'), file],
      { cwd: workplace },
    )
    expect(stderr).toBe('')
    const printed = stdout.split('\n').filter(Boolean)
    expect(printed.filter((line) => expected.includes(line))).toEqual(expected)
  })
})
