"""A source of rows: chunks that are read one after the other, or on several machines.

A chunk is what is counted as a whole: a row group of a Parquet file, some rows of a CSV file, a data frame, a slice of
an array.
It is read in batches, so that memory depends on neither the rows of the source nor those of a chunk. A row is
identified by its file, its row group and its number in the group, whatever the number and the order of the batches.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import narwhals.stable.v2 as nw
import numpy as np
from numpy.typing import NDArray

from admiss.tables.column import SourceError, raw_column, require_columns
from admiss.tables.notes import listed
from admiss.tables.schema import UNKNOWN, Feature, Schema
from formulations.arrays import FloatArray

# Rows and entries that are read at once: sums over sets of missing features want many rows, memory bounds the entries.
BATCH_ROWS, BATCH_ENTRIES = 2**19, 2**24


@dataclass(frozen=True)
class Plan:
    """What the columns of a table are for, see :func:`~admiss.tables.opening.open_source`."""

    target: str | None = None
    weight: str | None = None
    key: str | None = None
    features: Sequence[str] | None = None
    drop: Sequence[str] = ()
    keep: Sequence[str] = ()
    categories: Mapping[str, Iterable[Any]] | None = None
    unknown: str = "error"
    task: str = "auto"

    def __post_init__(self) -> None:
        if self.unknown not in UNKNOWN:
            raise ValueError(f"unknown must be 'error' or 'missing', not {self.unknown!r}.")
        if any(isinstance(given, str) for given in (self.features, self.drop, self.keep)):
            raise ValueError("features, drop and keep are lists of columns, not one text.")
        if len(set(self.roles)) < len(self.roles):
            raise ValueError(f"Target, weight and key must be different columns, not {listed(self.roles)}.")
        for name in self.features or ():
            if name in (self.target, self.weight):
                raise ValueError(f"{name!r} cannot be both a feature and the target or weights.")
        both = [name for name in self.drop if name in self.keep]
        if both:
            raise ValueError(f"{listed(both)} cannot be both dropped and kept: use --drop or --keep, not both.")
        if self.target in (*self.drop, *self.keep):
            raise ValueError(f"{self.target} is the target: --drop and --keep are for other columns.")

    @property
    def roles(self) -> list[str]:
        """Columns that are not features unless they are named."""
        return [name for name in (self.target, self.weight, self.key) if name is not None]

    @property
    def kept(self) -> set[str]:
        """Columns that are used whatever they hold."""
        return {*self.keep, *(self.features or ()), *(self.categories or ())}

    def chosen(self, names: Sequence[str], where: str) -> list[str]:
        """The columns that may be features."""
        asked = [*self.roles, *self.drop, *self.keep, *(self.features or ()), *(self.categories or ())]
        require_columns(asked, names, where)
        wanted = [n for n in names if n not in self.roles] if self.features is None else dict.fromkeys(self.features)
        chosen = [name for name in wanted if name not in self.drop]
        if not chosen:
            raise SourceError(f"{where} has no features{self.purpose}.")
        return chosen

    @property
    def purpose(self) -> str:
        """What features are for, in messages."""
        return f" to predict {self.target} from" if self.target else ""


def common_columns(files: Sequence[tuple[str, Sequence[str]]], plan: Plan) -> list[str]:
    """The columns that may be features, unless some of the files, given with their columns, lack some of them."""
    everything = list(dict.fromkeys(name for _, names in files for name in names))
    wanted = plan.chosen(everything, files[0][0])
    for where, names in files:
        lacking = [name for name in [*wanted, *plan.roles] if name not in names]
        if lacking:
            many = len(lacking) > 1
            raise SourceError(
                f"{where} has no column{'s' * many} {', '.join(map(repr, lacking))}, which other files have: add "
                f"{'them' if many else 'it'}, or leave {'them' if many else 'it'} out with drop (--drop)."
            )
    return wanted


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
        The columns as read: cells of a CSV file, a data frame that narwhals has taken, or None for arrays.
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


def named_frame(X: Any, names: Sequence[str]) -> Any:
    """Features as a data frame of pyarrow."""
    return nw.from_dict({name: X[:, j] for j, name in enumerate(names)}, backend="pyarrow").to_native()


class Chunk(ABC):
    """Rows that are counted as a whole, with a name for messages and a digest that changes with them."""

    name: str
    digest: str
    schema: Schema
    place: Place

    @abstractmethod
    def frames(self, columns: Sequence[str]) -> Iterator[Any]:
        """The columns in frames of successive rows: cells of a CSV file, or data frames that narwhals has taken."""

    def batches(self, columns: Sequence[str] = ()) -> Iterator[Batch]:
        """Read the rows; ``columns`` are read too if the schema does not use them."""
        schema, row = self.schema, 0
        if schema.target is not None and schema.task == "classification":
            raise SourceError(
                f"The target {schema.target} has class labels, which are fitted in memory: use "
                "admiss.tables.read_table, or task='regression' (--task regression) if they are numbers."
            )
        for frame in self.frames(list(dict.fromkeys([*schema.used, *columns]))):
            require_columns(columns, list(frame.columns), self.name)
            roles = schema.target, schema.weight
            y, weight = (None if name is None else schema.numbers_of(frame, name, self.name) for name in roles)
            X = schema.encode(frame, self.name, None if y is None else ~np.isnan(y))
            keys = None if schema.key is None else self.keys(frame, schema.key)
            yield Batch(X, y, weight, keys, self.place._replace(row=self.place.row + row), frame)
            row += len(frame)

    def keys(self, frame: Any, name: str) -> NDArray[Any]:
        """The values that identify rows for folds."""
        require_columns([name], list(frame.columns), self.name)
        values = frame[name]
        if not isinstance(values, nw.Series):
            column = raw_column(name, values)
            lacking = int((~column.observed).sum())
            if self.schema.whole_keys:
                keys = Feature(name, (name,)).numbers(column, self.name, column.observed)
                keys = np.nan_to_num(keys).astype(np.int64)
            else:
                keys = np.array(column.texts)
        else:
            keys, lacking = np.asarray(values.to_numpy()), values.null_count()
        if lacking:
            raise SourceError(f"{self.name}: the key {name!r} is missing in {lacking:,} rows.")
        return keys


class Source(ABC):
    """Chunks in a fixed order.

    Attributes
    ----------
    schema : Schema
    size : int or None
        Number of chunks, if known beforehand.
    paths : sequence of Path
        The files that are read, as far as the source knows of files.
    notes : sequence of str
        Sentences on the files.
    decimal_comma : bool
        Whether 1,234 is a number near one.
    """

    schema: Schema
    size: int | None
    paths: Sequence[Path] = ()
    notes: Sequence[str] = ()
    decimal_comma = False

    @abstractmethod
    def chunks(self) -> Iterator[Chunk]:
        """All chunks, from the first."""
