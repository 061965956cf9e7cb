import { AsyncLocalStorage } from 'node:async_hooks'
import { TransactionMisuseError } from '../errors.ts'
import type { OpenTransaction } from './open-transaction.ts'

/** A transaction that code runs inside of, and the one around that. */
interface Scope {
  /** The queue it belongs to. */
  owner: object
  transaction: OpenTransaction | undefined
  /** A turn that was taken before Kysely asked for one. */
  reserved: Promise<OpenTransaction> | undefined
  outer: Scope | undefined
}

const enclosing = new AsyncLocalStorage<Scope | undefined>()
// Begins to follow asynchronous code now: what is under way when the first scope is entered must not seem to be
// inside of it.
enclosing.enterWith(undefined)

/**
 * Refuses a call of code that runs inside a transaction of `owner` that is still open.
 *
 * @throws TransactionMisuseError
 */
export function assertOutside(owner: object): void {
  for (let scope = enclosing.getStore(); scope; scope = scope.outer)
    if (scope.owner === owner && scope.transaction?.isOpen)
      throw new TransactionMisuseError(
        'The store was called from inside one of its own transactions, or of another store of its file, which would ' +
          'wait for itself: use the transaction that the callback was given (tx.sessions, tx.messages, tx.db, …).',
      )
}

/** Runs code that will enter a transaction, for which a turn has been taken. */
export function withReserved<T>(
  owner: object,
  reserved: Promise<OpenTransaction>,
  run: () => Promise<T>,
): Promise<T> {
  return enclosing.run({ owner, transaction: undefined, reserved, outer: enclosing.getStore() }, run)
}

/** The turn that {@link withReserved} holds ready, if that is what runs now. */
export function reservedTurn(owner: object): Promise<OpenTransaction> | undefined {
  const scope = enclosing.getStore()
  return scope?.owner === owner ? scope.reserved : undefined
}

/** From here on the calling asynchronous function, and what it calls, is inside the transaction once it opens. */
export function enterScope(owner: object, opening: Promise<OpenTransaction>): Promise<OpenTransaction> {
  const scope: Scope = { owner, transaction: undefined, reserved: undefined, outer: enclosing.getStore() }
  enclosing.enterWith(scope)
  return opening.then((transaction) => {
    scope.transaction = transaction
    return transaction
  })
}
