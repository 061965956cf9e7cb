import { checkText } from '../arguments.ts'

const OPENING = '<REASONING_SCRATCHPAD>'
const CLOSING = '</REASONING_SCRATCHPAD>'

/**
 * Writes the reasoning of a text as training data has it: every `<REASONING_SCRATCHPAD>` becomes `<think>`, and
 * every `</REASONING_SCRATCHPAD>` becomes `</think>`.
 *
 * @throws TypeError if it is not a string.
 */
export function convertScratchpadToThink(text: string): string {
  return checkText(text, 'The text').replaceAll(OPENING, '<think>').replaceAll(CLOSING, '</think>')
}

/**
 * Whether a text breaks off inside its reasoning: after its last `<REASONING_SCRATCHPAD>` comes no
 * `</REASONING_SCRATCHPAD>`.
 *
 * @throws TypeError if it is not a string.
 */
export function hasIncompleteScratchpad(text: string): boolean {
  checkText(text, 'The text')
  return text.lastIndexOf(OPENING) > text.lastIndexOf(CLOSING)
}
