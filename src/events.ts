/**
 * Something a user of the store may want to know, given to `onEvent`. `level` is `warning` where a user must
 * know it: without an `onEvent` those go to `process.emitWarning`, the others nowhere. Events carry ids and
 * figures, never the text of a message.
 */
export type StateStoreEvent = { level: 'info' | 'warning'; message: string } & (
  | { type: 'created'; path: string }
  /** A file was brought up to date: the migrations that ran, in order. */
  | { type: 'migrated'; path: string; from_version: number; migrations: string[] }
  /** A session lost its title to a newer one of the same title. */
  | { type: 'duplicate-title'; session_id: string; title: string }
  /** A file lacked parts that it should have had, or had them in another form: what was mended. */
  | { type: 'mended'; path: string; mended: string[] }
  /** `message_count` of so many sessions differs from their messages; the counters were left alone. */
  | { type: 'counters-drifted'; path: string; sessions: number }
  /** The file was there and had 0 bytes: a new store was made in it. */
  | { type: 'empty-file'; path: string }
  /** The file can only be read, though `readonly` was not asked for. */
  | { type: 'opened-readonly'; path: string; reason: string }
  /** Searches scan the messages, because the word index cannot be relied on. */
  | { type: 'word-index-unused'; path: string; reason: string }
  /** An index failed a write: it was put aside, the write went through, and the next opening makes it anew. */
  | { type: 'index-put-aside'; path: string; index: string; reason: string }
  /** People other than the owner can read the file. `mode` is its permission bits. */
  | { type: 'file-readable-by-others'; path: string; mode: number }
  /** The file is written, and on a network file system, where SQLite's locks and shared memory cannot be relied on. */
  | { type: 'network-file-system'; path: string; file_system: string }
  /** SQLite kept another journal mode than WAL, so readers and writers block each other. */
  | { type: 'journal-mode'; path: string; journal_mode: string }
  /** A write waited for another process's lock for over a second. */
  | { type: 'lock-wait'; waited_ms: number }
  | { type: 'slow-query'; sql: string; duration_ms: number }
  /** The write-ahead log outgrew its limit: some reader keeps an old snapshot open. */
  | { type: 'wal-size'; bytes: number; limit_bytes: number }
  | { type: 'checkpoint-failed'; reason: string }
  /** The file was renamed, deleted or replaced while it was open: writes are refused until it is back. */
  | { type: 'file-replaced'; path: string; gone: boolean }
  /**
   * Somebody deleted or replaced the write-ahead log. The file was opened again; of the messages acknowledged since
   * the last checkpoint, those that were not in it were appended again, each as `from` its old id `to` its new one.
   */
  | { type: 'log-lost'; path: string; acknowledged: number; appended: { from: number; to: number }[] }
  /** The same, but that did not work: the next write tries again. */
  | { type: 'log-not-recovered'; path: string; reason: string }
  /** The thread that searches ended or could not be started: whether the next search starts another. */
  | { type: 'reader-failed'; path: string; reason: string; starts_again: boolean }
  /** A JSON column could not be read; the field reads as empty and the text stays in the file. */
  | { type: 'broken-json'; table: string; column: string; id: number | string }
  /** A text cell holds bytes that are not UTF-8; they read as U+FFFD and stay in the file. */
  | { type: 'ill-formed-text'; table: string; column: string; id: number | string }
  /** A message has fields the file has no column for; the rest of it was stored. Raised once per field. */
  | { type: 'field-not-stored'; field: string }
  /** A role other than system, user, assistant and tool was stored. Raised once per role. */
  | { type: 'unusual-role'; role: string }
  /** A message went to a session that has ended. `tip` is where the conversation goes on after compression. */
  | {
      type: 'append-to-ended-session'
      session_id: string
      message_id: number
      end_reason: string | null
      tip: string | null
    }
)

export type EventHandler = (event: StateStoreEvent) => void

const ONCE = new Set<StateStoreEvent['type']>([
  'broken-json',
  'ill-formed-text',
  'field-not-stored',
  'unusual-role',
  'word-index-unused',
])
const MAX_REMEMBERED = 10_000

/** Hands the events of a file to the handler of every store of it: each handler once, however many stores have it. */
export class FileEvents {
  readonly #sinks = new Map<EventHandler, { sink: EventHandler; stores: number }>()

  readonly raise: EventHandler = (event) => {
    for (const { sink } of this.#sinks.values()) sink(event)
  }

  /** Without a handler, what must be known goes to `process.emitWarning`. */
  add(onEvent: EventHandler = warn): void {
    const entry = this.#sinks.get(onEvent)
    if (entry) entry.stores++
    else this.#sinks.set(onEvent, { sink: eventSink(onEvent), stores: 1 })
  }

  remove(onEvent: EventHandler = warn): void {
    const entry = this.#sinks.get(onEvent)
    if (entry && --entry.stores === 0) this.#sinks.delete(onEvent)
  }
}

/** Raises events of some types once, and keeps what a handler throws from the caller. */
function eventSink(onEvent: EventHandler): EventHandler {
  const raised = new Set<string>()
  return (event) => {
    if (ONCE.has(event.type)) {
      if (raised.has(event.message)) return
      if (raised.size >= MAX_REMEMBERED) raised.clear()
      raised.add(event.message)
    }
    try {
      onEvent(event)
    } catch (error) {
      // A handler that fails must not undo the write that raised the event.
      process.emitWarning(error instanceof Error ? error : new Error(String(error)))
    }
  }
}

function warn({ level, type, message }: StateStoreEvent): void {
  if (level === 'warning') process.emitWarning(message, { type: 'StateStoreWarning', code: type })
}
