"""Files that appear once they are complete and never in place of what is read, and folders that one process writes."""

import os
import uuid
from collections.abc import Hashable, Iterable
from pathlib import Path
from typing import IO

# A file and the option or argument that names it.
NamedFile = tuple[str, Path]


class EngineError(Exception):
    """A run, a store or a worker that cannot continue, in one sentence that says what to do."""


class OverwriteError(ValueError):
    """An output that is an input or another output, in one sentence."""


def check_outputs(outputs: Iterable[NamedFile], inputs: Iterable[NamedFile] = ()) -> None:
    """Refuse outputs that are a file to be read, under whatever name, the same file as another output, or a device.

    Files that exist are the same if links lead to one of them or hard links share it; paths without a file are the
    same if they resolve to one path.

    Examples
    --------
    >>> check_outputs([("--out", Path("a.csv")), ("--html", Path("b/../a.csv"))])
    Traceback (most recent call last):
    admiss.atomic_write.OverwriteError: --html b/../a.csv is the file that --out writes too: name another file.
    """
    read: dict[Hashable, NamedFile] = {}
    for named in inputs:
        read.setdefault(_identity(named[1]), named)
    written: dict[Hashable, str] = {}
    for name, path in outputs:
        identity = _identity(path)
        if path.exists() and not (path.is_file() or path.is_dir()):
            raise OverwriteError(f"{name} {path} is a device or a pipe, which files would replace: name a file.")
        if identity in read:
            raise OverwriteError(f"{name} {path} is a file that is read ({read[identity][0]}): name another file.")
        if identity in written:
            raise OverwriteError(f"{name} {path} is the file that {written[identity]} writes too: name another file.")
        written[identity] = name


def _identity(path: Path) -> Hashable:
    """What two names of one file share."""
    try:
        status = path.stat()
    except OSError:  # there is no file yet
        return os.path.normcase(path.resolve())
    return status.st_dev, status.st_ino


def write_atomically(path: Path, content: bytes) -> None:
    """Write a file and its parent folders; no reader ever sees a part of the content under this name.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     write_atomically(Path(folder, "new", "file"), b"content")
    ...     Path(folder, "new", "file").read_bytes()
    b'content'
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    # Not a file of tempfile, which the other users of a shared folder could not read.
    unfinished = path.with_name(f".{uuid.uuid4().hex}.part")
    try:
        with unfinished.open("xb") as file:
            file.write(content)
            flush(file)
        os.replace(unfinished, path)
    finally:
        unfinished.unlink(missing_ok=True)


def flush(file: IO[bytes]) -> None:
    """Wait until what was written is on disk: after a loss of power, a name must not lead to an empty file."""
    file.flush()
    os.fsync(file.fileno())


def sentence_of(error: OSError) -> str:
    """What the system refused, without the number of the error.

    Examples
    --------
    >>> sentence_of(PermissionError(13, "Permission denied", "rows.csv"))
    'rows.csv cannot be used: permission denied.'
    """
    if error.strerror is None:
        return str(error)
    reason = error.strerror[:1].lower() + error.strerror[1:]
    return f"{error.filename or 'A file'} cannot be used: {reason}."
