"""Features and a target of a table in memory."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Literal

import narwhals.stable.v2 as nw
import numpy as np
from numpy.typing import NDArray

from admiss.extras import MissingPackageError
from admiss.tables.column import SourceError, joined, raw_column
from admiss.tables.csv_file import is_csv
from admiss.tables.opening import open_source
from admiss.tables.schema import Schema
from admiss.tables.source import Chunk, Source
from admiss.tables.target import read_target
from formulations.arrays import FloatArray, IntArray

BACKENDS = ("polars", "pandas", "pyarrow")


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

    def features(self, rows: IntArray) -> Any:
        """Some rows of the features as a data frame with their names."""
        columns = {name: self.X[rows, j] for j, name in enumerate(self.names)}
        return nw.from_dict(columns, backend=_backend()).to_native()


def read_table(
    data: Any, target: str, *, task: str = "auto", drop: Sequence[str] = (), keep: Sequence[str] = ()
) -> TableFile:
    """Read a CSV or Parquet file, or a data frame.

    Rows without a target are left out. What becomes of the columns is said in :mod:`~admiss.tables.deciding`: the same
    as in a pass over batches.

    Parameters
    ----------
    data : str, Path or data frame
        A file, whose suffix determines the format, or a frame of pandas, polars or pyarrow.
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
    if isinstance(data, str | Path):
        _backend()
        if not Path(data).is_file():
            raise ValueError(f"There is no file {data}.")
        if not is_csv(data) and Path(data).suffix.lower() not in (".parquet", ".pq"):
            raise ValueError(f"{data} is neither .csv nor .parquet.")
    return collect(open_source(data, target, drop=drop, keep=keep, task=task), task)


def collect(source: Source, task: str = "auto", most_rows: int | None = None) -> TableFile:
    """All rows with a target of a source of files or frames, unless they are more than ``most_rows``."""
    schema = source.schema
    target = schema.target
    assert target is not None
    parts: list[tuple[Chunk, Any]] = []
    for chunk in source.chunks():
        parts += [(chunk, frame) for frame in chunk.frames(schema.used)]
        if most_rows is not None and sum(len(frame) for _, frame in parts) > most_rows:
            raise SourceError(
                f"The target {target} has class labels, which are fitted in memory up to {most_rows:,} rows, and there "
                "are more: fit a part of them, or use --task regression if they are numbers."
            )
    column = joined(target, [raw_column(target, frame[target]) for _, frame in parts])
    y = read_target(column, schema.task, source.decimal_comma)
    said = read_target(column, task, source.decimal_comma)
    features, weights, keys = [], [], []
    start = 0
    for chunk, frame in parts:
        rows = y.rows[start : start + len(frame)]
        start += len(frame)
        features.append(schema.encode(frame, chunk.name, rows)[rows])
        if schema.weight is not None:
            weights.append(schema.numbers_of(frame, schema.weight, chunk.name)[rows])
        if schema.key is not None:
            keys.append(chunk.keys(frame, schema.key)[rows])
    X = np.concatenate(features)
    found = TableFile(X, y.y, schema, [*source.notes, *said.notes, *schema.notes])
    weight = np.concatenate(weights) if weights else None
    return replace(found, weight=weight, keys=np.concatenate(keys) if keys else None)


def _backend() -> Any:
    """The installed library for data frames."""
    backend = next((name for name in BACKENDS if find_spec(name)), None)
    if backend is None:
        raise MissingPackageError("Reading a file", "polars, pandas or pyarrow", "files")
    return backend
