import type { Migration } from 'kysely'
import * as initial from './001_initial.ts'
import * as finishReason from './002_finish_reason.ts'
import * as title from './003_title.ts'
import * as titleUnique from './004_title_unique.ts'
import * as billing from './005_billing.ts'
import * as reasoning from './006_reasoning.ts'
import * as structuredContent from './007_structured_content.ts'
import * as messageOrder from './008_message_order.ts'
import * as sessionActivity from './009_session_activity.ts'
import * as wordIndex from './010_word_index.ts'
import * as unsegmentedIndex from './011_unsegmented_index.ts'
import * as clientIds from './012_client_ids.ts'

/** Hermes schema 1 to 6: the Nth brings a file from schema N-1 to N. */
export const hermesMigrations: Record<string, Migration> = {
  '001_initial': initial,
  '002_finish_reason': finishReason,
  '003_title': title,
  '004_title_unique': titleUnique,
  '005_billing': billing,
  '006_reasoning': reasoning,
}

/** What this package adds beside the Hermes tables; left out with `additions: false`. */
export const additionMigrations: Record<string, Migration> = {
  '007_structured_content': structuredContent,
  '008_message_order': messageOrder,
  '009_session_activity': sessionActivity,
  '010_word_index': wordIndex,
  '011_unsegmented_index': unsegmentedIndex,
  '012_client_ids': clientIds,
}
