import { appendFileSync, existsSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, onTestFinished, test } from 'vitest'
import {
  CannotOpenError,
  convertScratchpadToThink,
  DiskFullError,
  hasIncompleteScratchpad,
  saveTrajectory,
} from '../../src/index.ts'
import { newFolder } from '../support/stores.ts'

const turns = [
  { from: 'human', value: 'Wie spät ist es? 🕐' },
  { from: 'gpt', value: 'Fünf.' },
]
const done = { model: 'hermes-4', completed: true }

describe('saveTrajectory', () => {
  test('appends one line per trajectory, its characters as they are, and returns the path', async () => {
    const file = join(newFolder(), 'samples.jsonl')
    expect(await saveTrajectory(turns, { ...done, file })).toBe(file)
    await saveTrajectory([], { model: 'm', completed: false, file })

    const text = readFileSync(file, 'utf8')
    expect(text).toMatch(
      /^\{"conversations":\[\{"from":"human","value":"Wie spät ist es\? 🕐"\},\{"from":"gpt","value":"Fünf\."\}\],"timestamp":"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}","model":"hermes-4","completed":true\}\n\{"conversations":\[\],"timestamp":"[^"]+","model":"m","completed":false\}\n$/,
    )
    if (process.platform !== 'win32') expect(statSync(file).mode & 0o777).toBe(0o600)
  })

  test('stamps the local time', async () => {
    const zone = process.env.TZ
    onTestFinished(() => {
      if (zone === undefined) delete process.env.TZ
      else process.env.TZ = zone
    })
    process.env.TZ = 'Asia/Kathmandu'
    const file = join(newFolder(), 'samples.jsonl')
    const before = Date.now()
    await saveTrajectory(turns, { ...done, file })
    const { timestamp } = JSON.parse(readFileSync(file, 'utf8'))
    // Kathmandu is 5 h 45 min ahead of UTC all year.
    const time = Date.parse(`${timestamp}+05:45`)
    expect(time).toBeGreaterThanOrEqual(before)
    expect(time).toBeLessThanOrEqual(Date.now())
  })

  test('chooses the file in the working folder by whether the task was completed', async () => {
    const before = process.cwd()
    onTestFinished(() => process.chdir(before))
    const folder = newFolder()
    process.chdir(folder)
    await saveTrajectory(turns, done)
    expect(existsSync(join(folder, 'trajectory_samples.jsonl'))).toBe(true)
    expect(existsSync(join(folder, 'failed_trajectories.jsonl'))).toBe(false)
    await saveTrajectory(turns, { ...done, completed: false })
    expect(existsSync(join(folder, 'failed_trajectories.jsonl'))).toBe(true)
  })

  test('begins a new line where a killed writer left one unfinished', async () => {
    const file = join(newFolder(), 'samples.jsonl')
    writeFileSync(file, '{"conversations":[{"fr')
    await saveTrajectory(turns, { ...done, file })
    await saveTrajectory(turns, { ...done, file })
    const lines = readFileSync(file, 'utf8').split('\n')
    expect(lines).toHaveLength(4)
    expect(lines[0]).toBe('{"conversations":[{"fr')
    expect(JSON.parse(lines[1] ?? '').conversations).toEqual(turns)
    expect(JSON.parse(lines[2] ?? '').conversations).toEqual(turns)
  })

  test('waits for a line that another writer is about to end', async () => {
    const file = join(newFolder(), 'samples.jsonl')
    writeFileSync(file, '{"a":')
    const saved = saveTrajectory(turns, { ...done, file })
    setTimeout(() => appendFileSync(file, '1}\n'), 5)
    await saved
    expect(readFileSync(file, 'utf8').split('\n')).toHaveLength(3)
  })

  test('keeps further fields of a turn, and mends half characters', async () => {
    const file = join(newFolder(), 'samples.jsonl')
    await saveTrajectory([{ from: 'gpt', value: 'a\ud83d', ...{ weight: 1 } }], { ...done, file })
    expect(JSON.parse(readFileSync(file, 'utf8')).conversations).toEqual([
      { weight: 1, from: 'gpt', value: 'a\ufffd' },
    ])
  })

  test.each<[string, turns: unknown, options: unknown, message: RegExp]>([
    ['turns that are no array', { from: 'gpt', value: '' }, done, /^conversations must be an array/],
    ['a turn that is no object', [...turns, 'Hi'], done, /^conversations\[2\] must be an object/],
    ['a turn of nobody', [{ value: 'Hi' }], done, /^conversations\[0\]\.from must be a non-empty string/],
    [
      'a turn without text',
      [{ from: 'gpt', value: null }],
      done,
      /^conversations\[0\]\.value must be a string/,
    ],
    ['a date', [{ from: 'gpt', value: '', at: new Date(0) }], done, /conversations\[0\]\.at is a Date/],
    ['no model', turns, { completed: true }, /^model must be a non-empty string/],
    ['no outcome', turns, { model: 'm' }, /^completed must be true or false/],
    ['no options', turns, undefined, /^The options of saveTrajectory\(\) must be an object/],
    ['an empty path', turns, { ...done, file: '' }, /^file must be a non-empty string/],
  ])('refuses %s before it writes', async (_, conversations, options, message) => {
    const folder = newFolder()
    const file = join(folder, 'samples.jsonl')
    const given = options && { file, ...(options as object) }
    const call = Reflect.apply(saveTrajectory, undefined, [conversations, given])
    await expect(call).rejects.toThrow(TypeError)
    await expect(call).rejects.toThrow(message)
    expect(existsSync(file)).toBe(false)
  })

  test('says that a folder is missing', async () => {
    const file = join(newFolder(), 'no', 'samples.jsonl')
    await expect(saveTrajectory(turns, { ...done, file })).rejects.toThrow(CannotOpenError)
  })

  test.runIf(existsSync('/dev/full'))('says that the disk is full', async () => {
    await expect(saveTrajectory(turns, { ...done, file: '/dev/full' })).rejects.toThrow(DiskFullError)
  })
})

describe('scratchpads', () => {
  const open = '<REASONING_SCRATCHPAD>'
  const close = '</REASONING_SCRATCHPAD>'

  test('become think tags, all of them', () => {
    expect(convertScratchpadToThink(`${open}a${close} b ${open}c${close}`)).toBe(
      '<think>a</think> b <think>c</think>',
    )
    expect(convertScratchpadToThink(`${open}broken off`)).toBe('<think>broken off')
    expect(convertScratchpadToThink('none <b>here</b>')).toBe('none <b>here</b>')
    expect(convertScratchpadToThink('')).toBe('')
  })

  test.each<[string, text: string, expected: boolean]>([
    ['one that is not closed', `${open}a`, true],
    ['one that is closed', `${open}a${close}`, false],
    ['a second one that is not closed', `${open}a${close} b ${open}c`, true],
    ['two that are closed', `${open}a${close}${open}b${close}`, false],
    ['one that was never opened', `a${close}`, false],
    ['no text', '', false],
    ['a text without any', 'plain', false],
  ])('hasIncompleteScratchpad: %s', (_, text, expected) => {
    expect(hasIncompleteScratchpad(text)).toBe(expected)
  })

  test.each([undefined, null, 3, {}])('refuse %s', (value) => {
    expect(() => Reflect.apply(convertScratchpadToThink, undefined, [value])).toThrow(TypeError)
    expect(() => Reflect.apply(hasIncompleteScratchpad, undefined, [value])).toThrow(TypeError)
  })
})
