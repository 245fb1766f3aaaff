"""The clean encoding of the columns of a source as X and y.

A variable is categorical if the registry says so or if it has at most 5 values, a missing value counted as one. Each of
its levels is then a column of 0 and 1, including a level "missing" if some values are missing. Any other variable is a
column of numbers, NaN where missing. Variables that are never observed and rows without a target are dropped.

y is a number, or 1 for the level named in the registry and 0 for the others, or the levels themselves.
"""

from collections.abc import Mapping, Sequence

import numpy as np

from admiss.datasets.dataset import Dataset, Origin
from admiss.datasets.real.raw_tables import Column, RawTable, as_numbers, is_missing, labels
from admiss.datasets.real.registry import Encoding, Record
from formulations.arrays import BoolArray, FloatArray

FEW_VALUES = 5

Columns = Sequence[tuple[Origin, FloatArray]]


def encode_clean(record: Record, table: RawTable) -> Dataset:
    """The data set in the clean encoding."""
    encoding = record.encodings["clean"]
    table = set_missing(strip_blanks(table), encoding.imputed_where)
    table = set_missing(table, {name: (name, code) for name, code in record.coded_missing.items()})
    if encoding.target is not None:
        table = take_rows(table, ~is_missing(table[encoding.target]))
    columns: list[tuple[Origin, FloatArray]] = []
    for name in encoding.features:
        column = table[name]
        if is_missing(column).all():
            continue
        if name in encoding.categorical or has_few_values(column):
            columns += one_hot(name, column)
        else:
            columns.append((Origin(name, "number"), _numbers(record, name, column)))
    y, target = _target(record, encoding, table)
    return make_dataset(record, "clean", columns, y, record.task, target)


def set_missing(table: RawTable, where: Mapping[str, tuple[str, str]]) -> RawTable:
    """The table with NaN in column ``name`` where another one has a level, for each ``name: (other, level)``."""
    changed = dict(table)
    for name, (flag, level) in where.items():
        changed[name] = np.where(labels(table[flag]) == level, np.nan, table[name])
    return changed


def strip_blanks(table: RawTable) -> RawTable:
    """The table with leading and trailing blanks of levels removed."""
    return {
        name: np.array([value.strip() if isinstance(value, str) else value for value in column], dtype=column.dtype)
        for name, column in table.items()
    }


def take_rows(table: RawTable, rows: BoolArray) -> RawTable:
    """The selected rows of a table."""
    return {name: column[rows] for name, column in table.items()}


def has_few_values(column: Column) -> bool:
    """Whether a variable has at most 5 values, a missing value counted as one."""
    missing = is_missing(column)
    return len(set(column[~missing].tolist())) + bool(missing.any()) <= FEW_VALUES


def one_hot(name: str, column: Column) -> Columns:
    """One column per level, in numerical or alphabetical order, and one for "missing" if values are missing.

    Examples
    --------
    >>> [(origin.column, values.tolist()) for origin, values in one_hot("size", np.array([2.0, np.nan, 10.0]))]
    [('size=2', [1.0, 0.0, 0.0]), ('size=10', [0.0, 0.0, 1.0]), ('size=missing', [0.0, 1.0, 0.0])]
    """
    missing = is_missing(column)
    levels = sorted(set(column[~missing].tolist()))
    columns = [
        (Origin(name, "level", level), (column == value).astype(float))
        for level, value in zip(labels(np.array(levels, dtype=object)), levels, strict=True)
    ]
    return [*columns, (Origin(name, "missing"), missing.astype(float))] if missing.any() else columns


def make_dataset(
    record: Record,
    encoding: str,
    columns: Columns,
    y: Column | None,
    task: str | None,
    target: str | None,
    hidden: BoolArray | None = None,
) -> Dataset:
    """The data set with the given columns."""
    X = np.column_stack([values for _, values in columns])
    origin = tuple(origin for origin, _ in columns)
    return Dataset(record.name, X, origin, y, task, target, encoding, record.cautions, hidden)


def _numbers(record: Record, name: str, column: Column) -> FloatArray:
    """A variable as numbers, with NaN for the words that the registry declares missing."""
    if column.dtype != object:
        return column.astype(float)
    known = [None if value in record.also_missing else value for value in column]
    numbers = as_numbers(known)
    if np.isnan(numbers[[value is not None for value in known]]).any():
        raise ValueError(f"The variable {name!r} of {record.name} has words among its numbers: declare it categorical.")
    return numbers


def _target(record: Record, encoding: Encoding, table: Mapping[str, Column]) -> tuple[Column | None, str | None]:
    """y and its description."""
    name = encoding.target
    if name is None:
        return None, None
    if record.task == "regression":
        return table[name].astype(float), name
    levels = labels(table[name])
    if record.task == "multiclass":
        return levels.astype(str), name
    if record.positive is not None:
        return (levels == record.positive).astype(int), f"{name} is {record.positive}"
    return (levels != record.negative).astype(int), f"{name} is not {record.negative}"
