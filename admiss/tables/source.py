"""A source of rows: chunks that are read one after the other, or on several machines.

A chunk is what is counted as a whole: a row group of a Parquet file, some rows of a CSV file, a data frame, a slice of
an array.
It is read in batches, so that memory depends on neither the rows of the source nor those of a chunk. A row is
identified by its file, its row group and its number in the group, whatever the number and the order of the batches.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import narwhals.stable.v2 as nw
import numpy as np
from numpy.typing import NDArray

from admiss.tables.column import raw_column, require_columns
from admiss.tables.schema import Schema
from formulations.arrays import FloatArray

# Rows and entries that are read at once: sums over sets of missing features want many rows, memory bounds the entries.
BATCH_ROWS, BATCH_ENTRIES = 2**19, 2**24
# Some columns of a table, or all, in data frames of successive rows with their names for messages.
NamedFrames = Iterator[tuple[str, Any]]


class Place(NamedTuple):
    """The identity of the first row of a batch, which the others follow: file, row group, and row, counted from 0.

    Files are numbered in the order of their names. Frames are row groups of file 0, and arrays its row group 0.
    """

    file: int = 0
    group: int = 0
    row: int = 0


@dataclass(frozen=True)
class Batch:
    """Some rows.

    Attributes
    ----------
    X : float array of shape (rows, features)
        With NaN for missing values.
    y : float array or None
        The target, NaN where missing; None if the source has none, or has class labels, which are in ``table``.
    weight : float array or None
    keys : array or None
        The values that identify rows for folds.
    place : Place
    table : object
        The columns as read, a data frame that narwhals has taken; None for arrays.
    """

    X: FloatArray
    y: FloatArray | None
    weight: FloatArray | None
    keys: NDArray[Any] | None
    place: Place
    table: Any = None


def batch_rows(n_features: int) -> int:
    """Rows of a batch."""
    return max(1, min(BATCH_ROWS, BATCH_ENTRIES // max(1, n_features)))


def named_frame(X: Any, names: Sequence[str]) -> Any:
    """Features as a data frame of pyarrow."""
    return nw.from_dict({name: X[:, j] for j, name in enumerate(names)}, backend="pyarrow").to_native()


@dataclass(frozen=True)
class Chunk(ABC):
    """Rows that are counted as a whole.

    Attributes
    ----------
    name : str
        For messages.
    place : Place
        That of its first row.
    schema : Schema
    """

    name: str
    place: Place
    schema: Schema

    @abstractmethod
    def batches(self, columns: Sequence[str] = ()) -> Iterator[Batch]:
        """Read the rows; ``columns`` are read too if the schema does not use them."""


@dataclass(frozen=True)
class TableChunk(Chunk):
    """Rows of a table whose columns the schema encodes."""

    @abstractmethod
    def frames(self, columns: Sequence[str]) -> Iterator[Any]:
        """Some columns at least, in frames of successive rows that narwhals has taken."""

    def batches(self, columns: Sequence[str] = ()) -> Iterator[Batch]:
        """Read the rows; ``columns`` are read too if the schema does not use them."""
        schema, place = self.schema, self.place
        for frame in self.frames(list(dict.fromkeys([*schema.used, *columns]))):
            require_columns([*columns, *filter(None, [schema.target])], list(frame.columns), self.name)
            y = used = None
            if schema.target is not None and schema.task == "classification":
                used = raw_column(schema.target, frame[schema.target]).observed
            elif schema.target is not None:
                y = schema.numbers_of(frame, schema.target, self.name)
                used = ~np.isnan(y)
            weight = None if schema.weight is None else schema.numbers_of(frame, schema.weight, self.name)
            X = schema.encode(frame, self.name, used)
            keys = None if schema.key is None else schema.keys_of(frame, self.name)
            yield Batch(X, y, weight, keys, place, frame)
            place = place._replace(row=place.row + len(frame))


@dataclass(frozen=True)
class Frame(TableChunk):
    """A data frame that narwhals has taken."""

    frame: Any

    def frames(self, columns: Sequence[str]) -> Iterator[Any]:
        """All columns, some rows at once."""
        size = batch_rows(len(self.schema.names))
        for row in range(0, len(self.frame), size):
            yield self.frame[row : row + size]


class Source(ABC):
    """Chunks in a fixed order.

    Attributes
    ----------
    schema : Schema
        That of no columns until it is decided.
    size : int or None
        Number of chunks, if known beforehand.
    paths : sequence of Path
        The files that are read, as far as the source knows of files.
    notes : sequence of str
        Sentences on the files.
    """

    schema = Schema(())
    size: int | None = None
    paths: Sequence[Path] = ()
    notes: Sequence[str] = ()

    @abstractmethod
    def chunks(self) -> Iterator[Chunk]:
        """All chunks, from the first."""


class TableSource(Source):
    """A source whose columns decide on its schema.

    Attributes
    ----------
    decimal_comma : bool
        Whether 1,234 is a number near one.
    is_text : bool
        Whether all columns are text as they are stored.
    kinds : dict of dicts
        For each file its columns and what they hold, an empty text for a column without values.
    is_whole : bool
        Whether :meth:`deciding` gives all rows, and can be called again.
    """

    decimal_comma = False
    is_text = False
    kinds: Mapping[str, Mapping[str, str]] = {}
    is_whole = True

    @abstractmethod
    def deciding(self, columns: Sequence[str] | None) -> NamedFrames:
        """The rows that may decide on the schema, from the first, with some columns or all."""
