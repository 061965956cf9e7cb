// A program that uses the installed package with types. It compiles or it does not: that is the test.
import {
  type Message,
  type NewMessage,
  openStateStore,
  type SearchHit,
  type Session,
  type StateDatabase,
  type StateStore,
  StateStoreError,
  type StateStoreErrorCode,
  type StateStoreEvent,
} from 'hermes-state'
import { type Kysely, sql } from 'kysely'

async function main(path: string): Promise<void> {
  const events: StateStoreEvent[] = []
  const store: StateStore = await openStateStore({ path, onEvent: (event) => events.push(event) })
  const id: string = await store.sessions.create({ source: 'cli', model_config: { temperature: 0.5 } })
  const question: NewMessage = { role: 'user', content: 'Where is the walrus?' }
  await store.transaction(async (tx) => {
    await tx.messages.append(id, question)
    await tx.db.updateTable('sessions').set({ user_id: 'ada' }).where('id', '=', id).execute()
  })

  const session: Session | null = await store.sessions.get(id)
  const messages: Message[] = await store.messages.list(id)
  const hits: SearchHit[] = await store.search.messages('walrus')
  const db: Kysely<StateDatabase> = store.db
  const { count } = await db
    .selectFrom('messages')
    .select(sql<number>`count(*)`.as('count'))
    .executeTakeFirstOrThrow()
  let code: StateStoreErrorCode | undefined
  try {
    await store.messages.append('nobody', question)
  } catch (error) {
    if (error instanceof StateStoreError) code = error.code
  }
  await store.close()

  // @ts-expect-error A misspelt column is a mistake that the compiler finds.
  db.selectFrom('sessions').select('titel')
  // @ts-expect-error So is a role that is not text.
  const wrong: NewMessage = { role: 1 }

  console.log(
    JSON.stringify({
      user: session?.user_id,
      contents: messages.map(({ content }) => content),
      hits: hits.length,
      count,
      code,
      created: events.some(({ type }) => type === 'created'),
      wrong: wrong.role,
    }),
  )
}

await main(process.argv[2]!)
