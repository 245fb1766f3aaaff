"""Data frames one after the other: from an iterator, a function that returns one, or a lazy frame of polars.

The first frame determines the columns and, unless they are given, the values of text. A function can be called again,
as a pass that continues after an interruption needs; an iterator is used up by one pass.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from hashlib import blake2b
from itertools import chain
from typing import Any

import narwhals.stable.v2 as nw

from admiss.streaming.sources.schema import Columns, Schema, SourceError, kind_of, require_column
from admiss.streaming.sources.source import Batch, Chunk, Place, Source, batch_rows

# Rows of the frames into which a lazy frame is collected.
LAZY_ROWS = 2**18


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
        schema, size = self.schema, batch_rows(len(self.schema.names))
        for column in columns:
            require_column(column, self.frame.columns, self.name)
        for row in range(0, len(self.frame), size):
            frame = self.frame[row : row + size]
            yield Batch(
                schema.features(frame, self.name),
                schema.target_of(frame, self.name),
                schema.weight_of(frame, self.name),
                schema.keys_of(frame, self.name),
                Place(0, self.number, row),
                frame.select(list(columns)).to_arrow() if columns else None,
            )


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
        yield from frames.collect_batches(chunk_size=LAZY_ROWS, maintain_order=True)
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
