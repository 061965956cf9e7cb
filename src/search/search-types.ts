export interface SearchOptions {
  /** Only sessions of these sources; `[]` matches nothing, `undefined` is no filter. */
  sources?: readonly string[]
  /** No sessions of these sources; `[]` excludes nothing. */
  excludeSources?: readonly string[]
  /** Only messages of these roles. */
  roles?: readonly string[]
  /** At most so many hits. Default 20. */
  limit?: number
  /** Skip so many hits. Default 0. */
  offset?: number
  /** How many messages before and after a hit its context has. Default 1. */
  context?: number
}

/** A message of the same session around a hit. */
export interface ContextMessage {
  id: number
  role: string
  /** Visible text, cut to 200 code points. */
  content: string
}

export interface SearchHit {
  id: number
  session_id: string
  role: string
  /** Seconds since 1970. */
  timestamp: number
  tool_name: string | null
  /** About 40 words around the match, which stands between `>>>` and `<<<`. */
  snippet: string
  /** The hit and its neighbours in the session, in order. */
  context: ContextMessage[]
  source: string
  model: string | null
  /** When the session started, in seconds since 1970. */
  session_started: number
  /**
   * How it was found: by the word index, best match first; or as a substring, newest first (queries with a
   * script that is written without spaces, or with an emoji).
   */
  route: 'words' | 'substring'
}
