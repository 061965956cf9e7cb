import { type ChildProcessWithoutNullStreams, spawn } from 'node:child_process'
import { join } from 'node:path'
import { createInterface } from 'node:readline'

/**
 * A program of `children/` in a process of its own. It is spoken to in lines: it says `ready`, is sent `go`,
 * and then whatever the two agree on.
 */
export class Child {
  readonly #name: string
  readonly #process: ChildProcessWithoutNullStreams
  readonly #unread: string[] = []
  #stderr = ''
  #over = false
  #wake = () => {}

  /** Every line it has said. */
  readonly lines: string[] = []

  /** Settles when the process has ended and everything it said has arrived. */
  readonly ended: Promise<{ code: number | null; signal: NodeJS.Signals | null }>

  constructor(name: string, args: string[]) {
    this.#name = name
    const program = join(import.meta.dirname, 'children', name)
    this.#process = spawn(name.endsWith('.py') ? 'python3' : process.execPath, [program, ...args])
    // Writing to a child that has just been killed is no failure of the test.
    this.#process.stdin.on('error', () => {})
    this.#process.stderr.setEncoding('utf8').on('data', (text) => {
      this.#stderr += text
    })
    createInterface({ input: this.#process.stdout }).on('line', (line) => {
      this.lines.push(line)
      this.#unread.push(line)
      this.#wake()
    })
    this.ended = new Promise((resolve) => {
      this.#process.on('close', (code, signal) => {
        this.#over = true
        this.#wake()
        resolve({ code, signal })
      })
    })
  }

  /** What it wrote to its error stream. */
  get stderr(): string {
    return this.#stderr
  }

  send(line: string): void {
    this.#process.stdin.write(`${line}\n`)
  }

  /**
   * Waits for the next line that begins with a word, passing over others, and returns what follows the word.
   * Fails when the child says `error` or ends.
   */
  async hear(word: string): Promise<string> {
    for (;;) {
      for (let line = this.#unread.shift(); line !== undefined; line = this.#unread.shift()) {
        if (line === word || line.startsWith(`${word} `)) return line.slice(word.length + 1)
        if (line.startsWith('error ')) throw new Error(`${this.#name}: ${line}`)
      }
      if (this.#over) throw new Error(`${this.#name} ended without saying '${word}':\n${this.#stderr}`)
      await new Promise<void>((resolve) => {
        this.#wake = resolve
      })
    }
  }

  /** Sends a line and waits for the answer to it. */
  ask(line: string, word = 'ok'): Promise<string> {
    this.send(line)
    return this.hear(word)
  }

  /** Ends it at once, wherever it is. */
  async kill(): Promise<void> {
    this.#process.kill('SIGKILL')
    await this.ended
  }
}
