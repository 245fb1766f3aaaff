"""Delete coverage data that a killed process left half written: tests kill processes at any moment."""

import sqlite3
import sys
from pathlib import Path


def _is_complete(path: Path) -> bool:
    try:
        with sqlite3.connect(path) as database:
            sound = database.execute("PRAGMA integrity_check").fetchone() == ("ok",)
            return sound and database.execute("SELECT value FROM meta WHERE key = 'has_arcs'").fetchone() == ("1",)
    except sqlite3.DatabaseError:
        return False


files = list(Path(sys.argv[1]).glob("data.*"))
incomplete = [path for path in files if not _is_complete(path)]
for path in incomplete:
    path.unlink()
print(f"coverage of {len(files) - len(incomplete)} processes; {len(incomplete)} were killed while they wrote theirs")
