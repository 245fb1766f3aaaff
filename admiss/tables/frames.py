"""Data frames, and partitions of Dask, as sources.

Data frames come from an iterator, a function that returns one, or a lazy frame of polars. A function can be called
again, as a pass that continues after an interruption needs, and all of its frames decide on the columns; an iterator is
used up by one pass, and its first frame decides.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from hashlib import blake2b
from itertools import chain
from typing import Any

import narwhals.stable.v2 as nw

from admiss.extras import optional_import
from admiss.tables.column import SourceError
from admiss.tables.deciding import decide
from admiss.tables.schema import Schema
from admiss.tables.source import Chunk, Place, Plan, Source, batch_rows


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

    @property
    def place(self) -> Place:  # type: ignore[override]
        return Place(0, self.number)

    @cached_property
    def digest(self) -> str:  # type: ignore[override]
        """Of the content."""
        found = blake2b(digest_size=12)
        for batch in self.batches():
            for array in (batch.X, batch.y, batch.weight):
                found.update(b"" if array is None else array.tobytes())
            found.update(b"" if batch.keys is None else repr(batch.keys.tolist()).encode())
        return found.hexdigest()

    def frames(self, columns: Sequence[str]) -> Iterator[Any]:
        size = batch_rows(len(self.schema.names))
        for row in range(0, len(self.frame), size):
            yield self.frame[row : row + size]


class FrameSource(Source):
    """Data frames of pandas, polars or pyarrow.

    Parameters
    ----------
    frames : iterable, callable or polars.LazyFrame
        Frames, a function without arguments that returns them, or a lazy frame, which is collected in batches.
    plan : Plan or Schema
        What the columns are for, or the schema of another source. All frames decide on the columns, or the first one
        if the frames can be read only once.
    """

    size = None

    def __init__(self, frames: Iterable[Any] | Callable[[], Iterable[Any]], plan: Plan | Schema) -> None:
        self.make, again = _factory(frames)
        self._started: Iterator[Any] | None = None
        if isinstance(plan, Schema):
            self.schema = plan
            return
        if again:
            self.schema = decide(self._read, plan)
            return
        iterator = iter(self.make())
        first = next(iterator, None)
        if first is None:
            raise SourceError("The iterator has no data frame.")
        self._started = chain([first], iterator)
        self.schema = decide(lambda _: [("the frames, frame 0", eager(first, "The first frame"))], plan, whole=False)

    def _read(self, columns: Sequence[str] | None) -> Iterator[tuple[str, Any]]:
        for number, frame in enumerate(self.make()):
            where = f"the frames, frame {number}"
            yield where, eager(frame, where)

    def chunks(self) -> Iterator[Chunk]:
        started, self._started = self._started, None
        for number, frame in enumerate(started if started is not None else self.make()):
            yield Frame(eager(frame, f"the frames, frame {number}"), number, self.schema)


def eager(frame: Any, where: str) -> Any:
    """A data frame as narwhals takes it, with names that are texts."""
    try:
        names = list(getattr(frame, "columns", ()))
        if hasattr(frame, "set_axis") and not all(isinstance(name, str) for name in names):
            frame = frame.set_axis([str(name) for name in names], axis=1)
        return nw.from_native(frame, eager_only=True)
    except nw.exceptions.DuplicateError as error:
        twice = [str(name) for name, count in Counter(map(str, names)).items() if count > 1]
        raise SourceError(f"{where} has two columns {twice[0]!r}: give them different names.") from error
    except (TypeError, nw.exceptions.NarwhalsError) as error:
        raise SourceError(f"{where}: {type(frame).__name__} is not a usable data frame.") from error


def _collected(frames: Any) -> Iterator[Any]:
    """The batches of a lazy frame; what polars cannot read is an error of the source."""
    import polars

    try:
        yield from frames.collect_batches(chunk_size=2**18, maintain_order=True)
    except polars.exceptions.PolarsError as error:
        raise SourceError(
            f"The lazy frame cannot be collected ({type(error).__name__}): try frame.collect() to see why."
        ) from error


def _factory(frames: Any) -> tuple[Callable[[], Iterable[Any]], bool]:
    """A function that returns the frames from the first, and whether it can be called again."""
    try:
        taken = nw.from_native(frames, pass_through=True)
    except nw.exceptions.DuplicateError:
        taken = None
    if isinstance(taken, nw.LazyFrame):
        if not hasattr(frames, "collect_batches"):
            raise SourceError(
                "This lazy frame cannot be collected in batches: upgrade polars, or name the files themselves."
            )
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

    def frames(self, columns: Sequence[str]) -> Iterator[Any]:
        yield from self.of_frame(self.delayed.compute(scheduler="synchronous")).frames(columns)

    @property
    def place(self) -> Place:  # type: ignore[override]
        return Place(0, self.number)


class DaskSource(Source):
    """Partitions of a Dask data frame.

    Their digests are the keys of Dask, which depend on what computes them; delayed objects need names that stay the
    same (``dask_key_name``, or ``pure=True``) if a later pass is to continue from a checkpoint.

    Parameters
    ----------
    frames : dask.dataframe.DataFrame or sequence of Delayed
    plan : Plan or Schema
        What the columns are for, or the schema of another source. For the former the first partition is computed.
    """

    def __init__(self, frames: Any, plan: Plan | Schema) -> None:
        with optional_import("A Dask data frame", "dask"):
            from dask.delayed import Delayed
        self.parts = list(frames.to_delayed()) if hasattr(frames, "to_delayed") else list(frames)
        if not self.parts or not all(isinstance(part, Delayed) for part in self.parts):
            raise SourceError("A Dask data frame or a list of delayed data frames is needed.")
        if isinstance(plan, Plan):
            first = eager(self.parts[0].compute(scheduler="synchronous"), "partition 0")
            plan = decide(lambda _: [("partition 0", first)], plan, whole=len(self.parts) == 1)
        self.schema = plan
        self.size = len(self.parts)

    def chunks(self) -> Iterator[Chunk]:
        for number, part in enumerate(self.parts):
            yield DelayedFrame(part, number, self.schema, f"{part.key}")
