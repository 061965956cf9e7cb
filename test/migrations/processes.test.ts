import { expect, test } from 'vitest'
import { MIGRATIONS } from '../../src/database/reference.ts'
import { writeHermesFile } from '../support/hermes-file.ts'
import { newPath, openForTest, rawRow, rawRows } from '../support/stores.ts'
import { together } from '../support/together.ts'

const NAMES = Object.keys(MIGRATIONS)
const sessions = Array.from({ length: 12 }, (_, index) => `process-${index}`)

test.each([
  { file: 'new', version: 0 },
  { file: 'schema 1', version: 1 },
])('12 processes open one $file file at once: one migrates it, all append', async ({ version }) => {
  const path = newPath()
  if (version > 0) writeHermesFile(path, version)
  const outputs = await together(
    'append-process.mjs',
    sessions.map((session) => [path, session]),
  )

  const migrations = outputs.map((output) => JSON.parse(output) as string[])
  expect(migrations.filter((names) => names.length > 0)).toEqual([NAMES.slice(version)])

  const store = await openForTest({ path })
  expect(store.info.migrations).toEqual([])
  expect(await rawRows(store, 'select version from schema_version')).toEqual([{ version: 6 }])
  expect(await rawRows(store, 'select name from kysely_migration order by name')).toEqual(
    NAMES.map((name) => ({ name })),
  )
  for (const session of sessions) {
    const messages = await store.messages.list(session)
    expect(messages.map(({ content }) => content)).toEqual(
      Array.from({ length: 20 }, (_, index) => `walrus ${index} of ${session}`),
    )
    expect((await store.sessions.get(session))?.message_count).toBe(20)
  }
  const before = version > 0 ? 5 : 0
  expect(await store.messages.count()).toBe(240 + before)
  expect(
    await rawRow(store, "select count(*) as found from messages_fts where messages_fts match 'walrus'"),
  ).toEqual({
    found: 240 + (version > 0 ? 2 : 0),
  })
  expect(await rawRows(store, 'pragma integrity_check')).toEqual([{ integrity_check: 'ok' }])
})
