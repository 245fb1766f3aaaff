"""The source that some data are."""

from codecs import getincrementaldecoder
from collections.abc import Iterable, Mapping, Sequence
from glob import glob
from pathlib import Path
from typing import Any

import numpy as np

from admiss.extras import optional_import
from admiss.tables.column import MISSING_WORDS, SourceError
from admiss.tables.file import separator_of
from admiss.tables.frames import ArraySource, DaskSource, FrameSource
from admiss.tables.schema import Columns, Schema
from admiss.tables.source import Source

CSV_SUFFIXES = (".csv", ".tsv")


def open_source(
    data: Any,
    target: Any = None,
    *,
    weight: Any = None,
    key: Any = None,
    features: Sequence[str] | None = None,
    drop: Sequence[str] = (),
    categories: Mapping[str, Iterable[Any]] | None = None,
    unknown: str = "error",
    schema: Schema | None = None,
) -> Source:
    """Open data as a source of rows in chunks.

    ==============================================  ==================================================
    data                                            chunks
    ==============================================  ==================================================
    Parquet files: paths, folders, patterns         row groups
    CSV files: a path or a pattern                  batches of polars
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
        Columns to use; by default all that have no other part. For an array, the names of its columns.
    drop : sequence of str
        Columns to leave out.
    categories : dict of str to sequence, optional
        Values of columns of text. By default they are collected from all Parquet files, or from the first frame.
    unknown : {"error", "missing"}
        Treatment of values of text that are not among them.
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
        if drop or categories or schema:
            raise ValueError("drop, categories and schema are for files and data frames, not for an array.")
        return ArraySource(data, target, sample_weight=weight, keys=key, names=features)
    columns = Columns(target, weight, key, features, drop, categories, unknown) if schema is None else schema
    if isinstance(data, str | Path) and Path(data).suffix.lower() in CSV_SUFFIXES:
        paths = source_files(data)
        frames = FrameSource(_scanned(paths, target), columns, str(data))
        frames.paths = paths
        return frames
    if isinstance(data, str | Path) or (isinstance(data, Sequence) and all(isinstance(d, str | Path) for d in data)):
        if not data:
            raise SourceError("There are no files to read.")
        from admiss.tables.parquet import ParquetSource

        return ParquetSource(data, columns)
    first = data[0] if isinstance(data, list | tuple) and data else data
    if type(first).__module__.partition(".")[0] == "dask":
        return DaskSource(data, columns)
    return FrameSource(data, columns)


def source_files(data: str | Path | Sequence[str | Path]) -> list[Path]:
    """The files that are read if data are opened that are paths, folders or patterns."""
    if isinstance(data, str | Path) and Path(data).suffix.lower() in CSV_SUFFIXES:
        paths = [Path(data)] if Path(data).is_file() else [Path(path) for path in sorted(glob(str(data)))]
        if not paths:
            raise SourceError(f"There are no CSV files at {data}.")
        return paths
    from admiss.tables.parquet import parquet_paths

    return parquet_paths(data)


def _scanned(paths: Sequence[Path], target: Any) -> Any:
    """CSV files as a lazy frame that is collected in batches."""
    with optional_import("Reading CSV files in batches", "files"):
        import polars
    separator = _separator(paths[0], target)
    words = [*MISSING_WORDS, *(word.lower() for word in MISSING_WORDS), *(word.upper() for word in MISSING_WORDS)]
    return polars.scan_csv(
        list(paths),
        separator=separator,
        null_values=sorted(set(words)),
        infer_schema_length=100_000,
        try_parse_dates=True,
        decimal_comma=separator == ";",
    )


def _separator(path: Path, target: Any) -> str:
    """What separates the cells of a CSV file."""
    with open(path, "rb") as file:
        start = file.read(2**16)
    if not start.strip():
        raise SourceError(f"{path} has no content.")
    try:
        text = getincrementaldecoder("utf-8-sig")().decode(start)  # the last character may be cut
    except UnicodeDecodeError as error:
        raise SourceError(f"{path} is not UTF-8: save it in this encoding, or as Parquet.") from error
    return separator_of(text, target if isinstance(target, str) else "")
