import { execFileSync } from 'node:child_process'
import { existsSync, mkdirSync, readdirSync, symlinkSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { CannotOpenError, openStateStore } from '../../src/index.ts'
import { eventsOf, newFolder, newPath, openForTest } from '../support/stores.ts'

/** Opening a path is refused, to write and to read, without leaving anything. */
async function expectRefused(path: string, words: string): Promise<void> {
  const error = await openStateStore({ path }).catch((error: unknown) => error)
  expect(error).toBeInstanceOf(CannotOpenError)
  expect((error as Error).message).toContain(words)
  await expect(openStateStore({ path, readonly: true })).rejects.toThrow(CannotOpenError)
}

// Windows has other limits, and lets few users make links.
describe.skipIf(process.platform === 'win32')('a path is refused with what is wrong with it:', () => {
  test('a folder', async () => {
    const path = newFolder()
    await expectRefused(path, `not a file but a folder: give the path of a state.db, for example '${path}/`)
  })

  test('a pipe', async () => {
    const path = newPath()
    execFileSync('mkfifo', [path])
    await expectRefused(path, 'not a file but a device, a pipe or a socket')
  })

  test('a path through a file', async () => {
    const path = newPath()
    writeFileSync(path, 'Dear diary,\n')
    await expectRefused(join(path, 'state.db'), 'a part of the path is a file')
  })

  test('a name that is too long', async () => {
    await expectRefused(join(newFolder(), 'x'.repeat(256)), 'longer than the file system allows')
  })

  test('a name without room for the endings of the files beside it', async () => {
    const folder = newFolder()
    await expectRefused(join(folder, 'x'.repeat(248)), 'its name is longer than 247 bytes')
    expect(readdirSync(folder)).toEqual([])
    const store = await openForTest({ path: join(folder, 'x'.repeat(247)) })
    expect(await store.sessions.count()).toBe(0)
  })

  test('a path that is too long for SQLite', async () => {
    const folder = join(newFolder(), 'y'.repeat(200), 'z'.repeat(150))
    const name = 'x'.repeat(504 - folder.length - 1)
    await expectRefused(join(folder, `${name}x`), 'longer than the 504 bytes that SQLite allows')
    expect(existsSync(dirname(folder))).toBe(false)
    const store = await openForTest({ path: join(folder, name) })
    expect(await store.sessions.count()).toBe(0)
  })

  test.each(['the file', 'its folder'])('a symbolic link to nothing: %s', async (which) => {
    const folder = newFolder()
    const target = join(folder, 'gone')
    const link = join(folder, 'link')
    symlinkSync(target, link)
    await expectRefused(
      which === 'the file' ? link : join(link, 'state.db'),
      `'${link}' is a symbolic link to '${target}', where nothing is`,
    )
    expect(readdirSync(folder)).toEqual(['link'])
  })

  test('symbolic links that lead round in a circle', async () => {
    const folder = newFolder()
    symlinkSync(join(folder, 'b'), join(folder, 'a'))
    symlinkSync(join(folder, 'a'), join(folder, 'b'))
    await expectRefused(join(folder, 'a'), 'lead round in a circle')
  })

  test('a folder where the log should be', async () => {
    const path = newPath()
    await (await openForTest({ path })).close()
    mkdirSync(`${path}-wal`)
    await expectRefused(path, `'${path}-wal' is not a file`)
  })
})

test.skipIf(process.platform === 'win32')(
  'a file behind a symbolic link is written, and its log is not missed',
  async () => {
    const target = newPath()
    await (await openForTest({ path: target })).close()
    const path = join(newFolder(), 'link.db')
    symlinkSync(target, path)
    const store = await openForTest({ path })
    await store.sessions.create({ id: 's', source: 'cli' })
    await store.messages.append('s', { role: 'user', content: 'here' })
    expect(readdirSync(dirname(path))).toEqual(['link.db'])
    await store.close()
    expect(eventsOf(store, 'log-lost')).toEqual([])
    expect(await (await openForTest({ path: target })).messages.count('s')).toBe(1)
  },
)
