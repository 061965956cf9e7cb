import { checkId, checkText } from '../arguments.ts'
import type { Connection } from '../database/connection.ts'
import { build, fixedQuery, type Param } from '../database/fixed-query.ts'
import type { RepositoryContext } from '../database/repository.ts'
import { TitleInUseError } from '../errors.ts'
import { toSession, WHOLE_COLUMNS } from './session-row.ts'
import type { Session } from './session-types.ts'
import { sanitizeTitle, splitNumber, withNumber } from './title-text.ts'

const byTitle = fixedQuery((param: Param<{ title: string }>) =>
  build.selectFrom('all_sessions as sessions').select(WHOLE_COLUMNS).where('title', '=', param('title')),
)

const titleOf = fixedQuery((param: Param<{ id: string }>) =>
  build.selectFrom('all_sessions').select('title').where('id', '=', param('id')),
)

/** A range of the unique index: LIKE could not use it. */
const between = fixedQuery((param: Param<{ from: string; to: string }>) =>
  build
    .selectFrom('all_sessions')
    .select(['id', 'title', 'started_at'])
    .where('title', '>=', param('from'))
    .where('title', '<', param('to')),
)

const updateTitle = fixedQuery((param: Param<{ id: string; title: string | null }>) =>
  build
    .updateTable('sessions')
    .set({ title: param('title') })
    .where('id', '=', param('id')),
)

/**
 * The titles of sessions: `store.titles`, and `tx.titles` inside a transaction. Titles are unique, and
 * case-sensitive. `Fix build #2` is the second of the family `Fix build`. Every title given is cleaned as by
 * {@link sanitizeTitle} first, in lookups too.
 */
export class TitleRepository {
  readonly #context: RepositoryContext

  /** @internal */
  constructor(context: RepositoryContext) {
    this.#context = context
  }

  /**
   * Gives a session a title, or takes it away with null (or with a title nobody could see).
   *
   * @returns whether the session exists.
   * @throws TypeError for a title that is too long, TitleInUseError for one that another session has.
   */
  async set(id: string, title: string | null): Promise<boolean> {
    checkId(id, 'id')
    const clean = title === null ? null : sanitizeTitle(checkText(title, 'title'))
    return this.#context.executor.write((connection) => setTitle(connection, id, clean))
  }

  /**
   * Gives a title to a session that has none, for titles that are made automatically: where it is taken, the
   * next free ` #N` is given, in the same transaction.
   *
   * @returns the title given, or null: the session has a title, does not exist, or nothing of it is visible.
   */
  async setIfEmpty(id: string, title: string): Promise<string | null> {
    checkId(id, 'id')
    const clean = sanitizeTitle(checkText(title, 'title'))
    if (clean === null) return null
    return this.#context.executor.write((connection) => {
      const session = connection.get(titleOf, { id })
      if (!session || session.title !== null) return null
      const free = freeTitle(connection, clean)
      connection.run(updateTitle, { id, title: free })
      return free
    })
  }

  /** The title of a session, or null. */
  async get(id: string): Promise<string | null> {
    checkId(id, 'id')
    return this.#context.executor.read((connection) => connection.get(titleOf, { id })?.title ?? null)
  }

  /** The session that has exactly this title, or null. */
  async getSession(title: string): Promise<Session | null> {
    const clean = sanitizeTitle(checkText(title, 'title'))
    const { executor, events } = this.#context
    return executor.read((connection) => {
      const row = clean === null ? undefined : connection.get(byTitle, { title: clean })
      return row ? toSession(connection, row, events) : null
    })
  }

  /**
   * The id of the session a title means, or null: `Fix build #2` is exactly that one, `Fix build` is the one
   * with the highest number, else the one without.
   */
  async resolve(title: string): Promise<string | null> {
    const clean = sanitizeTitle(checkText(title, 'title'))
    if (clean === null) return null
    return this.#context.executor.read((connection) => {
      const exact = connection.get(byTitle, { title: clean })?.id ?? null
      if (splitNumber(clean).number !== undefined) return exact
      return numbered(connection, clean).at(-1)?.id ?? exact
    })
  }

  /**
   * The next free title of a family: `Fix build` while nobody uses it, then `Fix build #2`, and so on. A long
   * base is shortened to make room for the number.
   *
   * @throws TypeError where nothing of the title is visible.
   */
  async next(baseTitle: string): Promise<string> {
    const clean = sanitizeTitle(checkText(baseTitle, 'baseTitle'))
    if (clean === null) throw new TypeError('baseTitle must have a visible character.')
    return this.#context.executor.read((connection) => nextTitle(connection, clean))
  }
}

/**
 * Gives a session a clean title, or takes it away. Returns whether the session exists.
 *
 * @throws TitleInUseError
 */
export function setTitle(connection: Connection, id: string, title: string | null): boolean {
  const holder = title === null ? undefined : connection.get(byTitle, { title })
  if (holder && holder.id !== id) throw new TitleInUseError(holder.title ?? '', holder.id, holder.source)
  return connection.run(updateTitle, { id, title }).changes > 0
}

/** The next free title of the family of a title. */
export function nextTitle(connection: Connection, title: string): string {
  const { base } = splitNumber(title)
  const family = numbered(connection, base)
  if (family.length === 0 && !connection.get(byTitle, { title: base })) return base
  let number = Math.max(1, family.at(-1)?.number ?? 1) + 1
  // Only where a base was shortened can another family hold the same title.
  while (connection.get(byTitle, { title: withNumber(base, number) })) number++
  return withNumber(base, number)
}

/** A title if nobody has it, else the next of its family. */
export function freeTitle(connection: Connection, title: string): string {
  return connection.get(byTitle, { title }) ? nextTitle(connection, title) : title
}

/** The sessions `base #N` by number, then by start. */
function numbered(connection: Connection, base: string): { id: string; number: number }[] {
  // '$' follows '#': the range holds all that begins with `base #`.
  return connection
    .all(between, { from: `${base} #`, to: `${base} $` })
    .flatMap(({ id, title, started_at }) => {
      const { base: own, number } = splitNumber(title ?? '')
      return own === base && number !== undefined ? [{ id, number, started_at }] : []
    })
    .sort((a, b) => a.number - b.number || a.started_at - b.started_at)
}
