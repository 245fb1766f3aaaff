"""The store of a run: one SQLite file with one row per cell that has ended.

    meta        the study, and the version of this layout
    runs        the commands that wrote, with scale, versions and machine
    cells       one row per cell: recipe, seed, status, reason, scores, and their provenance
    dependencies   what cells depend on besides their recipes, by digest; stores of earlier versions have none
    instances   sketches of their rows (:mod:`admiss.study.shared_rows`); stores of earlier versions have none

Only the coordinator writes, in one transaction the cells that have ended since the last one. In WAL mode with
``synchronous = FULL`` a commit is on the disk when it returns: neither ``kill -9`` nor a power failure loses a cell
that was written. Readers and the writer do not wait for each other.

After every commit SQLite moves the write-ahead log into the store, unless somebody reads at that moment: after a run
that was killed, the file of the store is whole without its log.

A writer holds a lock on a second file as long as it lives; the system releases it when the process dies. WAL needs
memory that processes share: for others to read during a run, the folder must be on a local disk of the coordinator's
machine.
"""

import contextlib
import hashlib
import json
import os
import sqlite3
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Self

from admiss._version import __version__
from admiss.folder_lock import LOCK, as_engine_error, companions, damaged, forbidden, locked, move, refuse_remains
from admiss.study.plan import Cell, EngineError, Outcome, encodable, origin
from admiss.versions import versions

LAYOUT = 1
FILE = "cells.sqlite"
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


def digest(dependencies: Mapping[str, str]) -> str:
    """The key of what a cell depends on."""
    text = "\n".join(f"{name}\t{value}" for name, value in sorted(dependencies.items()))
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:12]


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
        self._recorded: set[str] = set()  # digests of dependencies
        self._sketched = ("", "")  # the last one: cells of an instance arrive together
        with contextlib.ExitStack() as opened:
            if write:
                opened.enter_context(contextlib.closing(locked(self.folder)))
            if not self.path.exists():
                refuse_remains(self.path)
                if not write:
                    raise EngineError(f"There is no store in {self.folder}: run the study first, or name its folder.")
                _create(self.path, str(study))
            self._connection = opened.enter_context(contextlib.closing(_opened(self.path, write)))
            self.study = self._check(study)
            self._opened = opened.pop_all()

    def close(self) -> None:
        """Close the store and release the lock."""
        with contextlib.suppress(sqlite3.Error):
            self._opened.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def files(self) -> list[Path]:
        """The files of the store, whether they exist or not."""
        return [self.path, self.folder / LOCK, *companions(self.path)]

    def _check(self, study: str | None) -> str:
        """Refuse what is not a store of the study in this layout; returns the name of its study."""
        if not self._has("meta"):
            raise EngineError(f"{self.path} is not a store of cells: {move(self.path)}, or choose another folder.")
        meta = {row["name"]: row["value"] for row in self._dicts("SELECT name, value FROM meta")}
        layout, holds = meta.get("layout", "0"), meta.get("study", "")
        if layout != str(LAYOUT):
            age = "an older" if layout.isdigit() and int(layout) < LAYOUT else "a newer"
            raise EngineError(
                f"{self.path} was written by {age} version of this program (layout {layout}, here {LAYOUT}): "
                f"{move(self.path)}, or choose another folder with --out."
            )
        if study not in (None, holds):
            raise EngineError(
                f"{self.path} holds the study {holds!r}, not {study!r}: choose another folder with --out."
            )
        return holds

    def add(self, cell: Cell, outcome: Outcome) -> None:
        """Write the outcome of a cell, replacing an earlier one."""
        parts = digest(outcome.dependencies)
        instance = json.dumps(cell.recipe["instance"])
        row = {
            "key": cell.key,
            "instance": instance,
            "method": json.dumps(cell.method.recipe),
            "seed": cell.seed,
            "status": outcome.status,
            "reason": outcome.reason,
            "details": outcome.details,
            "scores": json.dumps(outcome.scores, allow_nan=False),
            "elapsed": outcome.elapsed,
            **outcome.origin,
            "digest": parts,
            "pid": outcome.pid,
            "finished": _now(),
        }
        self._write("cells", row)
        if parts not in self._recorded:
            self._write("dependencies", {"digest": parts, "parts": json.dumps(outcome.dependencies)})
            self._recorded.add(parts)
        if outcome.rows and self._sketched != (instance, outcome.rows):
            self._write("instances", {"instance": instance, "sketch": outcome.rows})
            self._sketched = (instance, outcome.rows)

    def add_run(self, command: str, scale: str) -> None:
        """Record a run that is about to write, with the machine and the versions of the coordinator."""
        run = {"started": _now(), "command": command, "scale": scale, "digest": "", "machine": origin()["machine"]}
        self._write("runs", {**run, "versions": json.dumps({**versions(), "admiss": __version__})})

    def _write(self, table: str, row: dict[str, Any]) -> None:
        row = {name: encodable(value) if isinstance(value, str) else value for name, value in row.items()}
        values = ", ".join(f":{name}" for name in row)
        with self.transaction():
            self._connection.execute(f"INSERT OR REPLACE INTO {table} ({', '.join(row)}) VALUES ({values})", row)

    @contextlib.contextmanager
    def transaction(self) -> Iterator[None]:
        """Write what is added inside in one transaction, which is on the disk at the end."""
        if self._connection.in_transaction:
            yield
            return
        with as_engine_error(self.path):
            self._connection.execute("BEGIN IMMEDIATE")
            try:
                yield
                self._connection.execute("COMMIT")
            except BaseException:
                with contextlib.suppress(sqlite3.Error):  # a full disk has rolled it back already
                    self._connection.execute("ROLLBACK")
                raise

    def rows(self) -> list[dict[str, Any]]:
        """All cells, in an order independent of when they ended; instance, method and scores are decoded."""
        rows = self._dicts("SELECT * FROM cells ORDER BY instance, key")
        return [
            {**row, **{name: self._decoded(row[name]) for name in ("instance", "method", "scores")}} for row in rows
        ]

    def states(self) -> dict[str, dict[str, Any]]:
        """Status, reason and digest of every cell, by key."""
        return {row["key"]: row for row in self._dicts("SELECT key, status, reason, digest FROM cells")}

    def runs(self) -> list[dict[str, Any]]:
        """The commands that wrote, in their order; versions as a dict."""
        runs = self._dicts("SELECT * FROM runs ORDER BY rowid")
        return [{**run, "versions": self._decoded(run["versions"])} for run in runs]

    def scales(self) -> list[str]:
        """The distinct scales of those commands."""
        return list(dict.fromkeys(run["scale"] for run in self.runs()))

    def dependencies(self) -> dict[str, dict[str, str]]:
        """What cells depend on, by digest; those of earlier versions have no entry."""
        known = self._dicts("SELECT * FROM dependencies") if self._has("dependencies") else []
        return {row["digest"]: self._decoded(row["parts"]) for row in known}

    def sketches(self) -> list[tuple[dict[str, Any], dict[str, Any]]]:
        """Instances with the sketches of their rows; those of earlier versions are left out."""
        known = self._dicts("SELECT * FROM instances") if self._has("instances") else []
        return [(self._decoded(row["instance"]), self._decoded(row["sketch"])) for row in known]

    def _decoded(self, text: str) -> dict[str, Any]:
        """A dict that was written as JSON; SQLite does not see bytes that have changed inside of a text."""
        try:
            decoded = json.loads(text)
        except (ValueError, TypeError) as error:
            raise EngineError(damaged(self.path, str(error))) from error
        if not isinstance(decoded, dict):
            raise EngineError(damaged(self.path, f"{text:.40} in place of a dict"))
        return decoded

    def _has(self, table: str) -> bool:
        return bool(self._dicts(f"SELECT name FROM sqlite_master WHERE type = 'table' AND name = '{table}'"))

    def _dicts(self, statement: str) -> list[dict[str, Any]]:
        with as_engine_error(self.path):
            cursor = self._connection.execute(statement)
            names = [column[0] for column in cursor.description]
            return [dict(zip(names, row, strict=True)) for row in cursor]


def _create(path: Path, study: str) -> None:
    """Create an empty store under another name and move it in one step: a store that exists is complete."""
    unfinished = path.with_name(f"{path.name}.new")
    for leftover in path.parent.glob(f"{unfinished.name}*"):
        leftover.unlink()
    with as_engine_error(path):
        with contextlib.closing(sqlite3.connect(unfinished, isolation_level=None)) as connection:
            connection.executescript(TABLES)
            connection.execute("INSERT INTO meta VALUES ('study', ?)", (study,))
        os.replace(unfinished, path)


def _opened(path: Path, write: bool) -> sqlite3.Connection:
    """Open a store and check that it is not damaged."""
    if path.stat().st_size == 0:
        raise EngineError(damaged(path, "it is empty"))
    with as_engine_error(path):
        try:
            connection = _checked(path, f"mode={'rw' if write else 'ro'}")
        except sqlite3.OperationalError as error:
            # A reader creates a file next to the store; in a read-only folder the store alone must do.
            wal, _ = companions(path)
            if write or not forbidden(error) or (wal.exists() and wal.stat().st_size):
                raise
            connection = _checked(path, "mode=ro&immutable=1")
        if write:
            connection.execute("PRAGMA synchronous = FULL")
            connection.execute("PRAGMA wal_autocheckpoint = 1")  # pages: the log is moved after every commit
            for table in ADDED:
                connection.execute(table)
    return connection


def _checked(path: Path, options: str) -> sqlite3.Connection:
    address = f"{path.absolute().as_uri()}?{options}"
    connection = sqlite3.connect(address, uri=True, timeout=30, isolation_level=None, check_same_thread=False)
    try:
        (found,) = connection.execute("PRAGMA quick_check(1)").fetchone()
        if found != "ok":
            raise EngineError(damaged(path, " ".join(found.split())))
    except BaseException:
        connection.close()
        raise
    return connection


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
