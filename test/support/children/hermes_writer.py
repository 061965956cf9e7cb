"""Writes and reads a state.db as Hermes does: plain SQL on Python's own SQLite, nothing of this package."""

import json
import sqlite3
import sys
import time

path = sys.argv[1]
db = sqlite3.connect(path, timeout=10.0, isolation_level=None)
db.row_factory = sqlite3.Row
db.execute("PRAGMA journal_mode=WAL")
db.execute("PRAGMA foreign_keys=ON")


def write(body):
    db.execute("BEGIN IMMEDIATE")
    try:
        result = body()
        db.execute("COMMIT")
        return result
    except BaseException:
        db.execute("ROLLBACK")
        raise


def ensure_session(id, source):
    write(
        lambda: db.execute(
            "INSERT OR IGNORE INTO sessions (id, source, model, started_at) VALUES (?, ?, ?, ?)",
            (id, source, None, time.time()),
        )
    )


def append(session_id, role, content, tool_calls=None):
    def body():
        cursor = db.execute(
            "INSERT INTO messages (session_id, role, content, tool_call_id, tool_calls, tool_name, timestamp,"
            " token_count, finish_reason, reasoning, reasoning_details, codex_reasoning_items)"
            " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (
                session_id,
                role,
                content,
                None,
                json.dumps(tool_calls) if tool_calls else None,
                None,
                time.time(),
                None,
                None,
                None,
                None,
                None,
            ),
        )
        db.execute(
            "UPDATE sessions SET message_count = message_count + 1, tool_call_count = tool_call_count + ?"
            " WHERE id = ?",
            (len(tool_calls or []), session_id),
        )
        return cursor.lastrowid

    return write(body)


def append_many(session_id, name, count):
    return [append(session_id, "user", f"{name} {n}") for n in range(count)]


def rewrite(id, content):
    write(lambda: db.execute("UPDATE messages SET content = ? WHERE id = ?", (content, id)))


def delete(id):
    def body():
        (session_id,) = db.execute("SELECT session_id FROM messages WHERE id = ?", (id,)).fetchone()
        db.execute("DELETE FROM messages WHERE id = ?", (id,))
        db.execute("UPDATE sessions SET message_count = message_count - 1 WHERE id = ?", (session_id,))

    write(body)


def texts(session_id):
    rows = db.execute("SELECT content FROM messages WHERE session_id = ? ORDER BY id", (session_id,))
    return [row["content"] for row in rows]


def found(word):
    rows = db.execute("SELECT rowid FROM messages_fts WHERE messages_fts MATCH ? ORDER BY rowid", (word,))
    return [row["rowid"] for row in rows]


def check():
    # Without rank 1, SQLite 3.40 does not compare the index with the texts either.
    db.execute("INSERT INTO messages_fts(messages_fts) VALUES('integrity-check')")
    db.execute("INSERT INTO messages_fts(messages_fts, rank) VALUES('integrity-check', 1)")
    return db.execute("PRAGMA integrity_check").fetchone()[0]


calls = {
    "ensure_session": ensure_session,
    "append": append,
    "append_many": append_many,
    "rewrite": rewrite,
    "delete": delete,
    "texts": texts,
    "found": found,
    "check": check,
}

print("ready", flush=True)
for line in sys.stdin:
    if line.strip() == "go":
        continue
    name, *args = json.loads(line)
    try:
        print("ok", json.dumps(calls[name](*args)), flush=True)
    except Exception as error:
        print("error", repr(error), flush=True)
