import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'

/**
 * Runs a script of this folder in several processes that begin their work at the same moment: when all of them
 * have said `ready`. Returns what each printed after that.
 */
export async function together(script: string, argumentLists: string[][]): Promise<string[]> {
  const children = argumentLists.map((args) =>
    spawn(process.execPath, [join(import.meta.dirname, script), ...args], {
      stdio: ['pipe', 'pipe', 'pipe'],
    }),
  )
  const errors = children.map((child) => text(child.stderr))
  const ends = children.map((child) => once(child, 'close') as Promise<[number | null, string | null]>)
  await Promise.all(
    children.map((child, index) =>
      Promise.race([once(child.stdout, 'data'), failed(ends[index]!, errors[index]!)]),
    ),
  )
  const outputs = children.map((child) => text(child.stdout))
  for (const child of children) child.stdin.end('go')
  const codes = await Promise.all(ends)
  for (const [index, [code]] of codes.entries())
    if (code !== 0) throw new Error(`Process ${index} exited with ${code}: ${await errors[index]}`)
  return Promise.all(outputs)
}

async function failed(end: Promise<[number | null, string | null]>, errors: Promise<string>): Promise<never> {
  const [code] = await end
  throw new Error(`A process exited with ${code} before it was ready: ${await errors}`)
}
