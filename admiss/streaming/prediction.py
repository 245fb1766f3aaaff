"""Predictions and patterns of a source, chunk by chunk."""

import os
import uuid
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from admiss.atomic_write import check_outputs, flush
from admiss.extras import optional_import
from admiss.tables.column import SourceError
from admiss.tables.csv_file import escape_formula
from admiss.tables.source import Batch, Source, named_frame
from admiss.terminal.progress import progress
from admiss.terminal.table import Table

with optional_import("Writing Parquet files", "files"):
    import pyarrow as pa
    import pyarrow.parquet as pq
    from pyarrow.csv import CSVWriter

PREDICTION = "prediction"


def predict_to_parquet(
    model: Any, source: Source, path: str | Path, *, keep: Sequence[str] = (), method: str = "predict"
) -> int:
    """Write the predictions of all rows of a source, in its order, and return their number.

    Parameters
    ----------
    model : estimator
        Fitted on the features of the source.
    source : Source
        The rows; see :func:`~admiss.streaming.open_source`.
    path : path
        A Parquet file, or a CSV file if its name ends in .csv, which appears under its name once it is complete. A
        file of the source is refused.
    keep : sequence of str
        Columns of the source to write before the column ``prediction``; those of a CSV file are text. In a CSV file,
        cells that a spreadsheet would take for a formula begin with an apostrophe.
    method : {"predict", "predict_proba"}
        With "predict_proba" there is a column per class: ``prediction_CLASS``.

    Examples
    --------
    >>> import tempfile
    >>> from admiss import AdaptiveRegressor
    >>> from admiss.streaming import open_source, predict_to_parquet
    >>> X = np.array([[1.0, np.nan], [2.0, 3.0], [3.0, 1.0], [4.0, 2.0]])
    >>> source = open_source(X, features=["dose", "age"])
    >>> model = AdaptiveRegressor().fit(named_frame(X, source.schema.names), [1.0, 2.0, 3.0, 4.0])
    >>> predict_to_parquet(model, source, Path(tempfile.mkdtemp()) / "predictions.parquet")
    4
    """
    path = Path(path)
    if PREDICTION in keep:
        raise ValueError(f"A column {PREDICTION!r} cannot be kept, since it is written: rename it.")
    if not path.parent.is_dir():
        raise ValueError(f"There is no folder {path.parent} for {path.name}.")
    check_outputs([("path", path)], [("the source", file) for file in source.paths])
    is_csv = path.suffix.lower() == ".csv"
    unfinished, writer, n_rows = path.with_name(f".{uuid.uuid4().hex}.part"), None, 0
    try:
        for batch in _batches(source, "predicting", keep):
            table = _predicted(model, source, batch, keep, method)
            table = _without_formulas(table) if is_csv else table
            if writer is None:
                written = table.schema
                writer = (CSVWriter if is_csv else pq.ParquetWriter)(unfinished, written)
            try:
                writer.write_table(table.cast(written))
            except (pa.ArrowException, ValueError) as error:
                raise SourceError("A column to keep has another type in a later file: write both alike.") from error
            n_rows += len(table)
        if writer is None:
            raise SourceError("The source has no rows.")
        writer.close()
        with unfinished.open("rb+") as file:
            flush(file)
        os.replace(unfinished, path)
    finally:
        if writer is not None:
            writer.close()
        unfinished.unlink(missing_ok=True)
    return n_rows


def _predicted(model: Any, source: Source, batch: Batch, keep: Sequence[str], method: str) -> Any:
    found = np.asarray(getattr(model, method)(named_frame(batch.X, source.schema.names)))
    columns = {name: batch.table[name].to_arrow() for name in keep}
    if found.ndim == 1:
        columns[PREDICTION] = pa.array(found)
    else:
        columns |= {f"{PREDICTION}_{label}": pa.array(p) for label, p in zip(model.classes_, found.T, strict=True)}
    return pa.table(columns)


def _without_formulas(table: Any) -> Any:
    """A table whose texts and names no spreadsheet takes for a formula."""
    columns = {}
    for name, column in zip(table.column_names, table.columns, strict=True):
        if pa.types.is_dictionary(column.type):
            column = column.cast(column.type.value_type)
        if pa.types.is_string(column.type) or pa.types.is_large_string(column.type):
            texts = [None if text is None else escape_formula(text) for text in column.to_pylist()]
            column = pa.array(texts, column.type)
        columns[escape_formula(name)] = column
    return pa.table(columns)


def pattern_report(model: Any, source: Source) -> Table:
    """The ``pattern_report`` of a model for all rows of a source.

    Memory depends on the number of patterns, which is limited, and not on that of rows.

    Parameters
    ----------
    model : estimator
        A fitted model that has a method ``pattern_report``.
    source : Source
        The rows; see :func:`~admiss.streaming.open_source`.

    Examples
    --------
    >>> from admiss import AdaptiveRegressor
    >>> from admiss.streaming import open_source, pattern_report
    >>> X = np.array([[1.0, np.nan], [2.0, 3.0], [3.0, 1.0], [4.0, 2.0]])
    >>> source = open_source(X, features=["dose", "age"])
    >>> model = AdaptiveRegressor().fit(named_frame(X, source.schema.names), [1.0, 2.0, 3.0, 4.0])
    >>> pattern_report(model, source).n_rows
    2
    """
    packed, counts = np.empty((0, -(-len(source.schema.names) // 8)), dtype=np.uint8), np.empty(0, dtype=np.int64)
    for batch in _batches(source, "counting patterns"):
        packed = np.vstack([packed, np.packbits(np.isnan(batch.X), axis=1)])
        counts = np.append(counts, np.ones(len(batch.X), dtype=np.int64))
        rows = np.ascontiguousarray(packed).view(f"V{packed.shape[1]}").ravel()
        _, first, code = np.unique(rows, return_index=True, return_inverse=True)
        packed, counts = packed[first], np.bincount(code, counts).astype(np.int64)
        most = 2_000_000  # at 20 features, 6 MB of packed patterns and 320 MB of the matrix that is reported on
        if len(counts) > most:
            raise SourceError(f"The source has more than {most:,} patterns: report on fewer features or rows.")
    M = np.unpackbits(packed, axis=1, count=len(source.schema.names))
    X = np.where(M, np.nan, 0.0)
    return model.pattern_report(named_frame(X, source.schema.names), rows=counts)


def _batches(source: Source, label: str, columns: Sequence[str] = ()) -> Iterator[Batch]:
    size = source.size
    chunks = source.chunks() if size is None else progress(source.chunks(), size, label)
    for chunk in chunks:
        yield from chunk.batches(columns)
