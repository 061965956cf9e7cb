import { checkText } from '../arguments.ts'
import type { NewMessage } from '../messages/message-types.ts'
import { callsText, checkConversation, type NumberedCall, readCalls, toolResult, toolsText } from './calls.ts'
import { contentText } from './content.ts'
import {
  type Conversation,
  type Converted,
  type ImportedConversation,
  sessionFields,
  splitSystemPrompt,
} from './conversation.ts'
import { checkJsonArray, checkJsonObject, optionalText } from './guards.ts'
import { notCarried } from './not-carried.ts'

/** A conversation in ShareGPT form. */
export interface ShareGptConversation {
  title?: string
  model?: string
  source?: string
  system?: string
  /** JSON text. */
  tools?: string
  conversations: ShareGptTurn[]
}

/** A turn of a ShareGPT conversation; the value of a `function_call` is JSON text. */
export interface ShareGptTurn {
  from: 'human' | 'gpt' | 'function_call' | 'observation' | 'system'
  value: string
}

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

/**
 * Writes a conversation in ShareGPT form: {@link fromShareGpt} the other way round.
 *
 * - An assistant message with text and calls becomes two turns, `gpt` and `function_call`. One call is written as
 *   an object, several as an array of them.
 * - Content that is no text is its words alone.
 * - Roles that ShareGPT does not know are `human`, but for `developer`, which is `system`.
 * - Not carried: the ids of calls (a reader numbers them), reasoning, `finish_reason`, times and counts.
 *
 * @throws TypeError for messages that are none.
 * @example
 * toShareGpt({ messages: [{ role: 'user', content: 'Hi' }] }).value.conversations // [{ from: 'human', value: 'Hi' }]
 */
export function toShareGpt(conversation: Conversation): Converted<ShareGptConversation> {
  checkConversation(conversation)
  const { title, model, source, system_prompt, tools } = conversation
  const messages = conversation.messages.flatMap(apart)
  const value = {
    title,
    model,
    source,
    system: system_prompt || undefined,
    tools: toolsText(tools),
    conversations: messages.map(writeTurn),
  }
  const read = fromShareGpt(value, 'the conversation')
  const split = messages.length - conversation.messages.length
  return { value, not_carried: notCarried({ ...conversation, messages }, read, split) }
}

/** What an assistant says, and then its calls. */
function apart(message: NewMessage): NewMessage[] {
  const { role, tool_calls } = message
  if (role !== 'assistant' || !tool_calls?.length || contentText(message) === '') return [message]
  return [
    { ...message, tool_calls: undefined },
    { role, tool_calls },
  ]
}

function writeTurn(message: NewMessage): ShareGptTurn {
  const value = contentText(message)
  switch (message.role) {
    case 'assistant': {
      const calls = callsText(message.tool_calls ?? [])
      if (calls.length === 0) return { from: 'gpt', value }
      return { from: 'function_call', value: calls.length === 1 ? calls.join() : `[${calls.join(', ')}]` }
    }
    case 'tool':
      return { from: 'observation', value }
    case 'system':
    case 'developer':
      return { from: 'system', value }
    default:
      return { from: 'human', value }
  }
}
