import { checkText } from '../arguments.ts'
import type { NewMessage } from '../messages/message-types.ts'
import { type NumberedCall, readCalls, toolResult } from './calls.ts'
import { type ImportedConversation, sessionFields, splitSystemPrompt } from './conversation.ts'
import { checkJsonArray, checkJsonObject, optionalText } from './guards.ts'

/**
 * Reads a ShareGPT conversation: `{ conversations: [{ from, value }], system?, tools?, title?, model?, source? }`.
 *
 * - `human` is a user message, `gpt` an assistant message.
 * - `function_call` is an assistant message with `tool_calls`: its value is the JSON text of `{ name, arguments }`
 *   or of an array of such. A value that is something else stays as the message's text.
 * - `observation`, or `tool`, is a tool message that answers the first call still open since the last `human`;
 *   where there is none, it names no call.
 * - `system`, beside the turns or as the first of them, becomes `system_prompt`.
 *
 * @param where names the conversation in errors, for instance `chats.json, conversation 3`.
 * @throws TypeError naming the turn and what it must be.
 */
export function fromShareGpt(conversation: unknown, where: string): ImportedConversation {
  const fields = checkJsonObject(conversation, where, 'an object such as {conversations: [{from, value}]}')
  const turns = checkJsonArray(
    fields.conversations,
    `${where}: conversations`,
    'an array of turns {from, value}',
  )
  const system = optionalText(fields.system, `${where}: system`)
  const messages: NewMessage[] = system ? [{ role: 'system', content: system }] : []
  let calls = 0
  let open: NumberedCall[] = []
  for (const [index, item] of turns.entries()) {
    const at = `${where}, message ${index + 1}`
    const turn = checkJsonObject(item, at, 'an object such as {from, value}')
    const text = checkText(turn.value, `${at}: value`)
    switch (turn.from) {
      case 'human':
        open = []
        messages.push({ role: 'user', content: text })
        break
      case 'gpt':
        messages.push({ role: 'assistant', content: text })
        break
      case 'function_call': {
        const made = readCalls(text, calls, at)
        calls += made.length
        open.push(...made)
        messages.push(
          made.length > 0
            ? { role: 'assistant', content: null, tool_calls: made }
            : { role: 'assistant', content: text },
        )
        break
      }
      case 'observation':
      case 'tool':
        messages.push(toolResult(text, open.shift()))
        break
      case 'system':
        messages.push({ role: 'system', content: text })
        break
      default:
        throw new TypeError(`${at}: from must be human, gpt, function_call, observation, tool or system.`)
    }
  }
  return { source_format: 'sharegpt', ...sessionFields(fields, where), ...splitSystemPrompt(messages) }
}
