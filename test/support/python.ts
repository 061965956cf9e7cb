import { spawnSync } from 'node:child_process'

/** The SQLite of `python3`, or undefined where there is no Python. */
export const pythonSqlite: string | undefined =
  spawnSync('python3', ['-c', 'import sqlite3; print(sqlite3.sqlite_version)'], {
    encoding: 'utf8',
  }).stdout?.trim() || undefined
