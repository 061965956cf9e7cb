import { beforeEach, describe, expect, it } from 'vitest'
import { openStateStore } from '../../src/index.ts'
import { expectSound, sql, start, startSql } from '../support/processes.ts'
import { newPath } from '../support/stores.ts'

let path: string
beforeEach(async () => {
  path = newPath()
  const store = await openStateStore({ path })
  await store.sessions.create({ id: 's', source: 'cli' })
  await store.close()
})

const contents = () =>
  sql<{ content: string }>(path, 'select content from messages order by id').map(({ content }) => content)

/** Lets a process end in one of the ways of `exits.mjs`. */
async function end(way: string) {
  const child = await start('exits.mjs', path, way)
  child.send('go')
  const { code } = await child.ended
  expectSound(path)
  return { code, stderr: child.stderr, lines: child.lines }
}

describe('a process that ends', () => {
  it('by process.exit() in the tick of its appends has stored them', async () => {
    const { code, stderr, lines } = await end('exit')
    expect([code, stderr]).toEqual([0, ''])
    // Not acknowledged to anybody, and there all the same.
    expect(lines).toEqual(['ready', 'exiting'])
    expect(contents()).toEqual(Array.from({ length: 20 }, (_, n) => `queued ${n}`))
  })

  it('in the tick in which it began to close has stored them', async () => {
    const { code, stderr } = await end('closing')
    expect([code, stderr]).toEqual([0, ''])
    expect(contents()).toEqual(['queued'])
  })

  it('because nothing is left to do has stored and acknowledged them, though nobody closed the store', async () => {
    const { code, stderr, lines } = await end('return')
    expect([code, stderr]).toEqual([0, ''])
    expect(lines).toEqual(['ready', 'acknowledged queued', 'exiting'])
    expect(contents()).toEqual(['queued'])
  })

  it('by an uncaught error has stored them', async () => {
    const { code, stderr } = await end('throw')
    expect(code).toBe(1)
    expect(stderr).toContain('a mistake elsewhere')
    expect(contents()).toEqual(['queued', 'in the last tick'])
  })

  it('with a bad append among the queued has stored the others', async () => {
    const { code, stderr } = await end('bad')
    expect([code, stderr]).toEqual([0, ''])
    expect(contents()).toEqual(['before', 'after'])
  })

  it('with a transaction open has stored nothing of it, and the appends behind it', async () => {
    const { code, stderr } = await end('transaction')
    expect([code, stderr]).toEqual([0, ''])
    expect(contents()).toEqual(['queued 0', 'queued 1', 'queued 2'])
  })

  it('with a transaction open on a second store of the file has stored the appends of the first', async () => {
    const { code, stderr } = await end('two')
    expect([code, stderr]).toEqual([0, ''])
    expect(contents()).toEqual(['queued'])
  })

  it('in the tick of an appendMany has stored it', async () => {
    const { code, stderr } = await end('many')
    expect([code, stderr]).toEqual([0, ''])
    expect(contents()).toEqual(['one', 'two'])
  })

  it('in the tick in which a write was acknowledged has stored it once', async () => {
    expect(await end('acknowledged')).toMatchObject({ code: 0, stderr: '' })
    expect(contents()).toEqual(['one', 'two', 'three'])
  })

  it('in the tick in which an appendMany was acknowledged has stored it once', async () => {
    expect(await end('acknowledgedMany')).toMatchObject({ code: 0, stderr: '' })
    expect(contents()).toEqual(['one', 'two'])
  })

  it('in the middle of an appendMany has stored all of it, and the append behind it', async () => {
    const { code, stderr, lines } = await end('halfway')
    expect([code, stderr]).toEqual([0, ''])
    expect(lines).toEqual(['ready', 'exiting'])
    expect(contents()).toEqual([...Array.from({ length: 2_000 }, (_, n) => `many ${n}`), 'queued'])
  })

  it('while another one holds the lock waits for it and has stored them', async () => {
    const child = await start('exits.mjs', path, 'locked')
    const other = await startSql(path)
    await other.ask('begin immediate')
    await child.ask('go', 'exiting')
    await other.ask('commit')
    expect((await child.ended).code).toBe(0)
    expect(child.stderr).toBe('')
    expect(contents()).toEqual(['queued'])
  })
})
