import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import {
  type NewMessage,
  type NewSession,
  type PruneOptions,
  type Session,
  type StateStore,
  StateStoreError,
  type StateTransaction,
  type Usage,
} from '../../src/index.ts'
import { bothModes, rawRun } from '../support/stores.ts'

const DAY = 86_400
// Nothing in here happens near the edge of a day: what the model calls now may be some seconds old.
const NOW = Math.floor(Date.now() / 1000)

/** What can be called on a store, and inside of a transaction. */
type Repositories = Pick<StateTransaction, 'sessions' | 'titles' | 'messages' | 'usage' | 'lineage'>

/** A step, what it does to a store, and what it does to the model. Both return a value or throw. */
interface Step {
  name: string
  real(store: Repositories): Promise<unknown>
  model(model: Model): unknown
}

class Refused extends Error {
  constructor(readonly code: string) {
    super(code)
  }
}

interface ModelSession extends Omit<Session, 'ended_at' | 'message_count' | 'tool_call_count'> {
  ended: boolean
  messages: Pick<NewMessage, 'role' | 'content' | 'tool_calls' | 'timestamp'>[]
}

/** What the store should be: a map of sessions, and no cleverness. */
class Model {
  sessions = new Map<string, ModelSession>()

  clone(): Model {
    const copy = new Model()
    copy.sessions = structuredClone(this.sessions)
    return copy
  }

  find(id: string): ModelSession {
    const session = this.sessions.get(id)
    if (!session) throw new Refused('SESSION_NOT_FOUND')
    return session
  }

  lastActive({ messages, started_at }: ModelSession): number {
    return messages.length === 0 ? started_at : Math.max(...messages.map(({ timestamp }) => timestamp!))
  }

  line(id: string): string[] {
    const parent = this.sessions.get(id)?.parent_session_id
    return parent ? [id, ...this.line(parent)] : [id]
  }

  create({
    id = '',
    source,
    parent_session_id: parent = null,
    model = null,
    started_at = 0,
  }: NewSession): string {
    const known = this.sessions.get(id)
    if (parent !== null && !known?.parent_session_id) {
      if (parent === id) throw new Refused('LINEAGE_CYCLE')
      if (!this.sessions.has(parent)) throw new Refused('PARENT_NOT_FOUND')
      if (this.line(parent).includes(id)) throw new Refused('LINEAGE_CYCLE')
    }
    if (known) {
      if (known.source === 'unknown') known.source = source
      known.model ??= model
      known.parent_session_id ??= parent
      return id
    }
    this.sessions.set(id, {
      id,
      source,
      user_id: null,
      model,
      model_config: null,
      system_prompt: null,
      parent_session_id: parent,
      started_at,
      ended: false,
      end_reason: null,
      title: null,
      input_tokens: 0,
      output_tokens: 0,
      cache_read_tokens: 0,
      cache_write_tokens: 0,
      reasoning_tokens: 0,
      billing_provider: null,
      billing_base_url: null,
      billing_mode: null,
      estimated_cost_usd: null,
      actual_cost_usd: null,
      cost_status: null,
      cost_source: null,
      pricing_version: null,
      messages: [],
    })
    return id
  }

  delete(id: string): boolean {
    if (!this.sessions.delete(id)) return false
    for (const child of this.sessions.values())
      if (child.parent_session_id === id) child.parent_session_id = null
    return true
  }

  holder(title: string): ModelSession | undefined {
    return [...this.sessions.values()].find((session) => session.title === title)
  }

  setTitle(id: string, given: string | null): boolean {
    const title = given?.trim() || null
    const holder = title === null ? undefined : this.holder(title)
    if (holder && holder.id !== id) throw new Refused('TITLE_IN_USE')
    const session = this.sessions.get(id)
    if (!session) return false
    session.title = title
    return true
  }

  setTitleIfEmpty(id: string, title: string): string | null {
    const session = this.sessions.get(id)
    if (!session || session.title !== null) return null
    const parts = (text: string) => /^(.+) #([0-9]{1,9})$/.exec(text)?.slice(1) ?? [text, '1']
    const [base] = parts(title)
    const numbers = [...this.sessions.values()]
      .map((other) => parts(other.title ?? ''))
      .filter(([family]) => family === base)
      .map(([, number]) => Number(number))
    session.title = this.holder(title) ? `${base} #${Math.max(1, ...numbers) + 1}` : title
    return session.title
  }

  use(id: string, usage: Usage, combine: (old: number, given: number) => number): boolean {
    const session = this.sessions.get(id)
    if (!session) return false
    for (const name of ['input_tokens', 'output_tokens', 'estimated_cost_usd', 'actual_cost_usd'] as const) {
      const given = usage[name]
      if (given !== undefined) session[name] = combine(session[name] ?? 0, given)
    }
    session.cost_status = usage.cost_status ?? session.cost_status
    session.billing_provider ??= usage.billing_provider ?? null
    session.model ??= usage.model ?? null
    return true
  }

  prune({ olderThanDays = 90, source, dryRun = false }: PruneOptions) {
    const old = [...this.sessions.values()].filter(
      (session) =>
        this.lastActive(session) < NOW - olderThanDays * DAY &&
        (source === undefined || session.source === source),
    )
    const ended = old.filter((session) => session.ended)
    if (!dryRun) for (const { id } of ended) this.delete(id)
    return { deleted: ended.length, skipped_open: old.length - ended.length }
  }
}

// Few, so that most steps find their session.
const id = fc.constantFrom('a', 'b', 'c', 'd')
const source = fc.constantFrom('cli', 'telegram', 'unknown')
const time = fc.constantFrom(1.5, 10.5, 50.5, 100.5).map((days) => NOW - days * DAY)
const title = fc.constantFrom('t', 't #2', 'T', 'u #7', ' u ', 'u')
const count = fc.integer({ min: 0, max: 1000 })
const maybe = <T>(arbitrary: fc.Arbitrary<T>) => fc.option(arbitrary, { nil: undefined })

const message = fc.record({
  role: fc.constantFrom('user', 'assistant', 'tool'),
  content: fc.constantFrom('hello', '', null, 'walrus'),
  tool_calls: fc
    .integer({ min: 0, max: 2 })
    .map((calls) => Array.from({ length: calls }, () => ({ function: { name: 'f', arguments: '{}' } }))),
  timestamp: time,
})

const usage: fc.Arbitrary<Usage> = fc.record({
  input_tokens: maybe(count),
  output_tokens: maybe(count),
  // Quarters add up exactly.
  estimated_cost_usd: maybe(count.map((quarters) => quarters / 4)),
  actual_cost_usd: maybe(count.map((quarters) => quarters / 4)),
  cost_status: maybe(fc.constantFrom('estimated', 'final')),
  billing_provider: maybe(fc.constantFrom('p', 'q')),
  model: maybe(fc.constantFrom('m', 'n')),
})

/** A kind of step: how its arguments are made, and what it does with them. */
const kind = <Args>(
  name: string,
  args: fc.Arbitrary<Args>,
  real: (store: Repositories, args: Args) => Promise<unknown>,
  model: (model: Model, args: Args) => unknown,
): fc.Arbitrary<Step> =>
  args.map((args) => ({
    name: `${name} ${JSON.stringify(args)}`,
    real: (store) => real(store, args),
    model: (state) => model(state, args),
  }))

const create = kind(
  'create',
  fc.record({
    id,
    source,
    parent_session_id: maybe(id),
    model: fc.constantFrom(undefined, 'm'),
    started_at: time,
  }),
  (store, session) => store.sessions.create(session),
  (model, session) => model.create(session),
)

const append = kind(
  'append',
  fc.record({ id, message }),
  async (store, { id, message }) => void (await store.messages.append(id, message)),
  (model, { id, message }) => void model.find(id).messages.push(message),
)

const end = kind(
  'end',
  fc.record({ id, reason: fc.constantFrom('compression', 'user_exit') }),
  (store, { id, reason }) => store.sessions.end(id, reason),
  (model, { id, reason }) => {
    const session = model.sessions.get(id)
    if (!session || session.ended) return false
    Object.assign(session, { ended: true, end_reason: reason })
    return true
  },
)

const others = [
  kind(
    'appendMany',
    fc.record({ id, messages: fc.array(message, { minLength: 1, maxLength: 3 }) }),
    async (store, { id, messages }) => (await store.messages.appendMany(id, messages)).length,
    (model, { id, messages }) => {
      model.find(id).messages.push(...messages)
      return messages.length
    },
  ),
  kind(
    'replaceAll',
    fc.record({ id, messages: fc.array(message, { maxLength: 2 }) }),
    async (store, { id, messages }) => (await store.messages.replaceAll(id, messages)).length,
    (model, { id, messages }) => {
      model.find(id).messages = [...messages]
      return messages.length
    },
  ),
  kind(
    'clear',
    id,
    (store, id) => store.messages.clear(id),
    (model, id) => model.find(id).messages.splice(0).length,
  ),
  kind(
    'reopen',
    id,
    (store, id) => store.sessions.reopen(id),
    (model, id) => {
      const session = model.sessions.get(id)
      if (!session?.ended) return false
      Object.assign(session, { ended: false, end_reason: null })
      return true
    },
  ),
  kind(
    'setModel',
    id,
    (store, id) => store.sessions.setModel(id, 'chosen'),
    (model, id) => {
      const session = model.sessions.get(id)
      if (session) session.model = 'chosen'
      return session !== undefined
    },
  ),
  kind(
    'titles.set',
    fc.record({ id, title: fc.oneof(title, fc.constantFrom(null, ' ')) }),
    (store, { id, title }) => store.titles.set(id, title),
    (model, { id, title }) => model.setTitle(id, title),
  ),
  kind(
    'titles.setIfEmpty',
    fc.record({ id, title }),
    (store, { id, title }) => store.titles.setIfEmpty(id, title),
    (model, { id, title }) => model.setTitleIfEmpty(id, title.trim()),
  ),
  kind(
    'usage.add',
    fc.record({ id, usage }),
    (store, { id, usage }) => store.usage.add(id, usage),
    (model, { id, usage }) => model.use(id, usage, (old, given) => old + given),
  ),
  kind(
    'usage.set',
    fc.record({ id, usage, monotonic: fc.boolean() }),
    (store, { id, usage, monotonic }) => store.usage.set(id, usage, { monotonic }),
    (model, { id, usage, monotonic }) =>
      model.use(id, usage, (old, given) => (monotonic ? Math.max(old, given) : given)),
  ),
]

const removals = [
  kind(
    'delete',
    id,
    (store, id) => store.sessions.delete(id),
    (model, id) => model.delete(id),
  ),
  kind(
    'deleteIfEmpty',
    id,
    (store, id) => store.sessions.deleteIfEmpty(id),
    (model, id) => {
      const session = model.sessions.get(id)
      const used =
        !session ||
        session.messages.length > 0 ||
        session.title !== null ||
        [...model.sessions.values()].some((other) => other.parent_session_id === id)
      return !used && model.delete(id)
    },
  ),
  kind(
    'prune',
    fc.record({
      olderThanDays: fc.constantFrom(1, 5, 30, undefined),
      source: maybe(source),
      dryRun: maybe(fc.boolean()),
    }),
    (store, options) => store.sessions.prune(options),
    (model, options) => model.prune(options),
  ),
]

const step = fc.oneof(
  { weight: 10, arbitrary: create },
  { weight: 8, arbitrary: append },
  { weight: 5, arbitrary: end },
  ...others.map((arbitrary) => ({ weight: 3, arbitrary })),
  ...removals.map((arbitrary) => ({ weight: 1, arbitrary })),
)

/** Steps one by one, or in one transaction that may fail at its end. */
const group = fc.oneof(
  { weight: 4, arbitrary: fc.record({ how: fc.constant('alone' as const), steps: fc.tuple(step) }) },
  {
    weight: 1,
    arbitrary: fc.record({
      how: fc.constantFrom('commit' as const, 'rollback' as const),
      steps: fc.array(step, { minLength: 1, maxLength: 4 }),
    }),
  },
)

/** Takes a step in both worlds, and compares what they answer. */
async function take({ name, real, model }: Step, store: Repositories, state: Model): Promise<void> {
  let expected: unknown
  try {
    expected = { value: model(state) }
  } catch (error) {
    if (!(error instanceof Refused)) throw error
    expected = { code: error.code }
  }
  const answer = await real(store).then(
    (value) => ({ value }),
    (error) => {
      if (error instanceof StateStoreError) return { code: error.code }
      throw error
    },
  )
  expect(answer, name).toEqual(expected)
}

async function compare(store: StateStore, model: Model): Promise<void> {
  const sessions = [...model.sessions.values()]
  for (const session of sessions) {
    const { ended, messages, ...fields } = session
    const { ended_at, ...stored } = (await store.sessions.get(session.id))!
    expect(stored).toStrictEqual({
      ...fields,
      message_count: messages.length,
      tool_call_count: messages.reduce((sum, { tool_calls }) => sum + tool_calls!.length, 0),
    })
    expect(ended_at !== null, `${session.id} has ended`).toBe(ended)
    expect(
      (await store.messages.list(session.id)).map(({ role, content, tool_calls, timestamp }) => ({
        role,
        content,
        tool_calls: tool_calls ?? [],
        timestamp,
      })),
    ).toEqual(messages)
    expect((await store.lineage.ancestors(session.id)).map(({ id }) => id)).toEqual(
      model.line(session.id).slice(1),
    )
    if (session.title !== null) expect((await store.titles.getSession(session.title))?.id).toBe(session.id)
  }
  for (const [orderBy, time] of [
    ['started', ({ started_at }: ModelSession) => started_at],
    ['lastActive', (session: ModelSession) => model.lastActive(session)],
  ] as const)
    expect(
      (await store.sessions.list({ orderBy })).map(({ id, last_active }) => ({ id, last_active })),
    ).toEqual(
      sessions
        .toSorted((a, b) => time(b) - time(a) || (a.id < b.id ? 1 : -1))
        .map((session) => ({ id: session.id, last_active: model.lastActive(session) })),
    )
  expect(await store.messages.count()).toBe(sessions.reduce((sum, { messages }) => sum + messages.length, 0))
  expect(await store.usage.totals()).toMatchObject({
    sessions: sessions.length,
    input_tokens: sessions.reduce((sum, { input_tokens }) => sum + input_tokens, 0),
    actual_cost_usd: sessions.reduce((sum, { actual_cost_usd }) => sum + (actual_cost_usd ?? 0), 0),
  })
}

describe.each(bothModes)('in $name', (kind) => {
  test('whatever is done to a store leaves what the same does to a map of sessions', async () => {
    const store = await kind.open()
    await fc.assert(
      fc.asyncProperty(fc.array(group, { minLength: 20, maxLength: 50, size: 'max' }), async (groups) => {
        await rawRun(store, 'delete from messages')
        await rawRun(store, 'delete from sessions')
        let model = new Model()
        for (const { how, steps } of groups) {
          const before = model.clone()
          if (how === 'alone') await take(steps[0]!, store, model)
          else {
            const undo = new Error('undo')
            await store
              .transaction(async (tx) => {
                for (const step of steps) await take(step, tx, model)
                if (how === 'rollback') throw undo
              })
              .catch((error) => {
                if (error !== undo) throw error
              })
            if (how === 'rollback') model = before
          }
        }
        await compare(store, model)
      }),
      { numRuns: 120 },
    )
  })
})
