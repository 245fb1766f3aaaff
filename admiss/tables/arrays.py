"""Rows of arrays, which may be mapped from disk, as a source of slices."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from hashlib import blake2b
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from admiss.tables.column import SourceError
from admiss.tables.schema import Schema
from admiss.tables.source import Batch, Chunk, Place, Source, batch_rows

# Rows of a slice, which are counted as a whole; memory is that of a batch.
SLICE_ROWS = 2**20


@dataclass(frozen=True)
class Slice(Chunk):
    """Rows ``start`` to ``stop`` of arrays."""

    start: int
    stop: int
    arrays: tuple[NDArray[Any] | None, ...]  # X, y, weight, keys

    def frames(self, columns: Sequence[str]) -> Iterator[Any]:
        raise NotImplementedError  # arrays are sliced

    @property
    def name(self) -> str:  # type: ignore[override]
        return f"rows {self.start:,} to {self.stop - 1:,}"

    @cached_property
    def digest(self) -> str:  # type: ignore[override]
        """Of file, size and time of writing for mapped arrays, of the content for others."""
        found = blake2b(f"{self.start} {self.stop}".encode(), digest_size=12)
        for array in self.arrays:
            if array is None:
                found.update(b"none")
            elif isinstance(array, np.memmap) and array.filename is not None:
                status = Path(array.filename).stat()
                layout = (array.offset, array.shape, str(array.dtype), array.strides)
                found.update(repr((status.st_size, status.st_mtime_ns, layout)).encode())
            else:
                rows = array[self.start : self.stop]
                found.update(repr(rows.tolist()).encode() if rows.dtype == object else rows.tobytes())
        return found.hexdigest()

    def batches(self, columns: Sequence[str] = ()) -> Iterator[Batch]:
        if columns:
            raise SourceError(f"An array has no column {columns[0]!r}: its only columns are the features.")
        matrix, keys = self.arrays[0], self.arrays[3]
        assert matrix is not None
        size = batch_rows(matrix.shape[1])
        for start in range(self.start, self.stop, size):
            rows = slice(start, min(start + size, self.stop))
            X = np.asarray(matrix[rows], dtype=float)
            y, weight = (None if array is None else np.asarray(array[rows], dtype=float) for array in self.arrays[1:3])
            yield Batch(X, y, weight, None if keys is None else np.asarray(keys[rows]), Place(row=start))


class ArraySource(Source):
    """Rows of arrays, which may be memory-mapped.

    Parameters
    ----------
    X : array of shape (n, d)
        Numbers with NaN, of any floating-point or integer type; ``np.load(file, mmap_mode="r")`` is read in slices.
    y, sample_weight, keys : arrays of shape (n,), optional
    names : sequence of str, optional
        Names of the features; x0, x1, .. by default.
    """

    def __init__(
        self,
        X: NDArray[Any],
        y: NDArray[Any] | None = None,
        *,
        sample_weight: NDArray[Any] | None = None,
        keys: NDArray[Any] | None = None,
        names: Sequence[str] | None = None,
    ) -> None:
        if np.ndim(X) != 2 or not np.size(X):
            raise SourceError(f"X must be a matrix with rows and columns, not of shape {np.shape(X)}.")
        self.arrays = (X, y, sample_weight, keys)
        self.n_rows = len(X)
        for what, array in zip(("y", "sample_weight", "keys"), self.arrays[1:], strict=True):
            if array is not None and np.shape(array) != (self.n_rows,):
                raise SourceError(f"{what} must have one value for each of the {self.n_rows:,} rows of X.")
        names = [f"x{j}" for j in range(X.shape[1])] if names is None else list(names)
        if len(names) != X.shape[1]:
            raise SourceError(f"X has {X.shape[1]} columns, and there are {len(names)} names.")
        self.schema = Schema.of_numbers(names, None if y is None else "y")
        self.size = -(-self.n_rows // SLICE_ROWS)

    def chunks(self) -> Iterator[Chunk]:
        for start in range(0, self.n_rows, SLICE_ROWS):
            yield Slice(start, min(start + SLICE_ROWS, self.n_rows), self.arrays)
