import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from 'node:fs'
import { basename, dirname, join } from 'node:path'
import Database from 'better-sqlite3'
import { describe, expect, test } from 'vitest'
import { CannotOpenError, FileInUseError, openStateStore, quarantineStateFile } from '../../src/index.ts'
import { expectSound, sql, start, startSql, writeToLog } from '../support/processes.ts'
import { newFolder, newPath, openForTest } from '../support/stores.ts'

/** A store of one message that nobody has open. */
async function closedStore(): Promise<string> {
  const path = newPath()
  const store = await openStateStore({ path })
  await store.sessions.create({ id: 's', source: 'cli' })
  await store.messages.append('s', { role: 'user', content: 'in the file' })
  await store.close()
  return path
}

/** The same, with a second message that is only in the log: its process was killed. */
async function hotStore(): Promise<string> {
  const path = await closedStore()
  await writeToLog(path, 'in the log')
  return path
}

/** All bytes in a folder, by the ends of their names. */
function bytesOf(path: string): Record<string, string> {
  const names = readdirSync(dirname(path)).filter((name) => name.startsWith(basename(path)))
  return Object.fromEntries(
    names.map((name) => [
      name.slice(basename(path).length),
      readFileSync(join(dirname(path), name), 'base64'),
    ]),
  )
}

const contents = (path: string) =>
  sql<{ content: string }>(path, 'select content from messages').map((row) => row.content)

test('a file gets a name that says what it is and since when', async () => {
  const path = await closedStore()
  const before = bytesOf(path)
  const aside = await quarantineStateFile(path)
  expect(aside.slice(path.length)).toMatch(/^\.quarantine-\d{8}T\d{6}Z-[0-9a-f]{8}$/)
  expect(readdirSync(dirname(path))).toEqual([basename(aside)])
  expect(bytesOf(aside)).toEqual(before)
  expect(statSync(aside).nlink).toBe(1)
  expect(contents(aside)).toEqual(['in the file'])
})

test('its log goes with it, unread and whole', async () => {
  const path = await hotStore()
  const before = bytesOf(path)
  const aside = await quarantineStateFile(path)
  expect(Object.keys(before).sort()).toEqual(['', '-shm', '-wal'])
  expect(bytesOf(aside)).toEqual(before)
  expect(readdirSync(dirname(path)).every((name) => name.startsWith(basename(aside)))).toBe(true)
  expect(contents(aside)).toEqual(['in the file', 'in the log'])
  expectSound(aside)
  // What is made at the old place knows nothing of it.
  const store = await openForTest({ path })
  expect(await store.messages.count()).toBe(0)
})

describe('a file is not touched', () => {
  const damages: [string, (path: string) => void][] = [
    ['text', (path) => writeFileSync(path, 'not a database, but a text of somebody')],
    ['zeros', (path) => writeFileSync(path, Buffer.alloc(8192))],
    ['0 bytes', (path) => truncateSync(path)],
    ['cut short', (path) => truncateSync(path, 20_000)],
  ]
  test.each(damages)('that is %s, and neither is its log', async (_, damage) => {
    const path = await hotStore()
    damage(path)
    const before = bytesOf(path)
    const aside = await quarantineStateFile(path)
    expect(bytesOf(aside)).toEqual(before)
    expect(existsSync(path) || existsSync(`${path}-wal`)).toBe(false)
  })

  test.each(damages)('that is %s and has no log', async (_, damage) => {
    const path = await closedStore()
    damage(path)
    const before = bytesOf(path)
    const aside = await quarantineStateFile(path)
    expect(bytesOf(aside)).toEqual(before)
    expect(readdirSync(dirname(path))).toEqual([basename(aside)])
  })

  test('whose transaction is still to be rolled back', async () => {
    const path = await closedStore()
    sql(path, 'pragma journal_mode = delete')
    const writer = await start('hot-journal.mjs', path)
    await writer.ask('go', 'writing')
    await expect(quarantineStateFile(path)).rejects.toThrow(FileInUseError)
    await writer.kill()
    const before = bytesOf(path)
    const aside = await quarantineStateFile(path)
    expect(Object.keys(before).sort()).toEqual(['', '-journal'])
    expect(bytesOf(aside)).toEqual(before)
    expect(contents(aside)).toEqual(['in the file'])
  })
})

test('a log whose file is gone is moved aside too', async () => {
  const path = await hotStore()
  const log = readFileSync(`${path}-wal`)
  rmSync(path)
  const aside = await quarantineStateFile(path)
  expect(existsSync(aside)).toBe(false)
  expect(readFileSync(`${aside}-wal`).equals(log)).toBe(true)
  expect(existsSync(`${path}-wal`)).toBe(false)
})

test('many of one name stay beside each other', async () => {
  const path = newPath()
  for (const text of ['first', 'second', 'third']) {
    writeFileSync(path, text)
    await quarantineStateFile(path)
  }
  const found = readdirSync(dirname(path)).map((name) => readFileSync(join(dirname(path), name), 'utf8'))
  expect(found.sort()).toEqual(['first', 'second', 'third'])
})

test('the file moves that a symbolic link leads to, and the link stays', async () => {
  const path = await closedStore()
  const link = join(newFolder(), 'link.db')
  symlinkSync(path, link)
  const aside = await quarantineStateFile(link)
  expect(dirname(aside)).toBe(dirname(path))
  expect(contents(aside)).toEqual(['in the file'])
})

describe('an open file is refused', () => {
  async function expectRefused(path: string, here: boolean): Promise<void> {
    const before = readdirSync(dirname(path))
    const error = await quarantineStateFile(path).catch((reason) => reason)
    expect(error).toBeInstanceOf(FileInUseError)
    expect(error).toMatchObject({ code: 'FILE_IN_USE', path, here })
    expect(readdirSync(dirname(path))).toEqual(before)
    expect(statSync(path).nlink).toBe(1)
  }

  test.each(['wal', 'delete'] as const)('by a store of this process, in mode %s', async (journalMode) => {
    const path = await closedStore()
    const opening = openForTest({ path, journalMode })
    await expectRefused(path, true)
    const store = await opening
    await expectRefused(path, true)
    const closing = store.close()
    await expectRefused(path, true)
    await closing
    await quarantineStateFile(path)
  })

  test('by one that only reads', async () => {
    const path = await closedStore()
    await openForTest({ path, readonly: true })
    await expectRefused(path, true)
  })

  test('by another connection of this process', async () => {
    const path = await closedStore()
    const db = new Database(path)
    db.prepare('select 1 from messages').get()
    await expectRefused(path, false)
    db.prepare('delete from messages').run()
    db.close()
    expect(contents(await quarantineStateFile(path))).toEqual([])
  })

  test.each([
    ['as it is', () => {}],
    ['though it was overwritten', (path: string) => writeFileSync(path, Buffer.alloc(8192))],
    ['though it was cut short', (path: string) => truncateSync(path, 20_000)],
  ])('by another process that does nothing at the moment, %s', async (_, damage) => {
    const path = await closedStore()
    const child = await startSql(path)
    await child.ask("update sessions set title = 'in the log'")
    damage(path)
    await expectRefused(path, false)
    await child.kill()
    await quarantineStateFile(path)
  })

  test('by another process with nothing in its log, which then writes on', async () => {
    const path = await closedStore()
    const child = await startSql(path)
    await child.ask('select 1 from messages')
    await expectRefused(path, false)
    await child.ask("update sessions set title = 'written on'")
    await expectRefused(path, false)
    await child.kill()
    expect(sql(path, 'select title from sessions')).toEqual([{ title: 'written on' }])
    expectSound(path)
  })
})

test('what is no file is refused', async () => {
  const folder = newFolder()
  await expect(quarantineStateFile(join(folder, 'nothing.db'))).rejects.toThrow(CannotOpenError)
  mkdirSync(join(folder, 'folder'))
  await expect(quarantineStateFile(join(folder, 'folder'))).rejects.toThrow(CannotOpenError)
  for (const path of ['', ':memory:', 'a\0b', undefined, 7])
    await expect(quarantineStateFile(path as string)).rejects.toThrow(TypeError)
  expect(readdirSync(folder)).toEqual(['folder'])
})
