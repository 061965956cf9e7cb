import type { Generated, Kysely, Selectable, Transaction } from 'kysely'
import { describe, expectTypeOf, test } from 'vitest'
import {
  type AppendManyOptions,
  type ConflictError,
  type ContextMessage,
  type Continuation,
  type ConversationMessage,
  containsCjk,
  type JsonArray,
  type JsonObject,
  type JsonText,
  type JsonValue,
  type Message,
  type MessageContent,
  type MessageRow,
  type NewMessage,
  type NewSession,
  type OpenOptions,
  openStateStore,
  type ParentNotFoundError,
  type ReplaceOptions,
  type SCHEMA_VERSION,
  type SearchHit,
  type SearchOptions,
  type Session,
  type SessionContinuedError,
  type SessionRow,
  type SessionSummary,
  type StateDatabase,
  type StateStore,
  type StateStoreBusyError,
  StateStoreError,
  type StateStoreErrorCode,
  type StateStoreEvent,
  type StateTransaction,
  sanitizeFts5Query,
  type ToolCall,
} from '../../src/index.ts'

declare const store: StateStore

describe('opening', () => {
  test('takes options, all of them optional', () => {
    expectTypeOf(openStateStore).returns.resolves.toEqualTypeOf<StateStore>()
    expectTypeOf(openStateStore).toBeCallableWith()
    expectTypeOf<OpenOptions>().toExtend<{ path?: string; readonly?: boolean; additions?: boolean }>()
    expectTypeOf<OpenOptions['synchronous']>().toEqualTypeOf<'full' | 'normal' | undefined>()
    expectTypeOf<OpenOptions['onEvent']>().toEqualTypeOf<((event: StateStoreEvent) => void) | undefined>()
    // @ts-expect-error a misspelt option
    openStateStore({ readOnly: true })
    // @ts-expect-error no such durability
    openStateStore({ synchronous: 'off' })
  })

  test('gives a store that says what it opened and disposes of itself', () => {
    expectTypeOf(store).toExtend<AsyncDisposable>()
    expectTypeOf(store.info.path).toEqualTypeOf<string>()
    expectTypeOf(store.info.migrations).toEqualTypeOf<string[]>()
    expectTypeOf(store.close()).toEqualTypeOf<Promise<void>>()
    expectTypeOf<typeof SCHEMA_VERSION>().toEqualTypeOf<6>()
  })
})

describe('continuing and sending again', () => {
  test('a continuation inherits what it does not give', () => {
    expectTypeOf(store.sessions.continueAs).parameters.toEqualTypeOf<[string, Continuation?]>()
    expectTypeOf(store.sessions.continueAs).returns.resolves.toEqualTypeOf<string>()
    expectTypeOf<Continuation['title']>().toEqualTypeOf<string | null | undefined>()
    // @ts-expect-error its parent is the session it continues
    store.sessions.continueAs('s', { parent_session_id: 't' })
    expectTypeOf<SessionContinuedError['child_session_id']>().toEqualTypeOf<string>()
  })

  test('writes can expect a last message', () => {
    expectTypeOf<ReplaceOptions['expectedLastId']>().toEqualTypeOf<number | null | undefined>()
    expectTypeOf<ReplaceOptions['archiveAs']>().toEqualTypeOf<string | undefined>()
    expectTypeOf<AppendManyOptions>().not.toHaveProperty('archiveAs')
    expectTypeOf<AppendManyOptions>().toExtend<{ requireOpen?: boolean; expectedLastId?: number | null }>()
    expectTypeOf<ConflictError['actual']>().toEqualTypeOf<number | null>()
    // @ts-expect-error a lone append checks nothing
    store.messages.append('s', { role: 'user' }, { expectedLastId: 1 })
    expectTypeOf<NewMessage['client_id']>().toEqualTypeOf<string | null | undefined>()
    expectTypeOf<Message>().not.toHaveProperty('client_id')
  })
})

describe('sessions', () => {
  test('need a source to be created', () => {
    expectTypeOf(store.sessions.create).toBeCallableWith({ source: 'cli' })
    expectTypeOf(store.sessions.create({ source: 'cli' })).resolves.toEqualTypeOf<string>()
    expectTypeOf<NewSession['started_at']>().toEqualTypeOf<number | undefined>()
    // @ts-expect-error no source
    store.sessions.create({ id: 'x' })
    // @ts-expect-error our names are those of the columns
    store.sessions.create({ source: 'cli', systemPrompt: 'x' })
    // @ts-expect-error configuration is an object
    store.sessions.create({ source: 'cli', model_config: '{}' })
  })

  test('are read with their JSON parsed', () => {
    expectTypeOf(store.sessions.get('x')).resolves.toEqualTypeOf<Session | null>()
    expectTypeOf<Session['model_config']>().toEqualTypeOf<JsonObject | null>()
    expectTypeOf<Session['system_prompt']>().toEqualTypeOf<string | null>()
    expectTypeOf<Session['message_count']>().toEqualTypeOf<number>()
    expectTypeOf(store.sessions.end('x', 'user_exit')).resolves.toEqualTypeOf<boolean>()
  })

  test('are listed without their system prompt', () => {
    expectTypeOf(store.sessions.list()).resolves.toEqualTypeOf<SessionSummary[]>()
    expectTypeOf<SessionSummary>().toHaveProperty('preview').toEqualTypeOf<string>()
    expectTypeOf<SessionSummary>().not.toHaveProperty('system_prompt')
    // @ts-expect-error a misspelt option
    store.sessions.list({ sourcess: 'cli' })
  })
})

describe('messages', () => {
  test('have content that is text, parts, an object or nothing', () => {
    expectTypeOf<MessageContent>().toEqualTypeOf<string | JsonArray | JsonObject>()
    expectTypeOf<Message['content']>().toEqualTypeOf<MessageContent | null>()
    expectTypeOf<NewMessage['content']>().toEqualTypeOf<MessageContent | null | undefined>()
    expectTypeOf<ConversationMessage['content']>().toEqualTypeOf<MessageContent | null>()
    expectTypeOf<Message['tool_calls']>().toEqualTypeOf<ToolCall[] | null>()
    expectTypeOf<Message['reasoning_details']>().toEqualTypeOf<JsonValue>()
    expectTypeOf<'assistant'>().toExtend<Message['role']>()
    expectTypeOf<'wizard'>().toExtend<Message['role']>()
  })

  test('are appended with a role', () => {
    expectTypeOf(store.messages.append('s', { role: 'user' })).resolves.toEqualTypeOf<number>()
    expectTypeOf(store.messages.appendMany('s', [])).resolves.toEqualTypeOf<number[]>()
    store.messages.append(
      's',
      { role: 'user', content: [{ type: 'text', text: 'hi' }] },
      { requireOpen: true },
    )
    // @ts-expect-error no role
    store.messages.append('s', { content: 'hi' })
    // @ts-expect-error a date is not JSON
    store.messages.append('s', { role: 'user', content: { at: new Date() } })
    // @ts-expect-error tool calls are not text
    store.messages.append('s', { role: 'assistant', tool_calls: '[]' })
    // @ts-expect-error a number is not content
    store.messages.append('s', { role: 'user', content: 5 })
  })

  test('that were read can be appended', () => {
    expectTypeOf<Message>().toExtend<NewMessage>()
    expectTypeOf<ConversationMessage>().toExtend<NewMessage>()
    expectTypeOf(store.messages.list('s')).resolves.toEqualTypeOf<Message[]>()
    expectTypeOf(store.messages.conversation('s')).resolves.toEqualTypeOf<ConversationMessage[]>()
    expectTypeOf(store.messages.iterate('s')).toExtend<AsyncIterable<Message>>()
    expectTypeOf(store.messages.get(1)).resolves.toEqualTypeOf<Message | null>()
    expectTypeOf<ConversationMessage>().not.toHaveProperty('timestamp')
  })

  test('are paged by a message or its id', () => {
    expectTypeOf(store.messages.list).toBeCallableWith('s', { after: {} as Message, limit: 5 })
    expectTypeOf(store.messages.list).toBeCallableWith('s', { before: 5, latest: 5 })
    // @ts-expect-error ids are numbers
    store.messages.list('s', { after: '5' })
  })
})

test('hits say what was found and where', () => {
  expectTypeOf(store.search.messages('x')).resolves.toEqualTypeOf<SearchHit[]>()
  expectTypeOf<SearchHit>().toExtend<{
    id: number
    session_id: string
    role: string
    timestamp: number
    tool_name: string | null
    snippet: string
    context: ContextMessage[]
    source: string
    model: string | null
    session_started: number
    route: string
  }>()
  expectTypeOf<ContextMessage>().toEqualTypeOf<{ id: number; role: string; content: string }>()
  expectTypeOf<SearchOptions['sources']>().toEqualTypeOf<readonly string[] | undefined>()
  // @ts-expect-error a source is not a list of them
  store.search.messages('x', { sources: 'cli' })
  expectTypeOf(sanitizeFts5Query).toEqualTypeOf<(query: string) => string>()
  expectTypeOf(containsCjk).toEqualTypeOf<(text: string) => boolean>()
})

describe('transactions', () => {
  test('give what the function returns', () => {
    expectTypeOf(store.transaction(async () => 5)).resolves.toEqualTypeOf<number>()
    expectTypeOf(
      store.transaction((tx) => tx.messages.append('s', { role: 'user' })),
    ).resolves.toEqualTypeOf<number>()
  })

  test('have repositories and a database, and nothing that would need the store itself', () => {
    expectTypeOf<StateTransaction['sessions']>().toEqualTypeOf<StateStore['sessions']>()
    expectTypeOf<StateTransaction['messages']>().toEqualTypeOf<StateStore['messages']>()
    expectTypeOf<StateTransaction['search']>().toEqualTypeOf<StateStore['search']>()
    expectTypeOf<StateTransaction['db']>().toEqualTypeOf<Transaction<StateDatabase>>()
    expectTypeOf<StateTransaction>().not.toHaveProperty('transaction')
    expectTypeOf<StateTransaction>().not.toHaveProperty('close')
  })
})

describe('store.db', () => {
  test('knows the tables', () => {
    expectTypeOf(store.db).toEqualTypeOf<Kysely<StateDatabase>>()
    expectTypeOf<StateDatabase>().toHaveProperty('sessions')
    expectTypeOf<StateDatabase>().toHaveProperty('messages')
    expectTypeOf<StateDatabase>().toHaveProperty('messages_fts')
    expectTypeOf<StateDatabase>().toHaveProperty('schema_version')
    expectTypeOf<StateDatabase['messages']['id']>().toEqualTypeOf<Generated<number>>()
    expectTypeOf<Selectable<StateDatabase['sessions']>>().toEqualTypeOf<SessionRow>()
    expectTypeOf<Selectable<StateDatabase['messages']>>().toEqualTypeOf<MessageRow>()
    // @ts-expect-error a table that does not exist
    store.db.selectFrom('session')
    // @ts-expect-error a table of the word index's own
    store.db.selectFrom('messages_fts_data')
  })

  test('knows the columns and their types', () => {
    expectTypeOf(
      store.db
        .selectFrom('sessions')
        .select(['id', 'started_at', 'title', 'message_count'])
        .executeTakeFirstOrThrow(),
    ).resolves.toEqualTypeOf<{
      id: string
      started_at: number
      title: string | null
      message_count: number | null
    }>()
    expectTypeOf(
      store.db.selectFrom('messages').select(['id', 'content', 'tool_calls']).executeTakeFirstOrThrow(),
    ).resolves.toEqualTypeOf<{
      id: number
      content: string | null
      tool_calls: JsonText<ToolCall[]> | null
    }>()
    // @ts-expect-error a column that does not exist
    store.db.selectFrom('sessions').select('nope')
    // @ts-expect-error a column of another table
    store.db.selectFrom('messages').where('title', '=', 'x')
    // @ts-expect-error a time is a number
    store.db.updateTable('sessions').set({ started_at: 'yesterday' })
    // @ts-expect-error a message has a session, a role and a time
    store.db.insertInto('messages').values({ content: 'x' })
  })

  test('gives JSON columns as text, not as what they parse to', () => {
    expectTypeOf<MessageRow['tool_calls']>().toExtend<string | null>()
    expectTypeOf<SessionRow['model_config']>().toExtend<string | null>()
    expectTypeOf<SessionRow['model_config']>().not.toExtend<JsonObject | null>()
  })
})

describe('errors and events', () => {
  test('errors have a code of one union', () => {
    expectTypeOf<StateStoreError>().toExtend<Error>()
    expectTypeOf<StateStoreError['code']>().toEqualTypeOf<StateStoreErrorCode>()
    expectTypeOf<ParentNotFoundError>().toExtend<StateStoreError>()
    expectTypeOf<ParentNotFoundError['code']>().toEqualTypeOf<'PARENT_NOT_FOUND'>()
    expectTypeOf<ParentNotFoundError['parent_session_id']>().toEqualTypeOf<string>()
    expectTypeOf<StateStoreBusyError['waited_ms']>().toEqualTypeOf<number>()
    // @ts-expect-error abstract
    new StateStoreError('x')
  })

  test('events are told apart by their type', () => {
    const handle = (event: StateStoreEvent) => {
      if (event.type === 'append-to-ended-session') expectTypeOf(event.tip).toEqualTypeOf<string | null>()
      if (event.type === 'broken-json') expectTypeOf(event.id).toEqualTypeOf<string | number>()
      if (event.type === 'field-not-stored') expectTypeOf(event.field).toEqualTypeOf<string>()
    }
    expectTypeOf(handle).toExtend<OpenOptions['onEvent']>()
  })
})
