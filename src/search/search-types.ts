import type { Message } from '../messages/message-types.ts'
import type { SessionSummary } from '../sessions/session-types.ts'
import type { Match } from './matches.ts'

export interface SearchOptions {
  /** Only sessions of these sources; `[]` matches nothing, `undefined` is no filter. */
  sources?: readonly string[]
  /** No sessions of these sources; `[]` excludes nothing. */
  excludeSources?: readonly string[]
  /** Only messages of these roles. */
  roles?: readonly string[]
  /** Only results of these tools. */
  tools?: readonly string[]
  /** Only messages of this session. */
  sessionId?: string
  /** Only messages from this time on, in seconds since 1970. */
  since?: number
  /** Only messages before this time. */
  until?: number
  /** At most so many hits. Default 20. */
  limit?: number
  /** Only hits behind this one: the last of the page before, of the same query. */
  after?: SearchHit
  /** Skip so many hits. Default 0. */
  offset?: number
  /** How many messages before and after a hit its context has. Default 1. */
  context?: number
  /** `rank` (default): best match first, where the word index answers. `newest`: by id, on every route. */
  orderBy?: 'rank' | 'newest'
  /** Rank every match, also of a word that is in more than 10,000 messages. Default false. */
  exact?: boolean
  /** Look for the text itself in whole messages, with no index: slow, and beyond what indexes hold. Default false. */
  scan?: boolean
  /** What stands before and after a match in snippets. Default `['>>>', '<<<']`. */
  marks?: readonly [string, string]
  /** Gives up searching. */
  signal?: AbortSignal
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
  /** The text around the first match, about 240 characters, every match between `>>>` and `<<<`. */
  snippet: string
  /** Where the matches are, in UTF-16 units of the visible text of a field; the first hundred. */
  matches: Match[]
  /** The hit and its neighbours in the session, in order. */
  context: ContextMessage[]
  source: string
  model: string | null
  /** When the session started, in seconds since 1970. */
  session_started: number
  /**
   * How it was found. `words`: by the word index, best match first. `unsegmented`: by the index of scripts that
   * put no spaces between words, newest first. `substring`: by reading messages, newest first.
   */
  route: 'words' | 'unsegmented' | 'substring'
  /** `any` where no message has all terms of the query: these have some. */
  matched: 'all' | 'any'
  /** Whether only the newest 10,000 matches were ranked. */
  partial: boolean
}

export interface SearchSessionsOptions
  extends Pick<SearchOptions, 'sources' | 'excludeSources' | 'marks' | 'signal'> {
  /** At most so many sessions. Default 20. */
  limit?: number
}

/** A session that a search found. */
export interface SessionHit extends SessionSummary {
  /** Its id begins with the query, its title has all of it, or one of its messages does. */
  found_by: 'id' | 'title' | 'content'
  /** Its best message; null where none was found. */
  hit: SearchHit | null
}

export interface AroundOptions {
  /** At most so many messages before it. Default 10. */
  before?: number
  /** At most so many messages after it. Default 10. */
  after?: number
  /** How many of the first and of the last messages of the session. Default 2. */
  ends?: number
}

/** A message in its session: enough to read on from a hit. */
export interface Surroundings {
  session_id: string
  /** The message and its neighbours, in order. */
  messages: Message[]
  /** The first messages of the session, as far as they come before `messages`. */
  first: Message[]
  /** The last messages of the session, as far as they come after `messages`. */
  last: Message[]
}
