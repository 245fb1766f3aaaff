"""The source that some data are."""

from codecs import getincrementaldecoder
from collections.abc import Iterable, Mapping, Sequence
from glob import glob
from pathlib import Path
from typing import Any

import numpy as np

from admiss.extras import optional_import
from admiss.streaming.sources.arrays import ArraySource
from admiss.streaming.sources.frames import FrameSource
from admiss.streaming.sources.schema import Columns, Schema, SourceError
from admiss.streaming.sources.source import Source
from admiss.user_table.column import MISSING_WORDS
from admiss.user_table.file import separator_of

CSV_SUFFIXES = (".csv", ".tsv")
# Bytes of a CSV file that show its encoding and its separator.
FIRST_BYTES = 2**16
# Rows of a CSV file that determine the types of its columns.
TYPED_ROWS = 100_000


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
        from admiss.streaming.sources.parquet import ParquetSource

        return ParquetSource(data, columns)
    if _is_dask(data):
        from admiss.streaming.sources.partitions import DaskSource

        return DaskSource(data, columns)
    return FrameSource(data, columns)


def source_files(data: str | Path | Sequence[str | Path]) -> list[Path]:
    """The files that are read if data are opened that are paths, folders or patterns."""
    if isinstance(data, str | Path) and Path(data).suffix.lower() in CSV_SUFFIXES:
        paths = [Path(data)] if Path(data).is_file() else [Path(path) for path in sorted(glob(str(data)))]
        if not paths:
            raise SourceError(f"There are no CSV files at {data}.")
        return paths
    from admiss.streaming.sources.parquet import parquet_paths

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
        infer_schema_length=TYPED_ROWS,
        try_parse_dates=True,
        decimal_comma=separator == ";",
    )


def _separator(path: Path, target: Any) -> str:
    """What separates the cells of a CSV file."""
    with open(path, "rb") as file:
        start = file.read(FIRST_BYTES)
    if not start.strip():
        raise SourceError(f"{path} has no content.")
    try:
        text = getincrementaldecoder("utf-8-sig")().decode(start)  # the last character may be cut
    except UnicodeDecodeError as error:
        raise SourceError(f"{path} is not UTF-8: save it in this encoding, or as Parquet.") from error
    return separator_of(text, target if isinstance(target, str) else "")


def _is_dask(data: Any) -> bool:
    kind = data[0] if isinstance(data, list | tuple) and data else data
    return type(kind).__module__.partition(".")[0] == "dask"
