"""Partitions of a Dask data frame, or delayed frames."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from admiss.extras import optional_import
from admiss.streaming.sources.frames import Frame, eager, schema_of
from admiss.streaming.sources.schema import Columns, Schema, SourceError
from admiss.streaming.sources.source import Batch, Chunk, Source

with optional_import("A Dask data frame", "dask"):
    from dask.delayed import Delayed


@dataclass(frozen=True)
class Partition(Chunk):
    """A frame that is not computed yet, its number, and the digest of the tasks that compute it."""

    delayed: Any
    number: int
    schema: Schema
    digest: str

    @property
    def name(self) -> str:  # type: ignore[override]
        return f"partition {self.number}"

    def without_task(self) -> "Partition":
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
        self.parts = list(frames.to_delayed()) if hasattr(frames, "to_delayed") else list(frames)
        if not self.parts or not all(isinstance(part, Delayed) for part in self.parts):
            raise SourceError("A Dask data frame or a list of delayed data frames is needed.")
        if isinstance(columns, Columns):
            columns = schema_of(self.parts[0].compute(scheduler="synchronous"), columns, "partition 0")
        self.schema = columns
        self.size = len(self.parts)

    def chunks(self) -> Iterator[Chunk]:
        for number, part in enumerate(self.parts):
            yield Partition(part, number, self.schema, f"{part.key}")
