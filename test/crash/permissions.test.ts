import { chmodSync, chownSync, copyFileSync, existsSync, mkdirSync, readdirSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { expectSound, start } from '../support/processes.ts'
import { newFolder, openForTest } from '../support/stores.ts'

/** A user whom permissions hold back, and a folder of that user's. */
async function unprivileged() {
  const folder = newFolder()
  give(folder)
  const child = await start('unprivileged.mjs')
  child.send('go')
  const open = async (path: string, readonly = false) =>
    JSON.parse(await child.ask(JSON.stringify({ path, readonly }), 'done'))
  return { folder, open }
}

const isRoot = process.getuid?.() === 0

function give(file: string): void {
  if (isRoot) chownSync(file, 65534, 65534)
}

/** A store with one message; `live` as a process leaves it that died: the message is in its log. */
async function writeStore(folder: string, live = false): Promise<string> {
  const own = newFolder()
  const path = join(own, 'state.db')
  const store = await openForTest({ path })
  await store.sessions.create({ id: 's', source: 'cli' })
  await store.messages.append('s', { role: 'user', content: 'first' })
  if (!live) await store.close()
  mkdirSync(join(folder, 'deep'))
  for (const name of live ? ['state.db', 'state.db-wal'] : ['state.db']) {
    const copy = join(folder, 'deep', name)
    copyFileSync(join(own, name), copy)
    chmodSync(copy, 0o600)
    give(copy)
  }
  give(join(folder, 'deep'))
  return join(folder, 'deep', 'state.db')
}

// Windows has no permission bits; root, whom they do not hold back, becomes somebody else.
describe.skipIf(process.platform === 'win32')('without permission', () => {
  test('a file that cannot be written is refused, can be read, and works again when it can', async () => {
    const { folder, open } = await unprivileged()
    const path = await writeStore(folder)
    chmodSync(path, 0o400)
    expect(await open(path)).toEqual({
      name: 'ReadonlyStoreError',
      message: expect.stringContaining(`'${path}' cannot be written by this user: change its owner`),
    })
    expect(await open(path, true)).toEqual({ messages: 1 })
    chmodSync(path, 0o600)
    // SQLite made files beside it for that reader, with its mode then.
    expect(await open(path)).toMatchObject({ message: expect.stringContaining(`'${path}-`) })
    for (const end of ['-wal', '-shm']) chmodSync(`${path}${end}`, 0o600)
    expect(await open(path)).toEqual({ messages: 2 })
    expectSound(path)
  })

  test.skipIf(!isRoot)('a log of somebody else is named, and kept', async () => {
    const { folder, open } = await unprivileged()
    const path = await writeStore(folder, true)
    chownSync(`${path}-wal`, 0, 0)
    chmodSync(`${path}-wal`, 0o644)
    expect(await open(path)).toEqual({
      name: 'ReadonlyStoreError',
      message: expect.stringContaining(`'${path}-wal' cannot be written by this user`),
    })
    give(`${path}-wal`)
    expect(await open(path)).toEqual({ messages: 2 })
    expectSound(path)
  })

  test.each([
    ['closed cleanly', false],
    ['with messages in its log', true],
  ])('a file %s in a read-only folder can be used as a copy, as the error says', async (_, live) => {
    const { folder, open } = await unprivileged()
    const path = await writeStore(folder, live)
    const files = readdirSync(dirname(path))
    chmodSync(dirname(path), 0o500)
    for (const readonly of [false, true]) {
      const { name, message } = await open(path, readonly)
      expect(name).toBe('ReadonlyStoreError')
      expect(message).toContain(`'${dirname(path)}' cannot be written: copy the file, and the -wal file`)
    }
    expect(readdirSync(dirname(path))).toEqual(files)

    const copy = join(folder, 'copy')
    mkdirSync(copy)
    give(copy)
    for (const name of files) {
      copyFileSync(join(dirname(path), name), join(copy, name))
      give(join(copy, name))
    }
    expect(await open(join(copy, basename(path)))).toEqual({ messages: 2 })
    chmodSync(dirname(path), 0o700)
    expect(await open(path)).toEqual({ messages: 2 })
    expectSound(path)
  })

  test('what cannot be read is named: the file, its log, its folder', async () => {
    const { folder, open } = await unprivileged()
    const path = await writeStore(folder, true)
    for (const file of [path, `${path}-wal`]) {
      chmodSync(file, 0o200)
      expect(await open(path)).toEqual({
        name: 'CannotOpenError',
        message: expect.stringContaining(`this user may not read '${file}'`),
      })
      chmodSync(file, 0o600)
    }
    chmodSync(dirname(path), 0o600)
    expect(await open(path)).toEqual({
      name: 'CannotOpenError',
      message: expect.stringContaining('this user may not enter one of its folders'),
    })
    chmodSync(dirname(path), 0o700)
    expect(await open(path)).toEqual({ messages: 2 })
  })

  test('a new file in a folder that cannot be written leaves nothing, and names the folder', async () => {
    const { folder, open } = await unprivileged()
    chmodSync(folder, 0o500)
    const path = join(folder, 'new', 'state.db')
    expect(await open(path)).toEqual({
      name: 'CannotOpenError',
      message: `'${path}' cannot be created: this user may not write in '${folder}'.`,
    })
    expect(existsSync(join(folder, 'new'))).toBe(false)
  })
})
