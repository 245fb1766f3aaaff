"""Rows in memory as sources: arrays, data frames one after the other, partitions of Dask.

Arrays, which may be mapped from disk, are read in slices of rows. Data frames come from an iterator, a function that
returns one, or a lazy frame of polars; the first frame determines the columns and, unless they are given, the values of
text. A function can be called again, as a pass that continues after an interruption needs; an iterator is used up by
one pass.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from hashlib import blake2b
from itertools import chain
from pathlib import Path
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np
from numpy.typing import NDArray

from admiss.extras import optional_import
from admiss.tables.column import SourceError, kind_of, require_column
from admiss.tables.schema import Columns, Schema
from admiss.tables.source import Batch, Chunk, Place, Source, batch_of, batch_rows

# Rows of a slice, which are counted as a whole; memory is that of a batch.
SLICE_ROWS = 2**20


@dataclass(frozen=True)
class Slice(Chunk):
    """Rows ``start`` to ``stop`` of arrays."""

    start: int
    stop: int
    arrays: tuple[NDArray[Any] | None, ...]  # X, y, weight, keys

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
        self.schema = Schema(tuple((name, None) for name in names), target=None if y is None else "y")
        self.size = -(-self.n_rows // SLICE_ROWS)

    def chunks(self) -> Iterator[Chunk]:
        for start in range(0, self.n_rows, SLICE_ROWS):
            yield Slice(start, min(start + SLICE_ROWS, self.n_rows), self.arrays)


@dataclass(frozen=True)
class Frame(Chunk):
    """A data frame, its number, and the name of the source."""

    frame: Any
    number: int
    schema: Schema
    source: str = ""

    @property
    def name(self) -> str:  # type: ignore[override]
        return f"{self.source or 'the frames'}, frame {self.number}"

    @cached_property
    def digest(self) -> str:  # type: ignore[override]
        """Of the content."""
        found = blake2b(digest_size=12)
        for batch in self.batches():
            for array in (batch.X, batch.y, batch.weight):
                found.update(b"" if array is None else array.tobytes())
            found.update(b"" if batch.keys is None else repr(batch.keys.tolist()).encode())
        return found.hexdigest()

    def batches(self, columns: Sequence[str] = ()) -> Iterator[Batch]:
        size = batch_rows(len(self.schema.names))
        for column in columns:
            require_column(column, self.frame.columns, self.name)
        for row in range(0, len(self.frame), size):
            frame = self.frame[row : row + size]
            table = frame.select(list(columns)).to_arrow() if columns else None
            yield batch_of(frame, self.schema, self.name, Place(0, self.number, row), table)


class FrameSource(Source):
    """Data frames of pandas, polars or pyarrow.

    Parameters
    ----------
    frames : iterable, callable or polars.LazyFrame
        Frames, a function without arguments that returns them, or a lazy frame, which is collected in batches.
    columns : Columns or Schema
        What the columns are for, or the schema of another source; values of text are those of the first frame.
    name : str
        Name of the source in messages.
    """

    size = None

    def __init__(
        self, frames: Iterable[Any] | Callable[[], Iterable[Any]], columns: Columns | Schema, name: str = ""
    ) -> None:
        self.frames, self.name = _factory(frames), name
        self._started: Iterator[Any] | None = None
        if isinstance(columns, Columns):
            iterator = iter(self.frames())
            first = next(iterator, None)
            if first is None:
                raise SourceError(f"{name or 'The iterator'} has no data frame.")
            self._started = chain([first], iterator)
            columns = schema_of(first, columns, name or "The first frame")
        self.schema = columns

    def chunks(self) -> Iterator[Chunk]:
        started, self._started = self._started, None
        for number, frame in enumerate(started if started is not None else self.frames()):
            where = f"{self.name or 'the frames'}, frame {number}"
            yield Frame(eager(frame, where), number, self.schema, self.name)


def schema_of(frame: Any, columns: Columns, where: str) -> Schema:
    """The schema of a data frame."""
    found = eager(frame, where)
    kinds = {name: kind_of(found[name].dtype) for name in found.columns}
    return columns.schema(
        kinds, where, lambda text: {n: found[n].cast(nw.String).drop_nulls().unique().to_list() for n in text}
    )


def eager(frame: Any, where: str) -> Any:
    """A data frame as narwhals takes it."""
    try:
        return nw.from_native(frame, eager_only=True)
    except (TypeError, nw.exceptions.NarwhalsError) as error:
        words = " ".join(str(error).split())
        raise SourceError(f"{where}: {type(frame).__name__} is not a usable data frame ({words[:100]}).") from error


def _collected(frames: Any) -> Iterator[Any]:
    """The batches of a lazy frame; what polars cannot read is an error of the source."""
    import polars

    try:
        yield from frames.collect_batches(chunk_size=2**18, maintain_order=True)
    except polars.exceptions.PolarsError as error:
        words = " ".join(str(error).split())
        raise SourceError(f"The table cannot be read, see what polars says of it: {words[:300]}") from error


def _factory(frames: Any) -> Callable[[], Iterable[Any]]:
    """A function that returns the frames from the first."""
    if isinstance(nw.from_native(frames, pass_through=True), nw.LazyFrame):
        if not hasattr(frames, "collect_batches"):
            raise SourceError(
                "This lazy frame cannot be collected in batches: upgrade polars, or name the files themselves."
            )
        return lambda: _collected(frames)
    if isinstance(nw.from_native(frames, pass_through=True), nw.DataFrame):
        return lambda: [frames]
    if callable(frames):
        return frames
    if isinstance(frames, Sequence):
        return lambda: frames
    try:
        used = [iter(frames)]
    except TypeError as error:
        raise SourceError(
            f"Data frames or a function that returns them are needed, not {type(frames).__name__}."
        ) from error

    def once() -> Iterable[Any]:
        if not used:
            raise SourceError("The iterator is used up: give a function that returns it, which can be called again.")
        return used.pop()

    return once


@dataclass(frozen=True)
class DelayedFrame(Chunk):
    """A frame that is not computed yet, its number, and the digest of the tasks that compute it."""

    delayed: Any
    number: int
    schema: Schema
    digest: str

    @property
    def name(self) -> str:  # type: ignore[override]
        return f"partition {self.number}"

    def without_task(self) -> "DelayedFrame":
        """What a worker needs to know beside the frame."""
        return replace(self, delayed=None)

    def of_frame(self, frame: Any) -> Frame:
        """The chunk with its frame."""
        return Frame(eager(frame, self.name), self.number, self.schema, "the partitions")

    def batches(self, columns: Sequence[str] = ()) -> Iterator[Batch]:
        yield from self.of_frame(self.delayed.compute(scheduler="synchronous")).batches(columns)


class DaskSource(Source):
    """Partitions of a Dask data frame.

    Their digests are the keys of Dask, which depend on what computes them; delayed objects need names that stay the
    same (``dask_key_name``, or ``pure=True``) if a later pass is to continue from a checkpoint.

    Parameters
    ----------
    frames : dask.dataframe.DataFrame or sequence of Delayed
    columns : Columns or Schema
        What the columns are for, or the schema of another source. For the former the first partition is computed.
    """

    def __init__(self, frames: Any, columns: Columns | Schema) -> None:
        with optional_import("A Dask data frame", "dask"):
            from dask.delayed import Delayed
        self.parts = list(frames.to_delayed()) if hasattr(frames, "to_delayed") else list(frames)
        if not self.parts or not all(isinstance(part, Delayed) for part in self.parts):
            raise SourceError("A Dask data frame or a list of delayed data frames is needed.")
        if isinstance(columns, Columns):
            columns = schema_of(self.parts[0].compute(scheduler="synchronous"), columns, "partition 0")
        self.schema = columns
        self.size = len(self.parts)

    def chunks(self) -> Iterator[Chunk]:
        for number, part in enumerate(self.parts):
            yield DelayedFrame(part, number, self.schema, f"{part.key}")
