import { type FileHandle, open } from 'node:fs/promises'
import { dirname, resolve } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { checkId, checkObject, checkText, checkWord } from '../arguments.ts'
import { CannotOpenError, DiskFullError } from '../errors.ts'
import { toJson } from '../json.ts'

/** A turn of a trajectory, as ShareGPT writes it: `from` is `system`, `human`, `gpt` or `tool`. Further fields are kept. */
export interface TrajectoryTurn {
  readonly from: string
  readonly value: string
}

/** What {@link saveTrajectory} writes beside the turns, and where. */
export interface SaveTrajectoryOptions {
  /** The model that made the conversation. */
  model: string
  /** Whether the task was done. */
  completed: boolean
  /**
   * The file to append to. Default: `trajectory_samples.jsonl` in the working folder, or
   * `failed_trajectories.jsonl` if the task was not completed.
   */
  file?: string
}

/** Another process's entry arrives within a fraction of this, in milliseconds. */
const UNDER_WAY_MS = 20
const NEWLINE = 10

/**
 * Appends a conversation to a file of training data, as one line `{conversations, timestamp, model, completed}`, and
 * settles when it is on the disk. A missing file is made, readable by its owner alone.
 *
 * - Characters beyond ASCII stay as they are; half a character becomes U+FFFD.
 * - `timestamp` is the local time without a zone, such as `2026-01-31T09:30:00.125000`: the form that Python's
 *   `datetime.now().isoformat()` has, which Hermes writes.
 * - Any number of processes may append to one file of a local disk: each line is one write at the end of the file. A
 *   line that a killed process or a full disk left unfinished stays as it is, and the next entry gets a line of its own.
 *
 * @example
 * await saveTrajectory([{ from: 'human', value: 'Hi' }, { from: 'gpt', value: 'Hello!' }], {
 *   model: 'hermes-4',
 *   completed: true,
 * })
 *
 * @returns the path of the file.
 * @throws TypeError naming the turn that is not `{from, value}`, or the value that JSON cannot carry.
 * @throws CannotOpenError if the file cannot be made or written.
 * @throws DiskFullError if the disk is full; then part of the entry may be the last line of the file.
 */
export async function saveTrajectory(
  conversations: readonly TrajectoryTurn[],
  options: SaveTrajectoryOptions,
): Promise<string> {
  const { model, completed, file } = checkOptions(options)
  const entry = {
    conversations: checkTurns(conversations),
    timestamp: localTime(new Date()),
    model,
    completed,
  }
  const line = `${toJson(entry, 'trajectory')}\n`
  const path = resolve(file ?? (completed ? 'trajectory_samples.jsonl' : 'failed_trajectories.jsonl'))
  const handle = await open(path, 'a+', 0o600).catch((cause) => {
    throw new CannotOpenError(
      `'${path}' cannot be appended to: check that '${dirname(path)}' exists and that this user may write there.`,
      { cause },
    )
  })
  try {
    const isNew = (await handle.stat()).size === 0
    const bytes = Buffer.from((await endsInsideLine(handle)) ? `\n${line}` : line)
    const { bytesWritten } = await handle.write(bytes)
    if (bytesWritten < bytes.length)
      throw new DiskFullError(
        `Only ${bytesWritten} of ${bytes.length} bytes went into '${path}': free some space and save the trajectory again. ` +
          'The unfinished line stays in the file, and the next entry begins a new one.',
      )
    await handle.sync()
    if (isNew) await syncFolder(path)
  } catch (error) {
    throw isDiskFull(error)
      ? new DiskFullError(`The disk of '${path}' is full: free some space and save the trajectory again.`, {
          cause: error,
        })
      : error
  } finally {
    await handle.close()
  }
  return path
}

function checkOptions(options: unknown): SaveTrajectoryOptions {
  const { model, completed, file } = checkObject(options, 'The options of saveTrajectory()')
  if (typeof completed !== 'boolean')
    throw new TypeError('completed must be true or false: it chooses the file of the trajectory.')
  return {
    model: checkWord(model, 'model').toWellFormed(),
    completed,
    file: file === undefined ? undefined : checkId(file, 'file'),
  }
}

function checkTurns(conversations: unknown): TrajectoryTurn[] {
  if (!Array.isArray(conversations))
    throw new TypeError('conversations must be an array of turns such as {from, value}.')
  return conversations.map((turn, index) => {
    const { from, value, ...rest } = checkObject(turn, `conversations[${index}]`)
    return {
      ...rest,
      from: checkWord(from, `conversations[${index}].from`).toWellFormed(),
      value: checkText(value, `conversations[${index}].value`),
    }
  })
}

/** As Python's `datetime.isoformat()` writes it: https://docs.python.org/3/library/datetime.html */
function localTime(date: Date): string {
  const local = new Date(date.getTime() - date.getTimezoneOffset() * 60_000)
  return `${local.toISOString().slice(0, -1)}000`
}

/** Whether the last line was left unfinished. One that is still growing is being written, and waited for. */
async function endsInsideLine(handle: FileHandle): Promise<boolean> {
  for (let before = -1; ; ) {
    const { size } = await handle.stat()
    if (size === 0) return false
    const { buffer } = await handle.read(Buffer.alloc(1), 0, 1, size - 1)
    if (buffer[0] === NEWLINE) return false
    if (size === before) return true
    before = size
    await delay(UNDER_WAY_MS)
  }
}

/** A new name is on the disk once its folder is. Windows syncs no folders. */
async function syncFolder(path: string): Promise<void> {
  if (process.platform === 'win32') return
  const folder = await open(dirname(path))
  await folder.sync().finally(() => folder.close())
}

function isDiskFull(error: unknown): boolean {
  return error instanceof Error && 'code' in error && (error.code === 'ENOSPC' || error.code === 'EDQUOT')
}
