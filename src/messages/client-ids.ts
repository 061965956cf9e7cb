import type { Connection } from '../database/connection.ts'
import { build, fixedQuery, type Param } from '../database/fixed-query.ts'
import type { CheckedMessage } from './message-values.ts'

interface ClientId {
  session_id: string
  client_id: string
}

// With the message itself: an id is never given for a message that is not there, whatever others left behind.
const stored = fixedQuery((param: Param<ClientId>) =>
  build
    .selectFrom('hs_client_ids as known')
    .innerJoin('messages', (join) =>
      join
        .onRef('messages.id', '=', 'known.message_id')
        .onRef('messages.session_id', '=', 'known.session_id'),
    )
    .select('messages.id')
    .where('known.session_id', '=', param('session_id'))
    .where('known.client_id', '=', param('client_id')),
)

const insert = fixedQuery((param: Param<ClientId & { message_id: number }>) =>
  build
    .insertInto('hs_client_ids')
    .orReplace()
    .values({
      message_id: param('message_id'),
      session_id: param('session_id'),
      client_id: param('client_id'),
    }),
)

/** The id under which a message is stored already; undefined where it is not, or has no client id to know it by. */
export function storedId(
  connection: Connection,
  { client_id, values: { session_id } }: CheckedMessage,
): number | undefined {
  return client_id === null ? undefined : connection.get(stored, { session_id, client_id })?.id
}

/** Keeps the client id of a message, where it has one. */
export function keepClientId(
  connection: Connection,
  { client_id, values: { session_id } }: CheckedMessage,
  message_id: number,
): void {
  if (client_id !== null) connection.run(insert, { message_id, session_id, client_id })
}

/**
 * Refuses messages of one call that share a client id: of two that are not the same, one would be lost.
 *
 * @throws TypeError
 */
export function assertOwnClientIds(messages: readonly CheckedMessage[]): void {
  const places = new Map<string, number>()
  for (const [index, { client_id }] of messages.entries()) {
    if (client_id === null) continue
    const first = places.get(client_id)
    if (first !== undefined)
      throw new TypeError(
        `messages[${index}].client_id is that of messages[${first}] too: give each message its own.`,
      )
    places.set(client_id, index)
  }
}
