import type { JsonObject } from '../json.ts'

/** A session to create. */
export interface NewSession {
  /** Default: `crypto.randomUUID()`. */
  id?: string
  /** Where the conversation takes place: `cli`, `telegram`, `discord`, `cron`, … */
  source: string
  user_id?: string | null
  model?: string | null
  model_config?: JsonObject | null
  system_prompt?: string | null
  /** The session this one continues, branches from or was delegated by. It must exist. */
  parent_session_id?: string | null
  /** Seconds since 1970. Default: now. */
  started_at?: number
}

/** A session without its system prompt, which can be tens of kilobytes: what lists hold. */
export interface SessionFields {
  id: string
  source: string
  user_id: string | null
  model: string | null
  /** null where the stored JSON is broken. */
  model_config: JsonObject | null
  parent_session_id: string | null
  /** Seconds since 1970. */
  started_at: number
  ended_at: number | null
  end_reason: string | null
  title: string | null
  message_count: number
  tool_call_count: number
  /** Tokens. */
  input_tokens: number
  output_tokens: number
  cache_read_tokens: number
  cache_write_tokens: number
  reasoning_tokens: number
  billing_provider: string | null
  billing_base_url: string | null
  billing_mode: string | null
  /** US dollars. */
  estimated_cost_usd: number | null
  actual_cost_usd: number | null
  cost_status: string | null
  cost_source: string | null
  pricing_version: string | null
}

/** A stored session. */
export interface Session extends SessionFields {
  system_prompt: string | null
}

/** A session in a list. */
export interface SessionSummary extends SessionFields {
  /**
   * The first 60 code points of the first user message with visible text, line breaks as spaces, `...` where
   * it was cut; '' where there is none.
   */
  preview: string
  /** When it was last active, in seconds since 1970: its latest message, else its start. */
  last_active: number
}
