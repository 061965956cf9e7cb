/**
 * The connections that other threads of this process have to the file. SQLite shares what it knows of a write-ahead
 * log between all connections of a process: they must be closed before a file whose log was lost is opened again.
 */
export interface OtherConnections {
  /** Runs `work` while none is open. */
  whileClosed(work: () => Promise<void>): Promise<void>
  /** Closes them before it returns, for the process is about to end. */
  closeNow(): void
}
