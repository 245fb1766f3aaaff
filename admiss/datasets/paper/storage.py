"""Raw files of data sets: from a folder of the user, the cache or the network.

A file is looked up in this order, and is accepted only if it has the expected SHA-256.

1. The folder named by ``ADMISS_DATA``. A file with another SHA-256 is an error.
2. The cache folder (``ADMISS_CACHE``). A file with another SHA-256 is damaged and is replaced.
3. Its URL, by pooch (``pip install "admiss[data]"``).

A download is held in memory until it is complete and verified, and then written atomically. Whatever happens, the cache
holds either the file as it was or the right one, and concurrent readers get the right bytes. pooch does the transfer
only: its own cache fails if its folder cannot be written, creates files that other users cannot read, and retries
permanent errors.
"""

import hashlib
import io
import os
import time
import warnings
from dataclasses import dataclass
from pathlib import Path

from admiss.atomic_write import write_atomically
from admiss.datasets.paper.cached import cache_folder

# Seconds to wait for a connection, and between two chunks of a response: the largest file has 1.6 megabytes.
TIMEOUT = (10.0, 30.0)


class DataUnavailableError(OSError):
    """A raw file is absent and cannot be downloaded, or is not the right one."""


@dataclass(frozen=True)
class DataFile:
    """A raw file.

    Attributes
    ----------
    path : str
        Its path within a data folder and within the cache.
    url : str
    sha256 : str
        The checksum of its bytes, as 64 hexadecimal digits.
    """

    path: str
    url: str
    sha256: str

    @property
    def cache_path(self) -> Path:
        """Its absolute path in the cache."""
        return cache_folder() / self.path


def read_file(file: DataFile) -> bytes:
    """The bytes of a file, from the folder, the cache or the network.

    Examples
    --------
    >>> url = "http://archive.ics.uci.edu/ml/machine-learning-databases/lung-cancer/lung-cancer.data"
    >>> checksum = "5fe074a5e4b44816e958b3f37503b1357a1543daa7eee77485040b0e3aef18f1"
    >>> read_file(DataFile("uci/lung-cancer/lung-cancer.data", url, checksum))[:9]  # doctest: +SKIP
    b'1,0,3,0,?'
    """
    content = read_from_folder(file.path, file.sha256)
    if content is None:
        content = _read_cached(file)
    return _download(file) if content is None else content


def read_from_folder(path: str, sha256: str) -> bytes | None:
    """The bytes of a file in the folder named by ``ADMISS_DATA``, or None if there is no such folder or file."""
    named = os.environ.get("ADMISS_DATA")
    if not named:
        return None
    folder = Path(named).expanduser().absolute()
    if not os.path.isdir(folder):
        raise DataUnavailableError(f"ADMISS_DATA is {named!r}, but {folder} is not a folder: correct or unset it.")
    file = folder / path
    try:
        content = file.read_bytes()
    except (FileNotFoundError, NotADirectoryError, IsADirectoryError):
        return None
    except OSError as error:
        raise DataUnavailableError(f"{file}, in the folder ADMISS_DATA, cannot be read: {error.strerror}.") from error
    found = hashlib.sha256(content).hexdigest()
    if found != sha256:
        raise DataUnavailableError(
            f"{file} is not the expected file, as its SHA-256 is {found} and not {sha256}: replace or remove it."
        )
    return content


def stored_paths(path: str) -> list[Path]:
    """The places on this machine where a raw file is looked for."""
    named = os.environ.get("ADMISS_DATA")
    folders = [Path(named).expanduser().absolute()] if named else []
    return [folder / path for folder in (*folders, cache_folder())]


def _read_cached(file: DataFile) -> bytes | None:
    """The bytes of a file in the cache, or None if it is absent, damaged or unreadable."""
    try:
        content = file.cache_path.read_bytes()
    except OSError:
        return None
    return content if hashlib.sha256(content).hexdigest() == file.sha256 else None


def _download(file: DataFile) -> bytes:
    """Download and verify a file, and store it in the cache."""
    content = _fetch(file)
    found = hashlib.sha256(content).hexdigest()
    if found != file.sha256:
        raise _unavailable(file, f"the downloaded file has the SHA-256 {found} and not {file.sha256}:")
    try:
        write_atomically(file.cache_path, content)
    except OSError as error:
        # Windows does not replace a file that another process has open, and that process may be reading the right one.
        if _read_cached(file) is None:
            warnings.warn(
                f"{file.path} was downloaded but cannot be stored as {file.cache_path} ({error.strerror}), and will be "
                "downloaded again: free some space, or set ADMISS_CACHE to a writable folder.",
                stacklevel=3,
            )
    return content


def _fetch(file: DataFile) -> bytes:
    """The content at the URL; a second attempt is made after errors that may be temporary."""
    try:
        import pooch
    except ImportError as error:
        raise _unavailable(file, "downloading needs pooch: run 'pip install \"admiss[data]\"', or") from error
    for attempt in (1, 2):
        received = io.BytesIO()
        try:
            pooch.HTTPDownloader(timeout=TIMEOUT)(file.url, received, None)
            return received.getvalue()
        except (OSError, ValueError) as error:  # those of requests, or a malformed URL or response
            response = getattr(error, "response", None)
            reason = type(error).__name__ if response is None else f"HTTP {response.status_code}"
            is_permanent = isinstance(error, ValueError) or (response is not None and response.status_code < 500)
            if attempt == 2 or is_permanent:
                raise _unavailable(file, f"the download failed ({reason}):") from error
        time.sleep(1.0)
    raise AssertionError("not reached")


def _unavailable(file: DataFile, reason: str) -> DataUnavailableError:
    """The error that says which file is needed, where to get it, and where to put it."""
    damaged = ", as its copy in the cache is damaged" if os.path.isfile(file.cache_path) else ""
    named = os.environ.get("ADMISS_DATA")
    folder = f"as {Path(named).expanduser().absolute() / file.path}" if named else f"as {file.path} into a folder"
    return DataUnavailableError(
        f"{file.path} is needed from {file.url}{damaged}, and {reason} put that file {folder} "
        f"{'(ADMISS_DATA)' if named else 'named by ADMISS_DATA'}, or as {file.cache_path}."
    )
