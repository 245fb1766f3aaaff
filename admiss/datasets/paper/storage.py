"""Files: raw data from a folder of the user, the cache or the network, and results of long computations in the cache.

A raw file is looked up in this order, and is accepted only if it has the expected SHA-256.

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
import sys
import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from admiss.atomic_write import write_atomically

Array = np.ndarray[Any, Any]

# Seconds to wait for a connection, and between two chunks of a response: the largest file has 1.6 megabytes.
TIMEOUT = (10.0, 30.0)


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


class DataUnavailableError(OSError):
    """A raw file is absent and cannot be downloaded, or is not the right one."""


@dataclass(frozen=True)
class DataFile:
    """A raw file; ``path`` is within a data folder and within the cache."""

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
    checksum = hashlib.sha256(content).hexdigest()
    if checksum != sha256:
        raise DataUnavailableError(
            f"{file} is not the expected file, as its SHA-256 is {checksum} and not {sha256}: replace or remove it."
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
    checksum = hashlib.sha256(content).hexdigest()
    if checksum != file.sha256:
        raise _unavailable(file, f"the downloaded file has the SHA-256 {checksum} and not {file.sha256}:")
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


def cached(
    kind: str, depends_on: Sequence[object], arrays: Sequence[Array], like: Array, compute: Callable[[], Array]
) -> Array:
    """The array returned by ``compute``, read from the cache folder if it is stored there.

    A damaged file, or one with unexpected content, is replaced. A warning is issued if the result cannot be stored.

    Parameters
    ----------
    kind : str
        A subfolder of the cache.
    depends_on : sequence
        Everything else that the result depends on, distinguished by ``repr``; includes versions of libraries.
    arrays : sequence of arrays
        The arrays that the result depends on.
    like : array
        An array with the shape and dtype of the result.
    compute : callable

    Examples
    --------
    >>> from unittest import mock
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder, mock.patch.dict("os.environ", ADMISS_CACHE=folder):
    ...     first = cached("squares", ["version 1"], [np.arange(3)], np.zeros(3), lambda: np.arange(3.0) ** 2)
    ...     second = cached("squares", ["version 1"], [np.arange(3)], np.zeros(3), lambda: 1 / 0)
    >>> second
    array([0., 1., 4.])
    """
    file = cache_folder() / kind / f"{_result_key(depends_on, arrays)}.npz"
    values = _read_result(file, like)
    if values is None:
        values = compute()
        buffer = io.BytesIO()
        np.savez(buffer, values=values)
        try:
            write_atomically(file, buffer.getvalue())
        except OSError as error:
            warnings.warn(f"The result could not be stored in {file.parent}: {error}.", stacklevel=3)
    return values


def _result_key(depends_on: Sequence[object], arrays: Sequence[Array]) -> str:
    digest = hashlib.sha256(repr((list(depends_on), [(array.shape, array.dtype.str) for array in arrays])).encode())
    for array in arrays:
        same_nan = np.where(np.isnan(array), np.nan, array) if array.dtype.kind == "f" else array
        digest.update(np.ascontiguousarray(same_nan).tobytes())
    return digest.hexdigest()


def _read_result(file: Path, like: Array) -> Array | None:
    """The stored array, or None if it is absent or not what was written."""
    try:
        with np.load(file, allow_pickle=False) as stored:  # compares the checksum of the archive
            values = stored["values"]
    except Exception:  # a damaged archive can raise nearly anything
        return None
    is_sound = values.dtype == like.dtype and values.shape == like.shape and bool(np.isfinite(values).all())
    return values if is_sound else None
