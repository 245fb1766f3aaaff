"""Tables that are opened as sources of rows in chunks, or read into memory."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from glob import glob
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from admiss.tables.column import SourceError, joined, raw_column, require_columns
from admiss.tables.deciding import Plan, decide, read_target
from admiss.tables.frames import ArraySource, DaskSource, FrameSource
from admiss.tables.schema import Schema
from admiss.tables.source import Source, TableSource, named_frame
from formulations.arrays import FloatArray, IntArray

CSV_SUFFIXES = (".csv", ".tsv", ".csv.gz", ".tsv.gz")


def open_source(
    data: Any,
    target: Any = None,
    *,
    weight: Any = None,
    key: Any = None,
    features: Sequence[str] | None = None,
    drop: Sequence[str] = (),
    keep: Sequence[str] = (),
    categories: Mapping[str, Iterable[Any]] | None = None,
    unknown: str = "error",
    task: str = "regression",
    schema: Schema | None = None,
) -> Source:
    """Open data as a source of rows in chunks.

    ==============================================  ==================================================
    data                                            chunks
    ==============================================  ==================================================
    Parquet files: paths, folders, patterns         row groups
    CSV files: a path or a pattern                  parts of 8 million characters
    a lazy frame of polars                          its batches
    frames of pandas, polars or pyarrow:            frames
    an iterator, or a function that returns one
    a Dask data frame, or a list of delayed frames  partitions
    an array, in memory or memory-mapped            slices
    ==============================================  ==================================================

    Parameters
    ----------
    data : object
        One of the above.
    target : str, or array for an array
        The column to predict, or its values.
    weight, key : str, or array for an array
        Columns with sample weights, and with values that identify rows for folds.
    features : sequence of str, optional
        Columns to use, whatever they hold; by default those that :mod:`~admiss.tables.rules` does not leave out.
        For an array, the names of its columns.
    drop, keep : sequence of str
        Columns to leave out, and columns to use that would be left out.
    categories : dict of str to sequence, optional
        Values of columns of text. By default they are collected from all rows, or from the first frame of an iterator.
    unknown : {"error", "missing"}
        Treatment of values of text that are not among them, and of texts where numbers were.
    task : {"regression", "classification", "auto"}
        What the target is for; with "auto" its values decide.
    schema : Schema, optional
        That of another source, instead of the parameters above: the same features from other rows.

    Returns
    -------
    Source

    Examples
    --------
    >>> from admiss.streaming import open_source
    >>> source = open_source(np.array([[1.0, np.nan], [2.0, 3.0]]), np.array([0.5, 1.5]), features=["dose", "age"])
    >>> source.schema.names
    ['dose', 'age']
    """
    if isinstance(data, np.ndarray):
        if drop or keep or categories or schema:
            raise ValueError("drop, keep, categories and schema are for files and data frames, not for an array.")
        return ArraySource(data, target, sample_weight=weight, keys=key, names=features)
    plan = Plan(target, weight, key, features, drop, keep, categories, unknown, task)
    used = [*plan.roles, *(plan.features or ())] if schema is None else schema.used
    source = _undecided(data, used, plan.roles)
    for where, columns in source.kinds.items() if schema is not None else ():
        require_columns(used, list(columns), where)
    source.schema = decide(source, plan) if schema is None else schema
    return source


def _undecided(data: Any, used: Sequence[str], roles: Sequence[str]) -> TableSource:
    """A source without a schema; the names of columns help to read a CSV file."""
    if is_csv(data):
        from admiss.tables.csv_file import CsvSource

        return CsvSource(source_files(data), used, roles)
    if isinstance(data, str | Path) or (isinstance(data, Sequence) and all(isinstance(d, str | Path) for d in data)):
        if not data:
            raise SourceError("There are no files to read.")
        from admiss.tables.parquet import ParquetSource

        return ParquetSource(data)
    first = data[0] if isinstance(data, list | tuple) and data else data
    return DaskSource(data) if type(first).__module__.partition(".")[0] == "dask" else FrameSource(data)


def is_csv(data: Any) -> bool:
    """Whether this is a path, or a pattern, of CSV files."""
    return isinstance(data, str | Path) and str(data).lower().endswith(CSV_SUFFIXES)


def source_files(data: str | Path | Sequence[str | Path]) -> list[Path]:
    """The files that are read if data are opened that are paths, folders or patterns."""
    if is_csv(data):
        assert isinstance(data, str | Path)
        paths = [Path(data)] if Path(data).is_file() else [Path(path) for path in sorted(glob(str(data)))]
        if not paths:
            raise SourceError(f"There are no CSV files at {data}.")
        return paths
    from admiss.tables.parquet import parquet_paths

    return parquet_paths(data)


@dataclass(frozen=True)
class TableFile:
    """Features, the target, and the schema that says how they were obtained.

    Attributes
    ----------
    X : array of shape (n, d)
        Of the rows with a target, NaN where missing.
    y : array of shape (n,)
        Floats for a regression, labels (texts or whole numbers) for a classification.
    schema : Schema
    notes : list of str
        Sentences on the file, the target and the columns.
    weight, keys : array of shape (n,) or None
        Sample weights, and values that identify rows for folds, if the source has them.
    """

    X: FloatArray
    y: NDArray[Any]
    schema: Schema
    notes: list[str]
    weight: FloatArray | None = None
    keys: NDArray[Any] | None = None

    @property
    def names(self) -> list[str]:
        """Names of the features."""
        return self.schema.names

    @property
    def task(self) -> Literal["regression", "classification"]:
        """What the target is for."""
        return self.schema.task

    def features(self, rows: IntArray | None = None) -> Any:
        """All rows of the features, or some, as a data frame with their names."""
        return named_frame(self.X if rows is None else self.X[rows], self.names)


def read_table(
    data: Any, target: str, *, task: str = "auto", drop: Sequence[str] = (), keep: Sequence[str] = ()
) -> TableFile:
    """Read files or a data frame into memory.

    Rows without a target are left out. What becomes of the columns is said in :mod:`~admiss.tables.rules`: the same
    as in a pass over batches.

    Parameters
    ----------
    data : str, Path or data frame
        What :func:`open_source` reads, except for arrays.
    target : str
        Column to predict.
    task : {"auto", "regression", "classification"}
        With "auto", text, truth values and whole numbers with few values are classes.
    drop : sequence of str
        Columns to leave out.
    keep : sequence of str
        Columns to use even if they look like an ID, are constant, missing or copies, or are text with many values.

    Examples
    --------
    >>> import pandas as pd
    >>> table = read_table(pd.DataFrame({"plan": ["pro", "?", "free"], "y": [1.5, 2.0, 3.5]}), "y")
    >>> table.names, table.X.tolist(), table.y.tolist()
    (['plan=pro'], [[1.0], [nan], [0.0]], [1.5, 2.0, 3.5])
    """
    if isinstance(data, np.ndarray):
        raise ValueError("read_table is for files and data frames, not for an array: its columns have no names.")
    source = open_source(data, target, drop=drop, keep=keep, task=task)
    assert isinstance(source, TableSource)
    return collect(source, task)


def collect(source: TableSource, task: str = "auto", most_rows: int | None = None) -> TableFile:
    """All rows with a target, unless they are more than ``most_rows``."""
    schema = source.schema
    name = schema.target
    assert name is not None
    batches = []
    n_rows = 0
    for chunk in source.chunks():
        for batch in chunk.batches():
            batches.append(batch)
            n_rows += len(batch.X)
        if most_rows is not None and n_rows > most_rows:
            raise SourceError(
                f"The target {name} has class labels, which are fitted in memory up to {most_rows:,} rows, and there "
                "are more: fit a part of them, or use --task regression if they are numbers."
            )
    column = joined(name, [raw_column(name, batch.table[name]) for batch in batches])
    target = read_target(column, schema.task, source.decimal_comma, is_assumed=task == "auto")
    ends = np.cumsum([len(batch.X) for batch in batches])
    parts = list(zip(batches, np.split(target.rows, ends[:-1]), strict=True))
    X = np.concatenate([batch.X[rows] for batch, rows in parts])
    weights = [batch.weight[rows] for batch, rows in parts if batch.weight is not None]
    keys = [batch.keys[rows] for batch, rows in parts if batch.keys is not None]
    notes = [*source.notes, *target.notes, *schema.notes]
    weight = np.concatenate(weights) if weights else None
    return TableFile(X, target.y, schema, notes, weight, np.concatenate(keys) if keys else None)
