"""The files of a store: how they are created, locked, opened and checked."""

import contextlib
import os
import sqlite3
from pathlib import Path

from admiss.study.plan import EngineError
from admiss.study.store_errors import companions, damaged, explained, forbidden

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
# Tables that stores of earlier versions do not have.
ADDED = (
    "CREATE TABLE IF NOT EXISTS dependencies (digest TEXT PRIMARY KEY, parts TEXT NOT NULL)",
    "CREATE TABLE IF NOT EXISTS instances (instance TEXT PRIMARY KEY, sketch TEXT NOT NULL)",
)


def locked(folder: Path) -> sqlite3.Connection:
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


def refuse_remains(path: Path) -> None:
    """Refuse files left over from a lost store: SQLite would write their content into a new one."""
    remains = [str(other) for other in companions(path) if other.exists()]
    if remains:
        raise EngineError(
            f"{path} is missing, but {' and '.join(remains)} may hold cells of it: restore it, or move "
            f"{'them' if len(remains) > 1 else 'that'} away and run again."
        )


def create(path: Path, study: str) -> None:
    """Create an empty store under another name and move it in one step: a store that exists is complete."""
    unfinished = path.with_name(f"{path.name}.new")
    for leftover in path.parent.glob(f"{unfinished.name}*"):
        leftover.unlink()
    with explained(path):
        with contextlib.closing(sqlite3.connect(unfinished, isolation_level=None)) as connection:
            connection.executescript(TABLES)
            connection.execute("INSERT INTO meta VALUES ('study', ?)", (study,))
        os.replace(unfinished, path)


def opened(path: Path, write: bool) -> sqlite3.Connection:
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
            for table in ADDED:
                connection.execute(table)
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
