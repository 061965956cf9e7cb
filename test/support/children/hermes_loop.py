"""
Writes to a state.db as Hermes does, without a pause, from `go` until it is sent another line: adds sessions and
messages, rewrites and deletes messages, deletes sessions. Then says what of that is in the file.
"""

import json
import sqlite3
import sys
import threading
import time

path = sys.argv[1]
db = sqlite3.connect(path, timeout=20.0, isolation_level=None)
db.execute("PRAGMA foreign_keys=ON")
# From here on it knows the schema as it was before.
db.execute("SELECT COUNT(*) FROM messages").fetchone()
kept = {}


def write(*statements):
    db.execute("BEGIN IMMEDIATE")
    try:
        cursors = [db.execute(*statement) for statement in statements]
        db.execute("COMMIT")
        return cursors
    except BaseException:
        if db.in_transaction:
            db.execute("ROLLBACK")
        raise


def append(session, content, timestamp):
    inserted, _ = write(
        (
            "INSERT INTO messages (session_id, role, content, timestamp) VALUES (?, 'user', ?, ?)",
            (session, content, timestamp),
        ),
        ("UPDATE sessions SET message_count = message_count + 1 WHERE id = ?", (session,)),
    )
    return inserted.lastrowid


def round(n):
    session = f"python-{n}"
    db.execute(
        "INSERT INTO sessions (id, source, started_at) VALUES (?, 'telegram', ?)", (session, 5000.0 + n)
    )
    ids = [append(session, f"{word}{n}", 6000.0 + n + index) for index, word in enumerate(["old", "kept", "gone"])]
    db.execute("UPDATE messages SET content = ? WHERE id = ?", (f"new{n}", ids[0]))
    write(
        ("DELETE FROM messages WHERE id = ?", (ids[2],)),
        ("UPDATE sessions SET message_count = message_count - 1 WHERE id = ?", (session,)),
    )
    kept[session] = [f"new{n}", f"kept{n}"]
    if n % 3 == 2:
        session = f"python-{n - 1}"
        write(
            ("DELETE FROM messages WHERE session_id = ?", (session,)),
            ("DELETE FROM sessions WHERE id = ?", (session,)),
        )
        del kept[session]


print("ready", flush=True)
sys.stdin.readline()
stop = threading.Event()
threading.Thread(target=lambda: (sys.stdin.readline(), stop.set()), daemon=True).start()
try:
    n = 0
    while not stop.is_set():
        round(n)
        n += 1
        print("round", n, flush=True)
        time.sleep(0.001)
    db.execute("INSERT INTO messages_fts(messages_fts, rank) VALUES('integrity-check', 1)")
    print("ok", json.dumps(kept), flush=True)
except Exception as error:
    print("error", repr(error), flush=True)
