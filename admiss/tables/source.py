"""A source of rows: chunks that are read one after the other, or on several machines.

A chunk is what is counted as a whole: a row group of a Parquet file, a data frame of an iterator, a slice of an array.
It is read in batches, so that memory depends on neither the rows of the source nor those of a chunk. A row is
identified by its file, its row group and its number in the group, whatever the number and the order of the batches.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import narwhals.stable.v2 as nw
import numpy as np
from numpy.typing import NDArray

from admiss.tables.column import SourceError, numbers
from admiss.tables.schema import Schema, column_of
from formulations.arrays import FloatArray

# Rows and entries that are read at once: sums over sets of missing features want many rows, memory bounds the entries.
BATCH_ROWS, BATCH_ENTRIES = 2**19, 2**24


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
        The target, NaN where missing; None if the source has none.
    weight : float array or None
    keys : array or None
        The values that identify rows for folds.
    place : Place
    table : object
        The columns as read, a pyarrow table or a data frame, or None for arrays.
    """

    X: FloatArray
    y: FloatArray | None
    weight: FloatArray | None
    keys: NDArray[Any] | None
    place: Place
    table: Any = None


def batch_rows(n_features: int) -> int:
    """Rows of a batch."""
    return max(1, min(BATCH_ROWS, BATCH_ENTRIES // n_features))


def batch_of(frame: Any, schema: Schema, where: str, place: Place, table: Any) -> Batch:
    """Rows of a data frame that narwhals has taken; ``where`` is its name in errors."""
    X = schema.features(frame, where)
    roles = schema.target, schema.weight
    y, weight = (None if name is None else numbers(column_of(frame, name, where), where) for name in roles)
    if schema.key is None:
        return Batch(X, y, weight, None, place, table)
    keys = column_of(frame, schema.key, where)
    if keys.null_count():
        raise SourceError(f"{where}: the key {schema.key!r} is missing in {keys.null_count():,} rows.")
    return Batch(X, y, weight, np.asarray(keys.to_numpy()), place, table)


def named_frame(X: Any, names: Sequence[str]) -> Any:
    """Features as a data frame of pyarrow."""
    return nw.from_dict({name: X[:, j] for j, name in enumerate(names)}, backend="pyarrow").to_native()


class Chunk(ABC):
    """Rows that are counted as a whole, with a name for messages and a digest that changes with them."""

    name: str
    digest: str

    @abstractmethod
    def batches(self, columns: Sequence[str] = ()) -> Iterator[Batch]:
        """Read the rows; ``columns`` are read too if the schema does not use them."""


class Source(ABC):
    """Chunks in a fixed order.

    Attributes
    ----------
    schema : Schema
    size : int or None
        Number of chunks, if known beforehand.
    paths : sequence of Path
        The files that are read, as far as the source knows of files.
    """

    schema: Schema
    size: int | None
    paths: Sequence[Path] = ()

    @abstractmethod
    def chunks(self) -> Iterator[Chunk]:
        """All chunks, from the first."""
