import type { MessageParam } from '@anthropic-ai/sdk/resources/messages'
import type { UIMessage } from 'ai'
import type { ChatCompletionMessageParam } from 'openai/resources/chat/completions'
import { expectTypeOf, test } from 'vitest'
import type { AiSdkConversation, AnthropicConversation, OpenAiConversation } from '../../src/index.ts'

/** Ours are arrays that nobody writes to, in any depth: the SDK's own differ in that alone. */
type WithoutMetadata<Part> = Part extends unknown
  ? Omit<Part, 'providerMetadata' | 'callProviderMetadata'>
  : never

type AiSdkMessage = AiSdkConversation['messages'][number]

test('what is written is what the SDKs take', () => {
  expectTypeOf<OpenAiConversation['messages'][number]>().toExtend<ChatCompletionMessageParam>()
  expectTypeOf<AnthropicConversation['messages'][number]>().toExtend<MessageParam>()
  expectTypeOf<Omit<AiSdkMessage, 'parts'>>().toExtend<Omit<UIMessage, 'parts'>>()
  expectTypeOf<WithoutMetadata<AiSdkMessage['parts'][number]>>().toExtend<UIMessage['parts'][number]>()
})
