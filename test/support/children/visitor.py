"""Another program that opens each file it is sent, reads it and closes it. Knows nothing of this package."""

import sqlite3
import sys

print("ready", flush=True)
sys.stdin.readline()
for line in sys.stdin:
    db = sqlite3.connect(line.rstrip("\n"))
    (count,) = db.execute("SELECT COUNT(*) FROM messages").fetchone()
    db.close()
    print("visited", count, flush=True)
