import { linkSync, realpathSync, renameSync, symlinkSync } from 'node:fs'
import { dirname, join, relative } from 'node:path'
import { describe, expect, test } from 'vitest'
import {
  OptionConflictError,
  openStateStore,
  StateStoreClosedError,
  type StateStoreEvent,
  TransactionMisuseError,
} from '../../src/index.ts'
import { gate } from '../support/processes.ts'
import { newFolder, newPath, openForTest, writeVersion1 } from '../support/stores.ts'

const user = (content: string) => ({ role: 'user', content })

/** The counter of the connection: the same for two stores, and changed by both, only where they share it. */
async function totalChanges(store: Awaited<ReturnType<typeof openForTest>>): Promise<unknown> {
  return store.db.selectNoFrom((eb) => eb.fn<number>('total_changes').as('count')).executeTakeFirstOrThrow()
}

describe('two stores of one file share one connection', () => {
  test.each<[name: string, alias: (path: string) => string]>([
    ['by the same path', (path) => path],
    ['by a relative path', (path) => relative(process.cwd(), path)],
    [
      'by a symlink',
      (path) => {
        symlinkSync(path, `${path}.link`)
        return `${path}.link`
      },
    ],
    [
      'by a symlink to the folder',
      (path) => {
        const link = join(newFolder(), 'link')
        symlinkSync(dirname(path), link)
        return join(link, 'state.db')
      },
    ],
    [
      'by a hard link',
      (path) => {
        linkSync(path, `${path}.hard`)
        return `${path}.hard`
      },
    ],
  ])('%s', async (_, alias) => {
    const path = newPath()
    const one = await openForTest({ path })
    const two = await openForTest({ path: alias(path) })
    await one.sessions.create({ id: 's', source: 'cli' })
    await two.messages.append('s', user('hello'))
    expect(await totalChanges(one)).toEqual(await totalChanges(two))
    expect(await one.messages.count('s')).toBe(1)
  })

  test('that is opened by both at once, and new', async () => {
    const folder = newFolder()
    symlinkSync(folder, `${folder}/self`)
    const [one, two] = await Promise.all([
      openForTest({ path: join(folder, 'state.db') }),
      openForTest({ path: join(folder, 'self', 'state.db') }),
    ])
    expect(one.info.migrations.length).toBeGreaterThan(0)
    expect(two.info).toEqual({ ...one.info, migrations: [], mended: [] })
    await one.sessions.create({ id: 's', source: 'cli' })
    expect(await totalChanges(one)).toEqual(await totalChanges(two))
  })

  test('that is migrated for the first, and the second waits', async () => {
    const path = newPath()
    writeVersion1(path)
    const [one, two] = await Promise.all([openForTest({ path }), openForTest({ path, migrate: false })])
    expect(one.info.migrations.length).toBeGreaterThan(0)
    expect(two.info.migrations).toEqual([])
  })

  test('unless each is in memory', async () => {
    const one = await openForTest({ path: ':memory:' })
    const two = await openForTest({ path: ':memory:' })
    await one.sessions.create({ id: 's', source: 'cli' })
    expect(await two.sessions.get('s')).toBeNull()
  })

  test('unless another file is there now', async () => {
    const path = newPath()
    const one = await openForTest({ path })
    await one.sessions.create({ id: 's', source: 'cli' })
    renameSync(path, `${path}.old`)
    for (const suffix of ['-wal', '-shm']) renameSync(path + suffix, `${path}.old${suffix}`)
    const two = await openForTest({ path })
    expect(await two.sessions.get('s')).toBeNull()
    expect(await one.sessions.get('s')).not.toBeNull()
  })
})

describe('the last store that is closed closes the file', () => {
  test('the first one only stops taking calls, once its writes are done', async () => {
    const path = newPath()
    const one = await openForTest({ path })
    const two = await openForTest({ path })
    await one.sessions.create({ id: 's', source: 'cli' })
    const append = one.messages.append('s', user('in line'))
    await one.close()
    expect(await two.messages.count('s')).toBe(1)
    expect(await append).toBe(1)
    for (const call of [
      one.messages.append('s', user('late')),
      one.messages.count('s'),
      one.transaction(async () => {}),
      one.db.selectFrom('sessions').select('id').execute(),
      one.db.transaction().execute(async () => {}),
    ])
      await expect(call).rejects.toThrow(StateStoreClosedError)
    await one.close()
    await two.messages.append('s', user('on'))
    expect(await two.messages.count('s')).toBe(2)
  })

  test('and it can be opened anew, while it is closed too', async () => {
    const path = newPath()
    const one = await openForTest({ path })
    await one.sessions.create({ id: 's', source: 'cli' })
    const append = one.messages.append('s', user('in line'))
    const closing = one.close()
    const two = await openForTest({ path, synchronous: 'normal' })
    await closing
    expect(await append).toBe(1)
    expect(await two.messages.count('s')).toBe(1)
  })

  test('a transaction that was begun before is finished', async () => {
    const path = newPath()
    const one = await openForTest({ path })
    const two = await openForTest({ path })
    const { opened, open } = gate()
    const transaction = one.transaction(async (tx) => {
      await opened
      await tx.sessions.create({ id: 's', source: 'cli' })
    })
    const closing = one.close()
    open()
    await transaction
    await closing
    expect(await two.sessions.get('s')).not.toBeNull()
  })
})

describe('options', () => {
  test.each([
    { given: { readonly: true }, option: 'readonly' },
    { given: { synchronous: 'normal' }, option: 'synchronous' },
    { given: { busyTimeout: 1 }, option: 'busyTimeout' },
    { given: { additions: false }, option: 'additions' },
    { given: { newerSchema: 'write' }, option: 'newerSchema' },
  ] as const)('that differ are refused: $option', async ({ given, option }) => {
    const path = newPath()
    const one = await openForTest({ path })
    const opening = openStateStore({ path, ...given })
    await expect(opening).rejects.toThrow(OptionConflictError)
    await expect(opening).rejects.toMatchObject({ code: 'OPTION_CONFLICT', path, option })
    await expect(opening).rejects.toThrow(
      /is open in this process with .*: leave out .*, or close the other stores/,
    )
    await one.sessions.create({ id: 's', source: 'cli' })
    await one.close()
    const two = await openForTest({ path, ...given })
    expect(await two.sessions.get('s')).not.toBeNull()
  })

  test('that are left out agree with all, the same ones too', async () => {
    const path = newPath()
    await openForTest({ path, synchronous: 'normal', busyTimeout: 7 })
    await openForTest({ path, synchronous: 'normal', migrate: false })
    const { info } = await openForTest({ path: realpathSync(path) })
    expect(info.readonly).toBe(false)
  })

  test('a failed opening is not shared', async () => {
    const path = newPath()
    const [failed, opened] = await Promise.allSettled([
      openStateStore({ path, migrate: false }),
      openForTest({ path }),
    ])
    expect(failed).toMatchObject({ status: 'rejected', reason: { code: 'MIGRATION_NEEDED' } })
    expect(opened.status).toBe('fulfilled')
  })

  test('signal gives up the wait for another opening, and only that', async () => {
    const path = newPath()
    const reason = new Error('no time')
    const [one, two] = await Promise.allSettled([
      openForTest({ path }),
      openStateStore({ path, signal: AbortSignal.abort(reason) }),
    ])
    expect(one.status).toBe('fulfilled')
    expect(two).toMatchObject({ status: 'rejected', reason })
  })
})

test('events reach the handler of every open store, each handler once', async () => {
  const path = newPath()
  const heard: Record<string, StateStoreEvent[]> = { one: [], both: [] }
  const one = await openStateStore({ path, onEvent: (event) => heard.one?.push(event) })
  const onEvent = (event: StateStoreEvent) => heard.both?.push(event)
  const two = await openStateStore({ path, onEvent })
  const three = await openStateStore({ path, onEvent })
  await two.sessions.create({ id: 's', source: 'cli' })
  await one.messages.append('s', { role: 'critic', content: '1' })
  const roles = (events: StateStoreEvent[] = []) =>
    events.flatMap((e) => (e.type === 'unusual-role' ? e.role : []))
  expect(roles(heard.one)).toEqual(['critic'])
  expect(roles(heard.both)).toEqual(['critic'])
  expect(heard.both?.map(({ type }) => type)).not.toContain('created')
  await three.close()
  await one.close()
  await two.messages.append('s', { role: 'judge', content: '2' })
  expect(roles(heard.one)).toEqual(['critic'])
  expect(roles(heard.both)).toEqual(['critic', 'judge'])
  await two.close()
})

test('a call on another store of the file from inside a transaction is refused: it would wait for itself', async () => {
  const path = newPath()
  const one = await openForTest({ path })
  const two = await openForTest({ path })
  await one.transaction(async (tx) => {
    await tx.sessions.create({ id: 's', source: 'cli' })
    await expect(two.messages.append('s', user('inside'))).rejects.toThrow(TransactionMisuseError)
    await expect(two.close()).rejects.toThrow(TransactionMisuseError)
  })
  await two.messages.append('s', user('after'))
  expect(await one.messages.count('s')).toBe(1)
})
