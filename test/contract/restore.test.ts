import {
  existsSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from 'node:fs'
import { dirname, join } from 'node:path'
import { beforeEach, describe, expect, test } from 'vitest'
import {
  CannotOpenError,
  DamagedFileError,
  FileInUseError,
  NotAStateFileError,
  openStateStore,
  quarantineStateFile,
  restoreStateFile,
  TargetExistsError,
} from '../../src/index.ts'
import { damage, overwriteRoot } from '../support/index-damage.ts'
import { NEWER, newerFile } from '../support/newer-file.ts'
import { expectSound, sql, startSql, writeToLog } from '../support/processes.ts'
import { newFolder, newPath, openForTest, writeVersion1 } from '../support/stores.ts'

const contents = (path: string) =>
  sql<{ content: string }>(path, 'select content from messages').map((row) => row.content)
const filesBeside = (path: string) => readdirSync(dirname(path))

/** A store of one message, and a backup of it. */
let path: string
let backup: string

beforeEach(async () => {
  path = newPath()
  backup = join(newFolder(), 'backup.db')
  const store = await openStateStore({ path })
  await store.sessions.create({ id: 's', source: 'cli' })
  await store.messages.append('s', { role: 'user', content: 'backed up' })
  await store.maintenance.backup(backup)
  await store.close()
})

test('a backup is put where nothing is, for its owner alone', async () => {
  const target = newPath()
  const before = readFileSync(backup)
  expect(await restoreStateFile(backup, target)).toEqual({
    path: target,
    bytes: statSync(backup).size,
    messages: 1,
    sessions: 1,
    quarantined: null,
  })
  expect(filesBeside(target)).toEqual(['state.db'])
  if (process.platform !== 'win32') expect(statSync(target).mode & 0o777).toBe(0o600)
  const store = await openForTest({ path: target })
  expect(store.info).toMatchObject({ migrations: [], mended: [] })
  expect(await store.search.messages('backed')).toHaveLength(1)
  await store.close()
  expectSound(target)
  expect(readFileSync(backup).equals(before)).toBe(true)
  expect(filesBeside(backup)).toEqual(['backup.db'])
})

test('what is in the log of the file that it replaces does not come back, and is kept', async () => {
  await writeToLog(path, 'after the backup')
  const { quarantined } = await restoreStateFile(backup, path, { replace: true })
  expect(existsSync(`${path}-wal`)).toBe(false)
  expect(contents(path)).toEqual(['backed up'])
  expectSound(path)
  expect(contents(quarantined!)).toEqual(['backed up', 'after the backup'])
  expectSound(quarantined!)
})

test('what is in the log of the backup is restored', async () => {
  await writeToLog(backup, 'in the log of the backup')
  const log = readFileSync(`${backup}-wal`)
  await restoreStateFile(backup, path, { replace: true })
  expect(contents(path)).toEqual(['backed up', 'in the log of the backup'])
  expectSound(path)
  expect(readFileSync(`${backup}-wal`).equals(log)).toBe(true)
})

test('a store that is open here can be the backup', async () => {
  const store = await openForTest({ path: backup })
  await store.messages.append('s', { role: 'user', content: 'newer' })
  await restoreStateFile(backup, path, { replace: true })
  expect(contents(path)).toEqual(['backed up', 'newer'])
  await store.messages.append('s', { role: 'user', content: 'newest' })
  await store.close()
  expect(contents(backup)).toEqual(['backed up', 'newer', 'newest'])
})

test('what was replaced can be had back', async () => {
  await writeToLog(path, 'after the backup')
  const { quarantined } = await restoreStateFile(backup, path, { replace: true })
  await restoreStateFile(quarantined!, path, { replace: true })
  expect(contents(path)).toEqual(['backed up', 'after the backup'])
})

test('a log whose file is gone is no hindrance, and is kept', async () => {
  await writeToLog(path, 'after the backup')
  rmSync(path)
  await expect(restoreStateFile(backup, path)).rejects.toMatchObject({
    code: 'TARGET_EXISTS',
    path: `${path}-wal`,
  })
  const { quarantined } = await restoreStateFile(backup, path, { replace: true })
  expect(existsSync(`${quarantined}-wal`)).toBe(true)
  expect(contents(path)).toEqual(['backed up'])
  expectSound(path)
})

test.each<[string, (file: string) => void]>([
  ['text', (file) => writeFileSync(file, 'not a database')],
  ['zeros', (file) => writeFileSync(file, Buffer.alloc(8192))],
  ['0 bytes', (file) => truncateSync(file)],
  ['cut short', (file) => truncateSync(file, 20_000)],
])('a file that is %s is replaced, with its bytes kept', async (_, spoil) => {
  spoil(path)
  const before = readFileSync(path)
  const { quarantined } = await restoreStateFile(backup, path, { replace: true })
  expect(readFileSync(quarantined!).equals(before)).toBe(true)
  expect(contents(path)).toEqual(['backed up'])
})

test('the file is replaced that a symbolic link leads to', async () => {
  const link = join(newFolder(), 'link.db')
  symlinkSync(path, link)
  expect(await restoreStateFile(backup, link, { replace: true })).toMatchObject({ path })
  expect(filesBeside(link)).toEqual(['link.db'])
  await quarantineStateFile(link)
  await expect(restoreStateFile(backup, link)).rejects.toThrow(/is a symbolic link to .*, where nothing is/)
})

test('files of the first schema and of later ones are restored as they are', async () => {
  const first = newPath()
  writeVersion1(first)
  expect(await restoreStateFile(first, newPath())).toMatchObject({ messages: 5, sessions: 3 })
  for (const schema of NEWER) {
    const target = newPath()
    await restoreStateFile(newerFile(schema), target)
    const store = await openForTest({ path: target })
    expect(store.info.schemaVersion).toBe(schema)
  }
})

test('a damaged index is no reason against a backup', async () => {
  damage(backup, 'messages_fts', 'zeroed segments')
  await restoreStateFile(backup, path, { replace: true })
  const store = await openForTest({ path })
  expect(await store.search.messages('backed')).toHaveLength(1)
})

describe('nothing is changed', () => {
  async function expectRefused(
    file: string,
    error: new (...args: never[]) => Error,
    replace = true,
  ): Promise<void> {
    const before = readFileSync(path)
    const files = filesBeside(path)
    await expect(restoreStateFile(file, path, { replace })).rejects.toThrow(error)
    expect(filesBeside(path)).toEqual(files)
    expect(readFileSync(path).equals(before)).toBe(true)
  }

  test('where a file is, unless it is to be replaced', () => expectRefused(backup, TargetExistsError, false))

  test('for what is no state file', async () => {
    const other = newPath()
    await expectRefused(other, CannotOpenError)
    writeFileSync(other, '')
    await expectRefused(other, NotAStateFileError)
    writeFileSync(other, 'a text that is no database')
    await expectRefused(other, NotAStateFileError)
    rmSync(other)
    sql(other, 'create table recipes (name)')
    await expectRefused(other, NotAStateFileError)
    await expectRefused(dirname(other), CannotOpenError)
  })

  test('for a backup that is damaged', async () => {
    overwriteRoot(backup, 'idx_sessions_parent')
    await expectRefused(backup, DamagedFileError)
    truncateSync(backup, 20_000)
    await expectRefused(backup, DamagedFileError)
    await expect(restoreStateFile(backup, path, { replace: true })).rejects.toThrow(`'${backup}'`)
  })

  test('while a store of this process has it open', async () => {
    const store = await openForTest({ path })
    await expectRefused(backup, FileInUseError)
    await store.messages.append('s', { role: 'user', content: 'goes on' })
    expect(await store.messages.count()).toBe(2)
  })

  test('while another process has it open, though it does nothing', async () => {
    const child = await startSql(path)
    await child.ask('select 1 from messages')
    await expectRefused(backup, FileInUseError)
    await child.ask("update sessions set title = 'goes on'")
    await child.kill()
    expect(sql(path, 'select title from sessions')).toEqual([{ title: 'goes on' }])
  })

  test('for bad arguments', async () => {
    for (const bad of ['', ':memory:', 'a\0b', undefined, 7]) {
      await expect(restoreStateFile(bad as string, path)).rejects.toThrow(/^backup must be/)
      await expect(restoreStateFile(backup, bad as string)).rejects.toThrow(/^path must be/)
    }
    const options = { replace: 'yes' as never }
    await expect(restoreStateFile(backup, path, options)).rejects.toThrow(/^replace must be/)
    await expect(restoreStateFile(path, path, { replace: true })).rejects.toThrow(/the same file/)
    const nowhere = join(newFolder(), 'missing', 'state.db')
    await expect(restoreStateFile(backup, nowhere)).rejects.toThrow(CannotOpenError)
  })
})
