"""What goes wrong with the files of a store, in sentences."""

import contextlib
import errno
import shutil
import sqlite3
from collections.abc import Iterator
from pathlib import Path

from admiss.study.errors import EngineError

# Bytes below which a disk on which writing fails is called full.
FULL_DISK = 2**20


@contextlib.contextmanager
def explained(path: Path) -> Iterator[None]:
    """What SQLite and the system say about a file, in one sentence."""
    try:
        yield
    except sqlite3.Error as error:
        raise EngineError(_sentence(path, error)) from error
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise EngineError(_full(path)) from error
        raise EngineError(f"{path} cannot be written ({error.strerror}).") from error


def _sentence(path: Path, error: sqlite3.Error) -> str:
    name = getattr(error, "sqlite_errorname", "")
    if name.startswith("SQLITE_BUSY") or name.startswith("SQLITE_LOCKED"):
        return f"Another run is writing to {path.parent}: wait until it ends, or choose another folder with --out."
    if name == "SQLITE_FULL" or (name.startswith("SQLITE_IOERR") and _free(path) < FULL_DISK):
        return _full(path)
    if name.startswith("SQLITE_IOERR"):  # a quota that is used up has no name of its own
        return (
            f"{path} cannot be read or written ({error}): the quota may be used up, or the disk fails; the cells that "
            f"were finished are safe, and the same command continues."
        )
    if forbidden(error):
        return f"{path} cannot be opened or written ({error}): check the rights, or choose another folder with --out."
    if name.startswith(("SQLITE_CORRUPT", "SQLITE_NOTADB")):
        return damaged(path, str(error))
    return f"The store {path} cannot be used: {error}."


def forbidden(error: sqlite3.Error) -> bool:
    """Whether rights are missing."""
    name = getattr(error, "sqlite_errorname", "")
    return name.startswith(("SQLITE_READONLY", "SQLITE_CANTOPEN", "SQLITE_PERM"))


def _full(path: Path) -> str:
    return (
        f"The disk of {path.parent} is full, or the quota on it used up: the cells that were finished are safe; make "
        f"room, and the same command continues."
    )


def damaged(path: Path, words: str) -> str:
    """What is said of a file that cannot be read."""
    return (
        f"{path} is truncated, damaged or no store of cells ({words}): restore a copy, or {move(path)}, and run again."
    )


def move(path: Path) -> str:
    """What to do with it: SQLite would add what the other files hold to the next store."""
    wal, shm = companions(path)
    return f"move it away together with {wal.name} and {shm.name} where they are there"


def _free(path: Path) -> float:
    try:
        return shutil.disk_usage(path.parent).free
    except OSError:
        return float("inf")


def companions(path: Path) -> list[Path]:
    """The files that SQLite has beside a store: what is not yet moved into it, and memory that processes share."""
    return [path.with_name(f"{path.name}{ending}") for ending in ("-wal", "-shm")]
