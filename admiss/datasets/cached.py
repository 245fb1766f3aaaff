"""Results of long computations, kept in the cache folder so that they are computed once."""

import hashlib
import io
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from admiss.datasets.storage import cache_folder, write_whole

Array = np.ndarray[Any, Any]


def cached(
    kind: str, depends_on: Sequence[object], arrays: Sequence[Array], like: Array, compute: Callable[[], Array]
) -> Array:
    """The array that ``compute`` returns, from the cache folder where it is there.

    A file that is damaged, or does not hold what it should, is replaced. Where none can be written, a warning says so.

    Parameters
    ----------
    kind : str
        A folder in the cache.
    depends_on : sequence
        All that the result depends on and that ``repr`` tells apart, versions of libraries among them.
    arrays : sequence of arrays
        The arrays that it depends on.
    like : array
        An array with the shape and the type of the result.
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
            write_whole(file, buffer.getvalue())
        except OSError as error:
            warnings.warn(f"What was computed could not be kept in {file.parent}: {error}.", stacklevel=3)
    return values


def _key(depends_on: Sequence[object], arrays: Sequence[Array]) -> str:
    digest = hashlib.sha256(repr((list(depends_on), [(array.shape, array.dtype.str) for array in arrays])).encode())
    for array in arrays:
        same_nan = np.where(np.isnan(array), np.nan, array) if array.dtype.kind == "f" else array
        digest.update(np.ascontiguousarray(same_nan).tobytes())
    return digest.hexdigest()


def _read(file: Path, like: Array) -> Array | None:
    """What is stored, or None where there is nothing, or not what was written."""
    try:
        with np.load(file, allow_pickle=False) as stored:  # the checksum of the archive is compared
            values = stored["values"]
    except Exception:  # a damaged archive can raise nearly anything, and is computed again
        return None
    is_sound = values.dtype == like.dtype and values.shape == like.shape and bool(np.isfinite(values).all())
    return values if is_sound else None
