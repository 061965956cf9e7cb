import type {
  ImportOptions,
  MessageRecord,
  SessionRecord,
  SessionReport,
  StateStore,
} from '../../src/index.ts'

/** All that an iterable gives, in order. */
export async function collect<Item>(items: AsyncIterable<Item>): Promise<Item[]> {
  const all: Item[] = []
  for await (const item of items) all.push(item)
  return all
}

/** A session to import: the fields that must be there, and those given. */
export function session(id: string, fields: object = {}): object {
  return { id, source: 'cli', started_at: 1000, messages: [], ...fields }
}

/** Messages to import, with their numbers as text and time. */
export function messages(count: number): object[] {
  return Array.from({ length: count }, (_, n) => ({ role: 'user', content: `message ${n}`, timestamp: n }))
}

/** What a store has in it, as an import must bring it back: without what it gives itself. */
export async function contents(store: StateStore, source?: string): Promise<object[]> {
  const records = await collect(store.transfer.exportAll({ source }))
  return records.flatMap((record): object[] => {
    if (record.type !== 'session' && record.type !== 'messages') return []
    return [{ ...record, messages: record.messages.map(withoutId) }]
  })
}

/** A message without the id that each store gives it. */
export function withoutId({ id: _, ...message }: MessageRecord): object {
  return message
}

/** A session whose messages have no ids. */
export function withoutIds(record: SessionRecord): object {
  return { ...record, messages: record.messages.map(withoutId) }
}

/** The sessions that a store has, each with the number of its messages. */
export async function sizes(store: StateStore): Promise<Record<string, number>> {
  const found: Record<string, number> = {}
  for (const { id } of await store.sessions.list({ limit: 1000, preview: false }))
    found[id] = await store.messages.count(id)
  return found
}

/** What became of each session of an import. */
export async function outcome(
  store: StateStore,
  records: unknown[],
  options?: ImportOptions,
): Promise<SessionReport[]> {
  return (await store.transfer.importSessions(records, options)).sessions
}
