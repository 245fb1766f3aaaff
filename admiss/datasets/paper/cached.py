"""The cache folder, and results of long computations stored in it."""

import hashlib
import io
import os
import sys
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from admiss.atomic_write import write_atomically

Array = np.ndarray[Any, Any]


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
    file = cache_folder() / kind / f"{_key(depends_on, arrays)}.npz"
    values = _read(file, like)
    if values is None:
        values = compute()
        buffer = io.BytesIO()
        np.savez(buffer, values=values)
        try:
            write_atomically(file, buffer.getvalue())
        except OSError as error:
            warnings.warn(f"The result could not be stored in {file.parent}: {error}.", stacklevel=3)
    return values


def _key(depends_on: Sequence[object], arrays: Sequence[Array]) -> str:
    digest = hashlib.sha256(repr((list(depends_on), [(array.shape, array.dtype.str) for array in arrays])).encode())
    for array in arrays:
        same_nan = np.where(np.isnan(array), np.nan, array) if array.dtype.kind == "f" else array
        digest.update(np.ascontiguousarray(same_nan).tobytes())
    return digest.hexdigest()


def _read(file: Path, like: Array) -> Array | None:
    """The stored array, or None if it is absent or not what was written."""
    try:
        with np.load(file, allow_pickle=False) as stored:  # compares the checksum of the archive
            values = stored["values"]
    except Exception:  # a damaged archive can raise nearly anything
        return None
    is_sound = values.dtype == like.dtype and values.shape == like.shape and bool(np.isfinite(values).all())
    return values if is_sound else None
