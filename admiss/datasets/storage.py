"""Raw files of data sets: a folder of the user, the cache, the network.

A file is looked for in this order, and is passed on only if its SHA-256 is the one that is asked for.

1. The folder named by ``ADMISS_DATA``. A file that is there and has another SHA-256 is refused.
2. The cache: the folder named by ``ADMISS_CACHE``, or ``admiss`` among the user's caches. A file that is there and has
   another SHA-256 is damaged, and is replaced.
3. Its address, by pooch (``pip install "admiss[data]"``).

A download is held in memory until it is whole and checked, is then written under another name beside its place in the
cache, and is moved there in one step. However it ends, the cache has the file as it was or the right one, and whoever
loads the same file at the same time has the right bytes.
"""

import hashlib
import os
import sys
import time
import uuid
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from admiss.terminal.progress import counter

# Seconds to wait for a connection, and between two pieces of an answer.
TIMEOUT = (10.0, 30.0)
ATTEMPTS = 2
SECONDS_BETWEEN_ATTEMPTS = 1.0
# Ten times the largest of the files.
LARGEST_DOWNLOAD = 16 * 2**20


class DataUnavailableError(OSError):
    """A raw file is not here and cannot be fetched, or is not the right one."""


@dataclass(frozen=True)
class DataFile:
    """A raw file.

    Attributes
    ----------
    path : str
        Its place in a data folder and in the cache.
    url : str
        Its address.
    sha256 : str
        The checksum of its bytes, as 64 hexadecimal digits.
    """

    path: str
    url: str
    sha256: str


def read_file(file: DataFile) -> bytes:
    """The bytes of a file, from the folder, the cache or the network.

    Examples
    --------
    >>> address = "http://archive.ics.uci.edu/ml/machine-learning-databases/lung-cancer/lung-cancer.data"
    >>> checksum = "5fe074a5e4b44816e958b3f37503b1357a1543daa7eee77485040b0e3aef18f1"
    >>> read_file(DataFile("uci/lung-cancer/lung-cancer.data", address, checksum))[:9]  # doctest: +SKIP
    b'1,0,3,0,?'
    """
    content = read_from_folder(file.path, file.sha256)
    if content is None:
        content = _if_right(_place(file), file.sha256)
    return _download(file) if content is None else content


def read_from_folder(path: str, sha256: str) -> bytes | None:
    """The bytes of a file in the folder named by ``ADMISS_DATA``, or None where there is no such folder or file."""
    named = os.environ.get("ADMISS_DATA")
    if not named:
        return None
    folder = Path(named).expanduser().absolute()
    if not os.path.isdir(folder):
        raise DataUnavailableError(f"ADMISS_DATA is {named!r}, and {folder} is not a folder: correct or unset it.")
    place = folder / path
    try:
        content = place.read_bytes()
    except (FileNotFoundError, NotADirectoryError, IsADirectoryError):
        return None
    except OSError as error:
        raise DataUnavailableError(f"{place}, in the folder ADMISS_DATA, cannot be read: {error.strerror}.") from error
    found = hashlib.sha256(content).hexdigest()
    if found != sha256:
        raise DataUnavailableError(
            f"{place} is not the file that is meant, as its SHA-256 is {found} and not {sha256}: replace or remove it."
        )
    return content


def cache_folder() -> Path:
    """The folder named by ``ADMISS_CACHE``, or ``admiss`` among the user's caches; it need not exist.

    Examples
    --------
    >>> cache_folder().is_absolute()
    True
    """
    named = os.environ.get("ADMISS_CACHE")
    if named:
        return Path(named).expanduser().absolute()
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local") / "admiss" / "Cache"
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches" / "admiss"
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache").absolute() / "admiss"


def write_whole(place: Path, content: bytes) -> None:
    """Write a file, and its folders, such that at no time a part of it is there under its name.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     write_whole(Path(folder, "new", "file"), b"content")
    ...     Path(folder, "new", "file").read_bytes()
    b'content'
    """
    place.parent.mkdir(parents=True, exist_ok=True)
    # Not a file of tempfile, which no other user of a shared cache could read.
    beside = place.with_name(f".{uuid.uuid4().hex}.part")
    try:
        with beside.open("xb") as file:
            file.write(content)
        os.replace(beside, place)
    finally:
        beside.unlink(missing_ok=True)


def _place(file: DataFile) -> Path:
    """Where the cache has a file."""
    return cache_folder() / file.path


def _if_right(place: Path, sha256: str) -> bytes | None:
    """The bytes of a file of the cache, or None where it is absent, damaged or unreadable: then it is replaced."""
    try:
        content = place.read_bytes()
    except OSError:
        return None
    return content if hashlib.sha256(content).hexdigest() == sha256 else None


def _download(file: DataFile) -> bytes:
    """Fetch, check and keep a file."""
    content = _fetch(file)
    found = hashlib.sha256(content).hexdigest()
    if found != file.sha256:
        raise _unavailable(file, f"what came from there has the SHA-256 {found} and not {file.sha256}:")
    try:
        write_whole(_place(file), content)
    except OSError as error:
        # Windows replaces no file that another process has open, and that one may be reading the right file already.
        if _if_right(_place(file), file.sha256) is None:
            warnings.warn(
                f"{file.path} was downloaded and cannot be kept as {_place(file)} ({error.strerror}), so that it will "
                "be downloaded again: make room there, or set ADMISS_CACHE to a folder that can be written.",
                stacklevel=3,
            )
    return content


def _fetch(file: DataFile) -> bytes:
    """What is at the address; a failure that may pass is given a second attempt."""
    try:
        import pooch
    except ImportError as error:
        raise _unavailable(file, "downloading needs pooch: run 'pip install \"admiss[data]\"', or") from error
    failure: Exception
    for attempt in range(ATTEMPTS):
        time.sleep(SECONDS_BETWEEN_ATTEMPTS * attempt)
        try:
            with counter(f"downloading {file.path}") as tell:
                arriving = _Arriving(tell)
                pooch.HTTPDownloader(progressbar=arriving, timeout=TIMEOUT)(file.url, arriving, None)
            return bytes(arriving.content)
        except ValueError as error:  # too large, or an address or an answer without sense
            failure, reason = error, str(error)
            break
        except OSError as error:  # every error of requests is one
            failure, reason = error, type(error).__name__
            response = getattr(error, "response", None)
            if response is not None:
                reason = f"HTTP {response.status_code}"
                if response.status_code < 500:
                    break
    raise _unavailable(file, f"the download failed ({reason}):") from failure


class _Arriving:
    """What pooch writes to, and the progress bar that it tells the total."""

    def __init__(self, tell: Callable[[int, int], None]) -> None:
        self.content = bytearray()
        self.total = 0
        self._tell = tell

    def write(self, piece: bytes) -> None:
        self.content += piece
        if len(self.content) > LARGEST_DOWNLOAD:
            raise ValueError(f"more than {LARGEST_DOWNLOAD:,} bytes")
        self._tell(len(self.content), max(self.total, len(self.content)))

    def flush(self) -> None:
        """Part of a file; nothing is held back."""

    def update(self, size: int) -> None:
        """Part of a progress bar; ``write`` knows the size."""

    def reset(self) -> None:
        """Part of a progress bar."""

    def close(self) -> None:
        """Part of a progress bar."""


def _unavailable(file: DataFile, reason: str) -> DataUnavailableError:
    """The error that says which file is needed, from where, and where it goes."""
    damaged = ", as its copy in the cache is damaged" if os.path.isfile(_place(file)) else ""
    named = os.environ.get("ADMISS_DATA")
    folder = f"as {Path(named).expanduser().absolute() / file.path}" if named else f"as {file.path} into a folder"
    return DataUnavailableError(
        f"{file.path} is needed from {file.url}{damaged}, and {reason} put that file {folder} "
        f"{'(ADMISS_DATA)' if named else 'that ADMISS_DATA names'}, or as {_place(file)}."
    )
