"""Features and a target from a CSV or Parquet file.

Numbers are used as they are. A column of text with few distinct values becomes one column of 0 and 1 per value, missing
if the text is missing; a column with more values is left out. Rows without a target are left out.
"""

from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np

from admiss.extras import MissingPackageError
from formulations.arrays import FloatArray, IntArray

BACKENDS = ("polars", "pandas", "pyarrow")
# A column of text with more distinct values is left out.
MOST_CATEGORIES = 10
MISSING_WORDS = ("", "NA", "N/A", "NaN", "nan", "null", "NULL", "?", ".")


@dataclass(frozen=True)
class TableFile:
    """Features, names and target of a file, and notes on how they were obtained."""

    X: FloatArray
    names: list[str]
    y: FloatArray
    notes: list[str]

    def features(self, rows: IntArray) -> Any:
        """Some rows of the features as a data frame with their names."""
        columns = {name: self.X[rows, j] for j, name in enumerate(self.names)}
        return nw.from_dict(columns, backend=_backend()).to_native()


def read_table(path: str | Path, target: str) -> TableFile:
    """Read a CSV or Parquet file.

    Parameters
    ----------
    path : str or Path
        The file; its suffix determines the format.
    target : str
        Numeric column to predict.
    """
    frame = _read(Path(path))
    if target not in frame.columns:
        raise ValueError(f"{path} has no column {target!r}: it has {', '.join(map(str, frame.columns))}.")
    y = _numbers(frame[target])
    if y is None:
        raise ValueError(f"The target {target!r} is not a column of numbers.")
    notes, columns, names = [], [], []
    for name in frame.columns:
        if name == target:
            continue
        values = _numbers(frame[name])
        if values is not None:
            if np.isinf(values).any():
                notes.append(f"{int(np.isinf(values).sum())} infinite values of {name} are treated as missing.")
            columns.append(np.where(np.isinf(values), np.nan, values))
            names.append(str(name))
            continue
        encoded = _encoded(frame[name])
        if encoded is None:
            notes.append(f"{name} is left out: text with more than {MOST_CATEGORIES} distinct values, or only one.")
            continue
        columns += list(encoded.values())
        names += [f"{name}={value}" for value in encoded]
    known = np.isfinite(y)
    if not known.all():
        notes.append(f"{int((~known).sum())} rows without {target} are left out.")
    if not columns or not known.any():
        raise ValueError(f"{path} has no features or no rows with a target.")
    return TableFile(np.column_stack(columns)[known], names, y[known], notes)


def _read(path: Path) -> Any:
    if not path.is_file():
        raise ValueError(f"There is no file {path}.")
    readers = {".csv": nw.read_csv, ".parquet": nw.read_parquet, ".pq": nw.read_parquet}
    if path.suffix.lower() not in readers:
        raise ValueError(f"{path} is neither .csv nor .parquet.")
    backend = _backend()
    options: dict[str, Any] = {}
    if path.suffix.lower() == ".csv":
        with path.open(errors="replace") as file:
            header = file.readline()
        if ";" in header and "," not in header:
            options["separator"] = ";"
        if backend == "polars":
            options |= {"null_values": list(MISSING_WORDS), "infer_schema_length": None}
        elif backend == "pandas":
            options |= {"na_values": list(MISSING_WORDS)}
    try:
        return readers[path.suffix.lower()](str(path), backend=backend, **options)
    except Exception as error:  # each backend has its own errors
        raise ValueError(f"{path} could not be read: {' '.join(str(error).split())[:200]}") from error


def _backend() -> Any:
    """The installed library for data frames."""
    backend = next((name for name in BACKENDS if find_spec(name)), None)
    if backend is None:
        raise MissingPackageError("Reading a file", "polars, pandas or pyarrow", "files")
    return backend


def _numbers(series: Any) -> FloatArray | None:
    """A numeric column with NaN, or None for other columns."""
    if series.null_count() == len(series):
        return np.full(len(series), np.nan)
    if not (series.dtype.is_numeric() or series.dtype == nw.Boolean):
        return None
    return np.asarray(series.cast(nw.Float64).fill_null(np.nan).to_numpy(), dtype=float)


def _encoded(series: Any) -> dict[str, FloatArray] | None:
    """A column of text as columns of 0 and 1, or None if it has too many values."""
    texts = [None if value is None or str(value) in MISSING_WORDS else str(value) for value in series.to_list()]
    values = sorted({text for text in texts if text is not None})
    if not 2 <= len(values) <= MOST_CATEGORIES:
        return None
    encoded = values[1:] if len(values) == 2 else values  # two values are one column
    return {value: np.array([np.nan if text is None else float(text == value) for text in texts]) for value in encoded}
