"""The lock of a folder, and problems with files of SQLite, each in one sentence."""

import contextlib
import errno
import shutil
import sqlite3
from collections.abc import Iterator
from pathlib import Path

from admiss.atomic_write import EngineError

LOCK = "lock.sqlite"


def locked(folder: Path) -> sqlite3.Connection:
    """Open a connection that holds the lock of a folder until it is closed or its process dies."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise EngineError(
            f"The folder {folder} cannot be made ({error.strerror}): choose another with --out."
        ) from None
    path = folder / LOCK
    with as_engine_error(path):
        connection = sqlite3.connect(path, timeout=0, isolation_level=None, check_same_thread=False)
        try:
            connection.execute("BEGIN EXCLUSIVE")
        except BaseException:
            connection.close()
            raise
    return connection


@contextlib.contextmanager
def as_engine_error(path: Path) -> Iterator[None]:
    """Turn errors of SQLite and the system about a file into one sentence."""
    try:
        yield
    except sqlite3.Error as error:
        raise EngineError(_sentence(path, error)) from error
    except UnicodeDecodeError as error:  # text of SQLite
        raise EngineError(damaged(path, str(error))) from error
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise EngineError(_full(path)) from error
        raise EngineError(f"{path} cannot be written ({error.strerror}).") from error


def _sentence(path: Path, error: sqlite3.Error) -> str:
    name = getattr(error, "sqlite_errorname", "")
    if name.startswith("SQLITE_BUSY") or name.startswith("SQLITE_LOCKED"):
        return f"Another run is writing to {path.parent}: wait until it ends, or choose another folder with --out."
    # SQLite grows files by less than a megabyte
    if name == "SQLITE_FULL" or (name.startswith("SQLITE_IOERR") and _free(path) < 2**20):
        return _full(path)
    if name.startswith("SQLITE_IOERR"):  # an exhausted quota has no error name of its own
        return (
            f"{path} cannot be read or written ({error}): the quota may be used up, or the disk fails; the cells that "
            f"were finished are safe, and the same command continues."
        )
    if forbidden(error):
        return f"{path} cannot be opened or written ({error}): check permissions, or choose another folder with --out."
    if name.startswith(("SQLITE_CORRUPT", "SQLITE_NOTADB")):
        return damaged(path, str(error))
    return f"The store {path} cannot be used: {error}."


def forbidden(error: sqlite3.Error) -> bool:
    """Whether permissions are missing."""
    name = getattr(error, "sqlite_errorname", "")
    return name.startswith(("SQLITE_READONLY", "SQLITE_CANTOPEN", "SQLITE_PERM"))


def _full(path: Path) -> str:
    return (
        f"The disk of {path.parent} is full, or the quota on it used up: the cells that were finished are safe; make "
        f"room, and the same command continues."
    )


def damaged(path: Path, words: str) -> str:
    """Sentence about a file that cannot be read."""
    problem = f"{path} is truncated, damaged or not a store of cells ({words})"
    return f"{problem}: restore a copy, or {move(path)}, and run again."


def move(path: Path) -> str:
    """Advice to move a file with its companions, whose content SQLite would add to the next store."""
    wal, shm = companions(path)
    return f"move it away together with {wal.name} and {shm.name} if they exist"


def _free(path: Path) -> float:
    try:
        return shutil.disk_usage(path.parent).free
    except OSError:
        return float("inf")


def companions(path: Path) -> list[Path]:
    """The files that SQLite keeps next to a store: the write-ahead log, and memory shared by processes."""
    return [path.with_name(f"{path.name}{ending}") for ending in ("-wal", "-shm")]


def refuse_remains(path: Path) -> None:
    """Refuse what a lost file of SQLite has left: it would be written into a new one."""
    remains = [str(other) for other in companions(path) if other.exists()]
    if remains:
        raise EngineError(
            f"{path} is missing, but {' and '.join(remains)} may hold cells of it: restore it, or move "
            f"{'them' if len(remains) > 1 else 'that'} away and run again."
        )
