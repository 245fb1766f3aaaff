"""The source that some data are."""

from collections.abc import Iterable, Mapping, Sequence
from glob import glob
from pathlib import Path
from typing import Any

import numpy as np

from admiss.tables.arrays import ArraySource
from admiss.tables.column import SourceError
from admiss.tables.csv_file import CsvSource, is_csv
from admiss.tables.frames import DaskSource, FrameSource
from admiss.tables.schema import Schema
from admiss.tables.source import Plan, Source


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
        Columns to use, whatever they hold; by default those that :mod:`~admiss.tables.deciding` does not leave out.
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
    plan: Plan | Schema = Plan(target, weight, key, features, drop, keep, categories, unknown, task)
    plan = plan if schema is None else schema
    if is_csv(data):
        return CsvSource(source_files(data), plan)
    if isinstance(data, str | Path) or (isinstance(data, Sequence) and all(isinstance(d, str | Path) for d in data)):
        if not data:
            raise SourceError("There are no files to read.")
        from admiss.tables.parquet import ParquetSource

        return ParquetSource(data, plan)
    first = data[0] if isinstance(data, list | tuple) and data else data
    if type(first).__module__.partition(".")[0] == "dask":
        return DaskSource(data, plan)
    return FrameSource(data, plan)


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
