"""Features and a target from a CSV or Parquet file."""

from collections.abc import Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Literal

import narwhals.stable.v2 as nw
import numpy as np
from numpy.typing import NDArray

from admiss.extras import MissingPackageError
from admiss.user_table.column import Column
from admiss.user_table.features import encode
from admiss.user_table.file import RawFile, read_file
from admiss.user_table.notation import dates_without_marks, plain_number, read_text
from admiss.user_table.notes import Notes, listed
from admiss.user_table.target import read_target
from formulations.arrays import FloatArray, IntArray

BACKENDS = ("polars", "pandas", "pyarrow")
# Columns that an error names.
MOST_COLUMNS = 20


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
    :mod:`~admiss.user_table.features`; which values of text get a column is decided on all rows, without the
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
    y = read_target(_read(found.pop(target), file, strict=True), task)
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
        if name not in names:
            near = get_close_matches(name, names, n=1)
            hint = f" Did you mean {near[0]!r}?" if near else ""
            if all(plain_number(name) is not None for name in names):
                hint = " The first line must have the names of the columns."
            raise ValueError(f"{path} has no column {name!r}: it has {listed(names, MOST_COLUMNS)}.{hint}")
    both = [name for name in drop if name in keep]
    if both:
        raise ValueError(f"{listed(both)} cannot be both dropped and kept: use --drop or --keep, not both.")
    if target in (*drop, *keep):
        raise ValueError(f"{target} is the target: --drop and --keep are for other columns.")


def _backend() -> Any:
    """The installed library for data frames."""
    backend = next((name for name in BACKENDS if find_spec(name)), None)
    if backend is None:
        raise MissingPackageError("Reading a file", "polars, pandas or pyarrow", "files")
    return backend
