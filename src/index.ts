export {
  BUSY_TIMEOUT_MS,
  CHECKPOINT_EVERY_N_WRITES,
  SCHEMA_VERSION,
  WRITE_RETRY_MAX_MS,
  WRITE_RETRY_MIN_MS,
} from './database/limits.ts'
export type { MessageRow, SessionRow, StateDatabase } from './database/schema.ts'
export type { SessionOrder } from './database/session-pages.ts'
export * from './errors.ts'
export type { EventHandler, StateStoreEvent } from './events.ts'
export { inspectStateFile, type StateFileReport } from './inspect.ts'
export type { JsonArray, JsonObject, JsonText, JsonValue } from './json.ts'
export type { BackupOptions, BackupResult } from './maintenance/backup.ts'
export type { CheckOptions, CheckReport, ForeignKeyViolation, RowReport } from './maintenance/check.ts'
export type { CheckpointResult } from './maintenance/checkpoint.ts'
export type { Counters, DriftedSession } from './maintenance/counters.ts'
export type { IndexReport } from './maintenance/indexes.ts'
export type { MaintenanceRepository } from './maintenance/maintenance.ts'
export type { OptimizeResult } from './maintenance/optimize.ts'
export type { RepairOptions, RepairPart, RepairResult } from './maintenance/repair.ts'
export type { Vacuum } from './maintenance/vacuum.ts'
export type { ExpectedLastId } from './messages/last-message.ts'
export type {
  ConversationMessage,
  Inactive,
  Message,
  MessageContent,
  NewMessage,
  Role,
  ToolCall,
} from './messages/message-types.ts'
export type {
  AppendManyOptions,
  AppendOptions,
  ExpectOptions,
  ListMessagesOptions,
  MessageCursor,
  MessageRepository,
  ReplaceOptions,
} from './messages/messages.ts'
export type { WatchOptions } from './messages/watch.ts'
export { openStateStore } from './open.ts'
export type { OpenOptions } from './options.ts'
export { quarantineStateFile } from './quarantine.ts'
export { type RestoreOptions, type RestoreResult, restoreStateFile } from './restore.ts'
export { containsCjk } from './search/characters.ts'
export type { Match } from './search/matches.ts'
export type { SearchField } from './search/projection.ts'
export { sanitizeFts5Query } from './search/query.ts'
export type { SearchRepository } from './search/search.ts'
export type {
  AroundOptions,
  ContextMessage,
  SearchHit,
  SearchOptions,
  SearchSessionsOptions,
  SessionHit,
  Surroundings,
} from './search/search-types.ts'
export type { WordIndex } from './search/word-index.ts'
export type { Continuation } from './sessions/continue.ts'
export type { LineageRepository, Relative } from './sessions/lineage.ts'
export type { ListSessionsOptions } from './sessions/list.ts'
export type { PruneOptions, PruneResult } from './sessions/prune.ts'
export type { NewSession, Session, SessionFields, SessionSummary } from './sessions/session-types.ts'
export type { SessionRepository } from './sessions/sessions.ts'
export { MAX_TITLE_LENGTH, sanitizeTitle } from './sessions/title-text.ts'
export type { TitleRepository } from './sessions/titles.ts'
export type { StateStore, StateTransaction, StoreInfo } from './store.ts'
export { fromAiSdk } from './transfer/ai-sdk.ts'
export { fromAnthropic } from './transfer/anthropic.ts'
export type { TextPart } from './transfer/content.ts'
export type {
  Conversation,
  Converted,
  FormatName,
  ImportedConversation,
  NotCarried,
} from './transfer/conversation.ts'
export type { SecretPattern } from './transfer/credential-patterns.ts'
export type { ExportProgress, Selected } from './transfer/export.ts'
export { type ExportFormat, toMarkdown } from './transfer/export-format.ts'
export { fromHermes, type HermesMessage, type HermesSession, toHermes } from './transfer/hermes.ts'
export type { ImportOptions, ImportProgress, ImportReport, SessionReport } from './transfer/import.ts'
export { fromOpenAi } from './transfer/openai.ts'
export { fromParts } from './transfer/parts.ts'
export { readConversations } from './transfer/read-conversations.ts'
export {
  BUNDLE_VERSION,
  type BundleRecord,
  type EndRecord,
  type HeaderRecord,
  type MessageRecord,
  type MessagesRecord,
  type SessionRecord,
} from './transfer/records.ts'
export { type RedactOptions, Redactor, redact, redactJson, redactRecord } from './transfer/redact.ts'
export { convertScratchpadToThink, hasIncompleteScratchpad } from './transfer/scratchpad.ts'
export {
  fromShareGpt,
  type ShareGptConversation,
  type ShareGptTurn,
  toShareGpt,
} from './transfer/sharegpt.ts'
export {
  fromSweAgent,
  type SweAgentConversation,
  type SweAgentMessage,
  toSweAgent,
} from './transfer/swe-agent.ts'
export {
  type AiSdkContentPart,
  type AiSdkConversation,
  type AiSdkMessage,
  type AiSdkMetadata,
  type AiSdkPart,
  type AiSdkReasoningPart,
  type AiSdkToolPart,
  toAiSdk,
} from './transfer/to-ai-sdk.ts'
export {
  type AnthropicBlock,
  type AnthropicConversation,
  type AnthropicDocument,
  type AnthropicImage,
  type AnthropicMessage,
  type AnthropicPart,
  toAnthropic,
} from './transfer/to-anthropic.ts'
export {
  type OpenAiAssistantPart,
  type OpenAiConversation,
  type OpenAiMessage,
  type OpenAiToolCall,
  type OpenAiUserPart,
  toOpenAi,
} from './transfer/to-openai.ts'
export { type PartsConversation, type PartsMessage, toParts } from './transfer/to-parts.ts'
export { type SaveTrajectoryOptions, saveTrajectory, type TrajectoryTurn } from './transfer/trajectory.ts'
export type {
  ExportFileOptions,
  ExportFileResult,
  ExportOptions,
  TransferRepository,
} from './transfer/transfer.ts'
export type { DayUsage, ModelUsage, SourceUsage, UsageTotals } from './usage/reports.ts'
export type { SetUsageOptions, Usage, UsageRepository } from './usage/usage.ts'
