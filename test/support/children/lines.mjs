// How a child process speaks with the test that started it: in lines.
import { writeSync } from 'node:fs'
import { createInterface } from 'node:readline'

const heard = []
let wake = () => {}

createInterface({ input: process.stdin })
  .on('line', (line) => {
    heard.push(line)
    wake()
  })
  // The test is gone.
  .on('close', () => process.exit(1))

/** Synchronous: what was said before a SIGKILL has been said. */
export function say(line) {
  writeSync(1, `${line}\n`)
}

export async function hear() {
  while (heard.length === 0)
    await new Promise((resolve) => {
      wake = resolve
    })
  return heard.shift()
}

/** The start barrier: says that everything is loaded, and waits for the others. */
export async function ready() {
  say('ready')
  await hear()
}

/** Lets the process end by itself, though the test could still say something. */
export function hangUp() {
  process.stdin.unref()
}
