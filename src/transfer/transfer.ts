import { createWriteStream, statSync } from 'node:fs'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { createGzip } from 'node:zlib'
import { checkId, checkText, checkTextList } from '../arguments.ts'
import type { RepositoryContext } from '../database/repository.ts'
import type { StoreHandle } from '../database/store-handle.ts'
import { SessionNotFoundError } from '../errors.ts'
import { checkTarget, makeFile } from '../new-file.ts'
import type { NotCarried } from './conversation.ts'
import { addCounts, type Counts, countsSince } from './counts.ts'
import { type Exporting, type ExportProgress, exportLines, exportSessions, type Selected } from './export.ts'
import { EXPORT_FORMATS, type ExportFormat, toFormat } from './export-format.ts'
import { countFurther } from './further.ts'
import { type ImportOptions, type ImportReport, importRecords } from './import.ts'
import { type OpenOther, recordsOfFile } from './import-file.ts'
import type { BundleRecord, SessionRecord } from './records.ts'
import { Redactor } from './redact.ts'

export interface ExportOptions extends Selected {
  /** Masks credentials in all texts; a {@link Redactor} of your own knows more of them, and counts. Default: no. */
  redact?: boolean | Redactor
  /** Called after each record. */
  onProgress?: (progress: ExportProgress) => void
  /** Gives up; of a file, nothing is left behind. */
  signal?: AbortSignal
}

export interface ExportFileOptions extends ExportOptions {
  /**
   * `bundle` (the default) loses nothing. Of the others each line is a session: `hermes` as Hermes exports it, else a
   * conversation in a chat format, without the messages that Hermes has taken back. `markdown` is for readers:
   * see `toMarkdown`.
   */
  format?: ExportFormat
}

export interface ExportFileResult {
  /** Absolute. */
  path: string
  /** The size of the file. */
  bytes: number
  sessions: number
  messages: number
  /** What the format has no place for, by field: how many values were left out. */
  not_carried: NotCarried
  /** How many credentials were masked, by the name of their pattern. */
  masked: Readonly<Record<string, number>>
}

/** Moves conversations in and out of a store: `store.transfer`. */
export class TransferRepository {
  readonly #context: RepositoryContext & { executor: StoreHandle }
  readonly #openOther: OpenOther

  /** @internal */
  constructor(context: RepositoryContext & { executor: StoreHandle }, openOther: OpenOther) {
    this.#context = context
    this.#openOther = openOther
  }

  /**
   * A session with all of its columns and messages, also those that a later Hermes version has taken back: what
   * `importSessions([session])` stores in another file.
   *
   * @throws SessionNotFoundError
   */
  async exportSession(id: string): Promise<SessionRecord> {
    const exporting = checkExport({ sessionIds: [checkId(id, 'id')] })
    const { executor, events } = this.#context
    executor.assertOutside()
    for await (const session of exportSessions(executor, events, exporting)) return session
    throw new SessionNotFoundError(id)
  }

  /**
   * Everything in the store, or the sessions of one source, as the records of a bundle: a header, then sessions in
   * order of id, each followed by more of its messages where it has many, then an end. All of it is from one moment,
   * whatever is written meanwhile. Memory stays bounded; leave the loop, and the file is let go. Until then its
   * write-ahead log cannot be cut back; a file that is not in WAL mode cannot be written.
   *
   * @throws SessionNotFoundError for one of `sessionIds`; ExportInterruptedError where somebody takes the file's
   * write-ahead log away meanwhile; the reason of `signal`.
   * @example
   * for await (const record of store.transfer.exportAll()) console.log(JSON.stringify(record))
   */
  exportAll(options: ExportOptions = {}): AsyncGenerator<BundleRecord, void, undefined> {
    const exporting = checkExport(options)
    const { executor, events } = this.#context
    executor.assertOutside()
    return (async function* () {
      for await (const { record } of exportLines(executor, events, exporting)) yield record
    })()
  }

  /**
   * Writes what `exportAll` gives into a file, a record on each line, or its sessions in another format; packed with
   * gzip where the name of the file ends in `.gz`. The file is there when it is whole.
   *
   * @throws TargetExistsError, CannotOpenError, and what `exportAll` throws.
   * @example
   * await store.transfer.exportFile('sessions.jsonl.gz')
   */
  async exportFile(path: string, options: ExportFileOptions = {}): Promise<ExportFileResult> {
    const target = checkTarget(path)
    const { format = 'bundle' } = options
    if (!EXPORT_FORMATS.includes(format))
      throw new TypeError(`format must be one of ${EXPORT_FORMATS.join(', ')}.`)
    const exporting = checkExport(options)
    const { executor, events } = this.#context
    executor.assertOutside()
    const done = { sessions: 0, messages: 0 }
    const not_carried: Counts = {}
    const counting: Exporting = {
      ...exporting,
      onProgress(progress) {
        done.sessions = progress.sessions
        done.messages = progress.messages
        exporting.onProgress?.(progress)
      },
    }
    async function* lines(): AsyncGenerator<string> {
      if (format === 'bundle')
        for await (const { text } of exportLines(executor, events, counting)) yield `${text}\n`
      else
        for await (const session of exportSessions(executor, events, counting)) {
          const converted = await toFormat(session, format)
          // Markdown wants an empty line before the next heading.
          yield format === 'markdown' && done.sessions > 0 ? `\n${converted.value}` : converted.value
          addCounts(not_carried, converted.not_carried)
        }
    }
    const maskedBefore = { ...exporting.redactor?.counts }
    return makeFile(target, [], async (partial) => {
      const text = Readable.from(lines())
      const file = createWriteStream(partial)
      const closed = new Promise<void>((resolve) => file.once('close', resolve))
      try {
        await (target.endsWith('.gz') ? pipeline(text, createGzip(), file) : pipeline(text, file))
      } finally {
        // A stream that has failed may still be about to open its file, and would make it anew.
        await closed
      }
      const masked = countsSince(exporting.redactor?.counts ?? {}, maskedBefore)
      const bytes = statSync(partial).size
      return { path: target, bytes, ...done, not_carried, masked }
    })
  }

  /**
   * Stores sessions from records: of `exportAll` or `exportSession`, or of your own in that form. All are read and
   * checked before the first is written; each is then stored with all of its messages, or not at all. They keep their
   * ids, times, counters, titles and lineage; messages get new ids in the same order.
   *
   * Of a session only `id`, `source`, `started_at` and `messages` must be there, of a message `role` and `timestamp`;
   * counters that are not there are counted, as are those of a session of which messages are left out.
   *
   * @returns what became of each session; one that is not valid is refused, with the reason, and the others go on.
   * @throws the reason of `signal`, StateStoreBusyError, DiskFullError: the sessions stored by then stay, and
   * importing again skips them.
   * @example
   * await store.transfer.importSessions(other.transfer.exportAll())
   */
  async importSessions(
    records: AsyncIterable<unknown> | Iterable<unknown>,
    options: ImportOptions = {},
  ): Promise<ImportReport> {
    checkImport(options)
    this.#context.executor.assertOutside()
    return importRecords(this.#context, records, options)
  }

  /**
   * Imports a file, whatever it is: a bundle, JSON Lines of `hermes sessions export`, another state.db of Hermes
   * schema 1 to 26, or conversations in a form that `readConversations` reads. Text may be packed with gzip.
   *
   * @throws BadBundleError for a bundle that is not whole, TypeError for a file of another kind; nothing was written.
   * Errors of reading the file, such as ENOENT, come as they are. Else as `importSessions`.
   * @example
   * const { imported, sessions } = await store.transfer.importFile('sessions.jsonl.gz')
   */
  async importFile(path: string, options: ImportOptions = {}): Promise<ImportReport> {
    checkText(path, 'path')
    checkImport(options)
    this.#context.executor.assertOutside()
    const not_carried: Counts = {}
    const records = recordsOfFile(path, this.#openOther, not_carried, options.signal)
    const report = await importRecords(this.#context, records, options)
    addCounts(not_carried, report.not_carried)
    return { ...report, not_carried }
  }

  /** @internal See {@link countFurther}. */
  countFurther(signal: AbortSignal | undefined): Promise<Counts> {
    return countFurther(this.#context.executor, signal)
  }
}

function checkExport({ source, sessionIds, redact = false, signal, onProgress }: ExportOptions): Exporting {
  if (source !== undefined) checkText(source, 'source')
  if (source !== undefined && sessionIds !== undefined)
    throw new TypeError('source and sessionIds exclude each other: give one of them.')
  if (typeof redact !== 'boolean' && !(redact instanceof Redactor))
    throw new TypeError('redact must be true, false or a Redactor.')
  const redactor = redact === true ? new Redactor() : redact || undefined
  return { source, sessionIds: checkTextList(sessionIds, 'sessionIds'), redactor, signal, onProgress }
}

function checkImport({ ids = 'skip', titles = 'number' }: ImportOptions): void {
  if (ids !== 'skip' && ids !== 'new') throw new TypeError("ids must be 'skip' or 'new'.")
  if (titles !== 'number' && titles !== 'drop') throw new TypeError("titles must be 'number' or 'drop'.")
}
