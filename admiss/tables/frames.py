"""Sources in memory: data frames, partitions of Dask, and arrays, which may be mapped from disk.

Data frames come from an iterator, a function that returns one, or a lazy frame of polars. A function can be called
again, and all of its frames decide on the columns; an iterator is used up by one pass, and its first frame decides.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np
from numpy.typing import NDArray

from admiss.extras import optional_import
from admiss.tables.column import SourceError
from admiss.tables.schema import Schema
from admiss.tables.source import Batch, Chunk, Frame, NamedFrames, Place, Source, TableChunk, TableSource, batch_rows


class FrameSource(TableSource):
    """Data frames of pandas, polars or pyarrow.

    Parameters
    ----------
    frames : iterable, callable or polars.LazyFrame
        Frames, a function without arguments that returns them, or a lazy frame, which is collected in batches.
    """

    def __init__(self, frames: Iterable[Any] | Callable[[], Iterable[Any]]) -> None:
        self.make, self.is_whole = _factory(frames)
        self._started: Iterator[Any] | None = None

    def chunks(self) -> Iterator[Chunk]:
        """The frames."""
        started, self._started = self._started, None
        frames = self.make() if started is None else started
        for number, (name, frame) in enumerate(_named(frames)):
            yield Frame(name, Place(0, number), self.schema, frame)

    def deciding(self, columns: Sequence[str] | None) -> NamedFrames:
        """All frames, or the first one of those that can be read only once."""
        if self.is_whole:
            yield from _named(self.make())
            return
        iterator = iter(self.make())
        first = next(iterator, None)
        if first is None:
            raise SourceError("The iterator has no data frame.")
        self._started = chain([first], iterator)
        yield from _named([first])


def _named(frames: Iterable[Any]) -> NamedFrames:
    """Frames as narwhals takes them, with their names for messages."""
    for number, frame in enumerate(frames):
        name = f"the frames, frame {number}"
        yield name, eager(frame, name)


def eager(frame: Any, where: str) -> Any:
    """A data frame as narwhals takes it, with names that are texts."""
    try:
        names = list(getattr(frame, "column_names", getattr(frame, "columns", ())))  # pyarrow, or others
        if hasattr(frame, "set_axis") and not all(isinstance(name, str) for name in names):
            frame = frame.set_axis([str(name) for name in names], axis=1)
        return nw.from_native(frame, eager_only=True)
    except nw.exceptions.DuplicateError as error:
        twice = [str(name) for name, count in Counter(map(str, names)).items() if count > 1]
        raise SourceError(f"{where} has two columns {twice[0]!r}: give them different names.") from error
    except (TypeError, nw.exceptions.NarwhalsError) as error:
        raise SourceError(f"{where}: {type(frame).__name__} is not a usable data frame.") from error


def _factory(frames: Any) -> tuple[Callable[[], Iterable[Any]], bool]:
    """A function that returns the frames from the first, and whether it can be called again."""
    try:
        taken = nw.from_native(frames, pass_through=True)
    except nw.exceptions.DuplicateError:
        taken = None
    if isinstance(taken, nw.LazyFrame):
        return lambda: _collected(frames), True
    if taken is None or isinstance(taken, nw.DataFrame):
        return lambda: [frames], True
    if callable(frames):
        return frames, True
    if isinstance(frames, Sequence):
        return lambda: frames, True
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

    return once, False


def _collected(frames: Any) -> Iterator[Any]:
    """The batches of a lazy frame; what polars cannot read is an error of the source."""
    import polars

    if not hasattr(frames, "collect_batches"):
        raise SourceError("This lazy frame cannot be collected in batches: upgrade polars, or name the files.")
    try:
        yield from frames.collect_batches(chunk_size=2**18, maintain_order=True)
    except polars.exceptions.PolarsError as error:
        raise SourceError(
            f"The lazy frame cannot be collected ({type(error).__name__}): try frame.collect() to see why."
        ) from error


@dataclass(frozen=True)
class DelayedFrame(TableChunk):
    """A frame that is not computed yet."""

    delayed: Any

    def without_task(self) -> "DelayedFrame":
        """What a worker needs to know in addition to the frame."""
        return replace(self, delayed=None)

    def of_frame(self, frame: Any) -> Frame:
        """The chunk with its frame."""
        name = f"the partitions, frame {self.place.group}"
        return Frame(name, self.place, self.schema, eager(frame, self.name))

    def frames(self, columns: Sequence[str]) -> Iterator[Any]:
        """The rows of the frame, which is computed here."""
        yield from self.of_frame(self.delayed.compute(scheduler="synchronous")).frames(columns)


class DaskSource(TableSource):
    """Partitions of a Dask data frame, of which the first one decides.

    Parameters
    ----------
    frames : dask.dataframe.DataFrame or sequence of Delayed
    """

    def __init__(self, frames: Any) -> None:
        with optional_import("A Dask data frame", "dask"):
            from dask.delayed import Delayed
        self.parts = list(frames.to_delayed()) if hasattr(frames, "to_delayed") else list(frames)
        if not self.parts or not all(isinstance(part, Delayed) for part in self.parts):
            raise SourceError("A Dask data frame or a list of delayed data frames is needed.")
        self.size = len(self.parts)
        self.is_whole = len(self.parts) == 1

    def chunks(self) -> Iterator[Chunk]:
        """The partitions, which are computed when they are read."""
        for number, part in enumerate(self.parts):
            yield DelayedFrame(f"partition {number}", Place(0, number), self.schema, part)

    def deciding(self, columns: Sequence[str] | None) -> NamedFrames:
        """The first partition."""
        yield "partition 0", eager(self.parts[0].compute(scheduler="synchronous"), "partition 0")


@dataclass(frozen=True)
class Slice(Chunk):
    """Some rows of arrays, as many as a batch has."""

    rows: slice
    arrays: tuple[NDArray[Any] | None, ...]  # X, y, weight, keys

    def batches(self, columns: Sequence[str] = ()) -> Iterator[Batch]:
        """Read the rows as floating-point numbers."""
        if columns:
            raise SourceError(f"An array has no column {columns[0]!r}: its only columns are the features.")
        X, y, weight, keys = (None if array is None else array[self.rows] for array in self.arrays)
        X, y, weight = (None if array is None else np.asarray(array, dtype=float) for array in (X, y, weight))
        assert X is not None
        yield Batch(X, y, weight, None if keys is None else np.asarray(keys), self.place)


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
        self.slice_rows = batch_rows(X.shape[1])
        self.size = -(-self.n_rows // self.slice_rows)

    def chunks(self) -> Iterator[Chunk]:
        """The rows, some at once."""
        for start in range(0, self.n_rows, self.slice_rows):
            stop = min(start + self.slice_rows, self.n_rows)
            name = f"rows {start:,} to {stop - 1:,}"
            yield Slice(name, Place(row=start), self.schema, slice(start, stop), self.arrays)
