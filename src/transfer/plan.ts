import type { CheckedMessage } from '../messages/message-values.ts'
import { type Checking, checkMessagesRecord, checkSessionRecord } from './checked-session.ts'
import type { NotCarried } from './conversation.ts'
import { addCounts, type Counts } from './counts.ts'
import type { Place, Spool } from './spool.ts'

/** Messages in a line of the spool: as many as one statement inserts. */
const MESSAGES_A_LINE = 25

/** A session that was checked and waits in the spool: a line with its row, then lines of messages. */
export interface Planned extends Place {
  id: string
  messages: number
  toolCalls: number
  parent_session_id: string | null
  /** Whether its parent is one of its own descendants: it goes without. */
  circular: boolean
  /** Whether messages of it are left out: its counters would count them, too. */
  partial: boolean
}

/** A session that cannot be imported, and why. */
export interface Refused {
  id: string | null
  reason: string
}

/** What an import will do. */
export interface Plan {
  /** Parents before their children. */
  sessions: Planned[]
  refused: Refused[]
  not_carried: NotCarried
}

interface Open {
  id: string
  /** undefined where the session was refused: the rest of it is passed over. */
  planned: Planned | undefined
  more: boolean
  checking: Checking
}

/** Reads records to their end, checks them and puts the sessions into a spool. */
export class Planner {
  readonly #spool: Spool
  readonly #additions: boolean
  readonly #planned = new Map<string, Planned>()
  readonly #refused: Refused[] = []
  readonly #notCarried: Counts = {}
  #open: Open | undefined
  messages = 0

  constructor(spool: Spool, additions: boolean) {
    this.#spool = spool
    this.#additions = additions
  }

  /** How many sessions have been read. */
  get sessions(): number {
    return this.#planned.size + this.#refused.length
  }

  /** Takes a record of a session, or of more messages of the one before it. */
  async take(record: unknown): Promise<void> {
    if (hasType(record, 'messages')) return this.#takeMessages(record)
    this.#finishSession()
    if (hasType(record, 'header') || hasType(record, 'end')) return
    const checking: Checking = { additions: this.#additions, notCarried: {}, clientIds: new Set() }
    const id = idOf(record, 'id')
    try {
      const { row, messages, more } = checkSessionRecord(record, checking)
      if (this.#planned.has(row.id)) throw new TypeError('The session comes a second time.')
      const { parent_session_id } = row
      const place = { offset: this.#spool.position, length: 0 }
      const planned = {
        ...place,
        id: row.id,
        messages: 0,
        toolCalls: 0,
        parent_session_id,
        circular: false,
        partial: false,
      }
      this.#planned.set(row.id, planned)
      this.#open = { id: row.id, planned, more, checking }
      await this.#spool.write(row)
      await this.#spoolMessages(planned, messages)
    } catch (error) {
      this.#refuse(id, error)
      if (id !== null) this.#open = { id, planned: undefined, more: true, checking }
    }
  }

  async #takeMessages(record: unknown): Promise<void> {
    const id = idOf(record, 'session_id')
    const open = this.#open
    if (!open?.more || open.id !== id) {
      this.#finishSession()
      this.#refuse(id, new TypeError('It has a record of messages that does not follow the session itself.'))
      return
    }
    if (!open.planned) return
    try {
      const { messages, more } = checkMessagesRecord(record, open.checking)
      await this.#spoolMessages(open.planned, messages)
      open.more = more
    } catch (error) {
      this.#planned.delete(id)
      open.planned = undefined
      this.#refuse(id, error)
    }
  }

  async #spoolMessages(planned: Planned, messages: readonly CheckedMessage[]): Promise<void> {
    for (let from = 0; from < messages.length; from += MESSAGES_A_LINE)
      await this.#spool.write(messages.slice(from, from + MESSAGES_A_LINE))
    planned.messages += messages.length
    for (const { toolCalls } of messages) planned.toolCalls += toolCalls
    planned.length = this.#spool.position - planned.offset
    this.messages += messages.length
  }

  /** Nothing more of the session comes. */
  #finishSession(): void {
    const open = this.#open
    this.#open = undefined
    if (!open?.planned) return
    if (open.more) {
      this.#planned.delete(open.id)
      this.#refuse(open.id, new TypeError('The rest of its messages is missing.'))
      return
    }
    const { notCarried } = open.checking
    open.planned.partial = notCarried['messages.inactive'] !== undefined
    addCounts(this.#notCarried, notCarried)
  }

  /** Errors that are not about the record are the caller's. */
  #refuse(id: string | null, error: unknown): void {
    if (!(error instanceof TypeError)) throw error
    this.#refused.push({ id, reason: error.message })
  }

  /** All records have been taken. */
  async finish(): Promise<Plan> {
    this.#finishSession()
    await this.#spool.flush()
    this.#cutCircles()
    return { sessions: this.#inOrder(), refused: this.#refused, not_carried: this.#notCarried }
  }

  #parentOf({ parent_session_id, circular }: Planned): Planned | undefined {
    return parent_session_id === null || circular ? undefined : this.#planned.get(parent_session_id)
  }

  /** Of each circle of parents, the last session in the import loses its parent. */
  #cutCircles(): void {
    const places = new Map([...this.#planned.values()].map((session, place) => [session, place]))
    const walked = new Map<Planned, Planned>()
    for (const start of places.keys()) {
      let session: Planned | undefined = start
      for (; session && !walked.has(session); session = this.#parentOf(session)) walked.set(session, start)
      if (!session || walked.get(session) !== start) continue
      let last = session
      for (let other = this.#parentOf(session); other && other !== session; other = this.#parentOf(other))
        if (places.get(other)! > places.get(last)!) last = other
      last.circular = true
    }
  }

  #inOrder(): Planned[] {
    const ordered = new Set<Planned>()
    for (const start of this.#planned.values()) {
      const line: Planned[] = []
      for (
        let session: Planned | undefined = start;
        session && !ordered.has(session);
        session = this.#parentOf(session)
      )
        line.push(session)
      for (const session of line.reverse()) ordered.add(session)
    }
    return [...ordered]
  }
}

function hasType(record: unknown, type: string): boolean {
  return typeof record === 'object' && record !== null && 'type' in record && record.type === type
}

function idOf(record: unknown, field: 'id' | 'session_id'): string | null {
  if (typeof record !== 'object' || record === null) return null
  const id: unknown = Object.getOwnPropertyDescriptor(record, field)?.value
  return typeof id === 'string' ? id : null
}
