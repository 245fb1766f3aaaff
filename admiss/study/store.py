"""The store of a run: one SQLite file with one row per cell that has ended.

    meta        the study, and the version of this layout
    runs        the commands that wrote, with scale, versions and machine
    cells       one row per cell: recipe, seed, status, reason, scores, and their provenance

Only the coordinator writes, one transaction per cell. In WAL mode with ``synchronous = FULL`` a commit is on the disk
when it returns: neither ``kill -9`` nor a power failure loses a cell that was written. Readers and the writer do not
wait for each other.

A writer holds a lock on a second file as long as it lives; the system releases it when the process dies. WAL needs
memory that processes share: for others to read during a run, the folder must be on a local disk of the coordinator's
machine.
"""

import contextlib
import json
import os
import sqlite3
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Self

from admiss.study.outcome import Outcome, encodable
from admiss.study.store_errors import companions, damaged, explained, forbidden, move
from admiss.study.study import Cell, EngineError

LAYOUT = 1
FILE, LOCK = "cells.sqlite", "lock.sqlite"
TABLES = f"""
PRAGMA journal_mode = WAL;
BEGIN;
CREATE TABLE meta (name TEXT PRIMARY KEY, value TEXT NOT NULL);
INSERT INTO meta VALUES ('layout', '{LAYOUT}');
CREATE TABLE runs (started TEXT NOT NULL, command TEXT NOT NULL, scale TEXT NOT NULL, digest TEXT NOT NULL,
    machine TEXT NOT NULL, versions TEXT NOT NULL);
CREATE TABLE cells (
    key TEXT PRIMARY KEY,
    instance TEXT NOT NULL,
    method TEXT NOT NULL,
    seed INTEGER NOT NULL,
    status TEXT NOT NULL CHECK (status IN ('done', 'failed')),
    reason TEXT CHECK ((reason IS NULL) = (status = 'done')),
    details TEXT,
    scores TEXT NOT NULL,
    elapsed REAL NOT NULL,
    version TEXT NOT NULL,
    digest TEXT NOT NULL,
    machine TEXT NOT NULL,
    pid INTEGER NOT NULL,
    finished TEXT NOT NULL
);
COMMIT;
"""


class Store:
    """The cells of a folder.

    Parameters
    ----------
    folder : path
    study : str, optional
        Name of the study whose store it must be; required for a new store.
    write : bool
        Whether cells will be added. The folder and the store are created if they do not exist.
    """

    def __init__(self, folder: str | Path, study: str | None = None, *, write: bool = False) -> None:
        self.folder = Path(folder)
        self.path = self.folder / FILE
        self._lock: sqlite3.Connection | None = None
        self._connection: sqlite3.Connection | None = None
        try:
            if write:
                self._lock = _locked(self.folder)
            if not self.path.exists():
                _refuse_remains(self.path)
            if write and not self.path.exists():
                _create(self.path, str(study))
            elif not self.path.exists():
                raise EngineError(f"There is no store in {self.folder}: run the study first, or name its folder.")
            self._connection = _opened(self.path, write)
            self._check(study)
        except BaseException:
            self.close()
            raise

    def _check(self, study: str | None) -> None:
        with explained(self.path):
            names = {name for (name,) in self._ask("SELECT name FROM sqlite_master WHERE type = 'table'")}
            if "meta" not in names:
                raise EngineError(f"{self.path} is not a store of cells: {move(self.path)}, or choose another folder.")
            meta = dict(self._ask("SELECT name, value FROM meta"))
        layout = meta.get("layout", "0")
        if layout != str(LAYOUT):
            age = "an older" if layout.isdigit() and int(layout) < LAYOUT else "a newer"
            raise EngineError(
                f"{self.path} was written by {age} version of this program (layout {layout}, here {LAYOUT}): "
                f"{move(self.path)}, or choose another folder with --out."
            )
        self.study = meta.get("study", "")
        if study is not None and study != self.study:
            raise EngineError(
                f"{self.path} holds the study {self.study!r}, not {study!r}: choose another folder with --out."
            )

    def add(self, cell: Cell, outcome: Outcome) -> None:
        """Write the outcome of a cell, replacing an earlier one."""
        recipe = cell.recipe
        row = {
            "key": cell.key,
            "instance": json.dumps(recipe["instance"]),
            "method": json.dumps(recipe["method"]),
            "seed": cell.seed,
            "status": outcome.status,
            "reason": outcome.reason,
            "details": outcome.details,
            "scores": json.dumps(outcome.scores, allow_nan=False),
            "elapsed": outcome.elapsed,
            **outcome.origin,
            "pid": outcome.pid,
            "finished": now(),
        }
        self._write("cells", row)

    def add_run(self, run: dict[str, str]) -> None:
        """Record a run that is about to write: command, scale, digest, machine, versions."""
        self._write("runs", {"started": now(), **run})

    def _write(self, table: str, row: dict[str, Any]) -> None:
        row = {name: encodable(value) if isinstance(value, str) else value for name, value in row.items()}
        values = ", ".join(f":{name}" for name in row)
        with explained(self.path):
            # Without an explicit BEGIN every statement is a transaction.
            self._ask(f"INSERT OR REPLACE INTO {table} ({', '.join(row)}) VALUES ({values})", row)

    def rows(self) -> list[dict[str, Any]]:
        """All cells, in an order independent of when they ended; instance, method and scores are decoded."""
        return [
            {**row, **{name: json.loads(row[name]) for name in ("instance", "method", "scores")}}
            for row in self._dicts("SELECT * FROM cells ORDER BY instance, key")
        ]

    def states(self) -> dict[str, dict[str, Any]]:
        """Status, reason, digest and elapsed time of every cell, by key."""
        return {row["key"]: row for row in self._dicts("SELECT key, status, reason, digest, elapsed FROM cells")}

    def runs(self) -> list[dict[str, Any]]:
        """The commands that wrote, in their order; versions as a dict."""
        runs = self._dicts("SELECT * FROM runs ORDER BY rowid")
        return [{**run, "versions": json.loads(run["versions"])} for run in runs]

    def scales(self) -> list[str]:
        """The distinct scales of those commands."""
        return list(dict.fromkeys(run["scale"] for run in self.runs()))

    def _dicts(self, question: str) -> list[dict[str, Any]]:
        with explained(self.path):
            cursor = self._ask(question)
            names = [column[0] for column in cursor.description]
            return [dict(zip(names, row, strict=True)) for row in cursor]

    def _ask(self, question: str, values: Any = ()) -> sqlite3.Cursor:
        assert self._connection is not None
        return self._connection.execute(question, values)

    def close(self) -> None:
        """Close the store and release the lock."""
        for connection in (self._connection, self._lock):
            if connection is not None:
                with contextlib.suppress(sqlite3.Error):
                    connection.close()
        self._connection = self._lock = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def now() -> str:
    """Current time as ISO text."""
    return datetime.now(UTC).isoformat(timespec="seconds")


def _locked(folder: Path) -> sqlite3.Connection:
    """Open a connection that holds the lock of a folder until it is closed or its process dies."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise EngineError(
            f"The folder {folder} cannot be made ({error.strerror}): choose another with --out."
        ) from None
    path = folder / LOCK
    with explained(path):
        connection = sqlite3.connect(path, timeout=0, isolation_level=None, check_same_thread=False)
        try:
            connection.execute("BEGIN EXCLUSIVE")
        except BaseException:
            connection.close()
            raise
    return connection


def _refuse_remains(path: Path) -> None:
    """Refuse files left over from a lost store: SQLite would write their content into a new one."""
    remains = [str(other) for other in companions(path) if other.exists()]
    if remains:
        raise EngineError(
            f"{path} is missing, but {' and '.join(remains)} may hold cells of it: restore it, or move "
            f"{'them' if len(remains) > 1 else 'that'} away and run again."
        )


def _create(path: Path, study: str) -> None:
    """Create an empty store under another name and move it in one step: a store that exists is complete."""
    unfinished = path.with_name(f"{path.name}.new")
    for leftover in path.parent.glob(f"{unfinished.name}*"):
        leftover.unlink()
    with explained(path):
        with contextlib.closing(sqlite3.connect(unfinished, isolation_level=None)) as connection:
            connection.executescript(TABLES)
            connection.execute("INSERT INTO meta VALUES ('study', ?)", (study,))
        os.replace(unfinished, path)


def _opened(path: Path, write: bool) -> sqlite3.Connection:
    """Open a store and check that it is not damaged."""
    if path.stat().st_size == 0:
        raise EngineError(damaged(path, "it is empty"))
    with explained(path):
        try:
            connection, found = _checked(path, f"mode={'rw' if write else 'ro'}")
        except sqlite3.OperationalError as error:
            # A reader creates a file beside the store; in a read-only folder the store alone must do.
            wal, _ = companions(path)
            if write or not forbidden(error) or (wal.exists() and wal.stat().st_size):
                raise
            connection, found = _checked(path, "mode=ro&immutable=1")
        if write:
            connection.execute("PRAGMA synchronous = FULL")
    if found != "ok":
        connection.close()
        raise EngineError(damaged(path, " ".join(found.split())))
    return connection


def _checked(path: Path, options: str) -> tuple[sqlite3.Connection, str]:
    """Open a connection, and return it with the result of SQLite's check (``ok`` if nothing is wrong)."""
    address = f"{path.absolute().as_uri()}?{options}"
    connection = sqlite3.connect(address, uri=True, timeout=30, isolation_level=None, check_same_thread=False)
    try:
        (found,) = connection.execute("PRAGMA quick_check(1)").fetchone()
    except BaseException:
        connection.close()
        raise
    return connection, found
