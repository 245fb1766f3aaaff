"""Features and a target from a CSV or Parquet file.

A target of text, truth values or whole numbers with few values is one of classes; all other numbers are a regression.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Literal

import narwhals.stable.v2 as nw
import numpy as np
from numpy.typing import NDArray

from admiss.extras import MissingPackageError
from admiss.tables.column import LARGEST_WHOLE, Column, require_column
from admiss.tables.features import encode
from admiss.tables.file import RawFile, read_file
from admiss.tables.notes import Notes, listed
from admiss.tables.parsing import dates_without_marks, plain_number, read_text
from formulations.arrays import BoolArray, FloatArray, IntArray

BACKENDS = ("polars", "pandas", "pyarrow")
TASKS = ("auto", "regression", "classification")
# Whole numbers are classes if they have at most this number of values.
MOST_CLASSES = 10
READ = {
    "notation": "read as numbers in another notation",
    "hours": "a time, in hours",
    "durations": "a duration, in days",
}


@dataclass(frozen=True)
class TableFile:
    """Features, their names, the target, the task, and notes on how they were obtained.

    ``y`` are floats for a regression and labels (texts or whole numbers) for a classification.
    """

    X: FloatArray
    names: list[str]
    y: NDArray[Any]
    task: Literal["regression", "classification"]
    notes: list[str]

    def features(self, rows: IntArray) -> Any:
        """Some rows of the features as a data frame with their names."""
        columns = {name: self.X[rows, j] for j, name in enumerate(self.names)}
        return nw.from_dict(columns, backend=_backend()).to_native()


def read_table(
    path: str | Path, target: str, *, task: str = "auto", drop: Sequence[str] = (), keep: Sequence[str] = ()
) -> TableFile:
    """Read a CSV or Parquet file.

    Rows without a target are left out. How columns are encoded is said in
    :mod:`~admiss.tables.features`; which values of text get a column is decided on all rows, without the
    target.

    Parameters
    ----------
    path : str or Path
        The file; its suffix determines the format.
    target : str
        Column to predict.
    task : {"auto", "regression", "classification"}
        With "auto", text, truth values and whole numbers with few values are classes.
    drop : sequence of str
        Columns to leave out.
    keep : sequence of str
        Columns to use even if they look like an ID, are constant, missing or copies, or are text with many values.
    """
    _backend()
    notes = Notes()
    file = read_file(Path(path), target, notes)
    _check_names(path, file, target, drop, keep)
    found = {column.name: column for column in file.columns if column.name not in drop}
    y = _read_target(_read(found.pop(target), file, strict=True), task)
    columns = [_read(column, file).at(y.rows) for column in found.values()]
    features = encode(columns, keep, notes)
    if not features:
        left_out = " ".join(notes.sentences())
        raise ValueError(f"{path} has no features to predict {target} from. {left_out}".strip())
    X = np.column_stack(list(features.values()))
    return TableFile(X, list(features), y.y, y.task, file.notes + y.notes + notes.sentences())


def _read(column: Column, file: RawFile, strict: bool = False) -> Column:
    return dates_without_marks(read_text(column, decimal_comma=file.decimal_comma, strict=strict))


def _check_names(path: str | Path, file: RawFile, target: str, drop: Sequence[str], keep: Sequence[str]) -> None:
    """Refuse names that the file does not have, and contradictions."""
    names = [column.name for column in file.columns]
    for name in (target, *drop, *keep):
        if name not in names and all(plain_number(other) is not None for other in names):
            raise ValueError(
                f"{path} has no column {name!r}: it has {listed(names, most=20)}. "
                "The first line must have the names of the columns."
            )
        require_column(name, names, path)
    both = [name for name in drop if name in keep]
    if both:
        raise ValueError(f"{listed(both)} cannot be both dropped and kept: use --drop or --keep, not both.")
    if target in (*drop, *keep):
        raise ValueError(f"{target} is the target: --drop and --keep are for other columns.")


@dataclass(frozen=True)
class _Target:
    """The target at the rows that have one, these rows, the task, and notes."""

    y: NDArray[Any]
    rows: BoolArray
    task: Literal["regression", "classification"]
    notes: list[str]


def _read_target(column: Column, task: str) -> _Target:
    """The target as ``task``, one of :data:`TASKS`, says."""
    if task not in TASKS:
        raise ValueError(f"The task must be one of {', '.join(TASKS)}, not {task!r}.")
    rows, name = column.observed, column.name
    if not rows.any():
        raise ValueError(f"The target {name} has no values.")
    without = int((~rows).sum())
    counted = f"{without:,} rows without {name} are" if without > 1 else f"1 row without {name} is"
    notes = [f"{counted} left out."] if without else []
    labels = _labels(column.at(rows))
    counts = Counter(labels.tolist())
    if len(counts) == 1:
        raise ValueError(f"The target {name} is {labels[0]} in every row: there is nothing to predict.")
    if task == "regression" or (task == "auto" and not _are_classes(column, labels, counts)):
        if column.kind == "text":
            raise ValueError(f"The target {name} is not a column of numbers: use --task classification.")
        if column.kind == "dates":
            readings = "".join(f" ({detail})" for key, detail in column.remarks if key == "dates")
            notes.append(f"{name} is a date{readings}, in days since 1970-01-01.")
        notes += [
            f"{name} is {READ[key]}{f' ({detail})' if detail else ''}." for key, detail in column.remarks if key in READ
        ]
        if task == "auto":
            notes.append(_assumed("regression", f"{name} is a number with {len(counts):,} distinct values"))
        return _Target(column.numbers[rows], rows, "regression", notes)
    single = [label for label, count in counts.items() if count == 1]
    if len(counts) - len(single) < 2 or (len(counts) > MOST_CLASSES and 2 * len(single) > len(counts)):
        raise ValueError(
            f"The target {name} has {len(counts):,} different values in {len(labels):,} rows, too many for classes."
        )
    if single:
        shown = listed([repr(label) for label in single])
        notes.append(f"Rows of classes with one row are left out: {shown}.")
        rows, labels = rows.copy(), labels[(several := ~np.isin(labels, single))]
        rows[rows] = several
    if task == "auto":
        sizes = Counter(labels.tolist()).most_common()
        shown = listed([f"{label}: {count:,} rows" for label, count in sizes])
        notes.append(_assumed("classification", f"{name} has {len(sizes)} classes ({shown})"))
    return _Target(labels, rows, "classification", notes)


def _assumed(task: str, reason: str) -> str:
    return f"{reason}, so {task} is assumed; --task regression or --task classification decides."


def _labels(column: Column) -> NDArray[Any]:
    """A column without missing values as classes: texts, or whole numbers."""
    numbers = column.numbers
    if column.kind == "text":
        return np.array([" ".join(str(text).split()) for text in column.texts])
    if column.kind == "truth":
        return np.where(numbers == 1, "True", "False")
    if (numbers == np.round(numbers)).all() and (np.abs(numbers) < LARGEST_WHOLE).all():
        return numbers.astype(np.int64)
    return np.array([repr(value) for value in numbers.tolist()])


def _are_classes(column: Column, labels: NDArray[Any], counts: Counter[Any]) -> bool:
    if column.kind == "numbers":
        few = len(counts) <= min(MOST_CLASSES, len(labels) / 5)  # five rows each on average
        return few and labels.dtype == np.int64 and not column.remarks
    return column.kind != "dates"


def _backend() -> Any:
    """The installed library for data frames."""
    backend = next((name for name in BACKENDS if find_spec(name)), None)
    if backend is None:
        raise MissingPackageError("Reading a file", "polars, pandas or pyarrow", "files")
    return backend
