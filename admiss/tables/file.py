"""Columns of a CSV or Parquet file.

CSV files are read by the standard library, so that the result is the same with every library for data frames: in UTF-8,
with or without a byte-order mark, in UTF-16 with one, or else in Windows-1252; separated by commas, semicolons, tabs or
bars. Parquet files are read by polars or pyarrow.
"""

import csv
import io
import re
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from importlib.util import find_spec
from itertools import islice, zip_longest
from pathlib import Path
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np

from admiss.extras import MissingPackageError
from admiss.tables.column import LARGEST_WHOLE, Column, kind_of, numbers, text_column
from admiss.tables.notes import Notes
from admiss.terminal.progress import progress

SEPARATORS = ",;\t|"


@dataclass(frozen=True)
class RawFile:
    """Columns of a file, notes on the file, and whether 1,234 is a number near one."""

    columns: list[Column]
    notes: list[str]
    decimal_comma: bool = False


def read_file(path: Path, target: str, notes: Notes) -> RawFile:
    """Read the columns of a file, one of which is the target; notes on single columns are added to ``notes``."""
    if not path.is_file():
        raise ValueError(f"There is no file {path}.")
    readers: dict[str, Callable[[Path, str, Notes], RawFile]] = {
        ".csv": _read_csv, ".tsv": _read_csv, ".parquet": _read_parquet, ".pq": _read_parquet
    }  # fmt: skip
    if path.suffix.lower() not in readers:
        raise ValueError(f"{path} is neither .csv nor .parquet.")
    return readers[path.suffix.lower()](path, target, notes)


def _read_csv(path: Path, target: str, notes: Notes) -> RawFile:
    text, encoding = _decoded(path)
    about = [] if encoding is None else [f"{path.name} is not UTF-8 and was read as {encoding}."]
    named = re.match(r'"?sep=(.)"?\r?\n', text)  # Excel
    if named:
        text = text[named.end() :]
    separator = named[1] if named else separator_of(text, target)
    lines = progress(_reader(text, separator), text.count("\n") + 1, f"reading {path.name}")
    try:
        rows = [(number, row) for number, row in enumerate(lines, start=1) if any(map(str.strip, row))]
    except csv.Error as error:
        raise ValueError(f"{path} could not be read as CSV, check the quotation marks: {error}.") from error
    if len(rows) < 2:
        raise ValueError(f"{path} has {'no rows below the header' if rows else 'no content'}.")
    header = _header(rows.pop(0)[1], [row for _, row in rows])
    short = 0
    for number, row in rows:
        if any(map(str.strip, row[len(header) :])):
            raise ValueError(
                f"{path}: row {number:,} has {len(row)} cells and the header has {len(header)}: put cells with"
                f" {'a tab' if separator == chr(9) else repr(separator)} inside into quotation marks."
            )
        short += len(row) < len(header)
    if short:
        counted = f"{short:,} rows of {path.name} have" if short > 1 else f"1 row of {path.name} has"
        about.append(f"{counted} fewer cells than the header; the rest is missing.")
    transposed = zip_longest(*(row[: len(header)] for row in (header, *(row for _, row in rows))), fillvalue="")
    columns = [text_column(name, cells[1:]) for name, cells in zip(_names(header, notes), transposed, strict=True)]
    return RawFile(columns, about, decimal_comma=separator == ";")


def _header(first: list[str], rows: list[list[str]]) -> list[str]:
    """The first row, with a cell for the names of rows that R writes, and without empty columns at the end."""
    named_rows = all(len(row) == len(first) + 1 for row in rows) and any(row[-1].strip() for row in rows)
    header = ["", *first] if named_rows else first
    while not header[-1].strip() and not any("".join(row[len(header) - 1 :]).strip() for row in rows):
        header = header[:-1]
    return header


def _decoded(path: Path) -> tuple[str, str | None]:
    """The text of a file, and its encoding if that is a guess."""
    content = path.read_bytes()
    if content.startswith((b"\xff\xfe", b"\xfe\xff")):
        text, guess = content.decode("utf-16", errors="replace"), None
    else:
        try:
            text, guess = content.decode("utf-8-sig"), None
        except UnicodeDecodeError:
            text, guess = content.decode("cp1252", errors="replace"), "Windows-1252"
    if "\0" in text:
        raise ValueError(f"{path} is not a text file: save the table as CSV or Parquet.")
    return text, guess


def _reader(text: str, separator: str) -> Any:
    return csv.reader(io.StringIO(text, newline=""), delimiter=separator, skipinitialspace=True, strict=True)


def separator_of(text: str, target: str) -> str:
    """The separator that gives the header a target, the first 50 rows equally many cells, and the header the most."""
    start = text[:1_000_000]  # quotation marks that do not end make a row of the whole text

    def quality(separator: str) -> tuple[bool, bool, int]:
        rows: list[list[str]] = [[]]
        with suppress(csv.Error):  # quotation marks that belong to another separator
            rows = [row for row in islice(_reader(start, separator), 50) if any(row)] or rows
        header = [" ".join(cell.split()) for cell in rows[0]]
        return target in header, len({len(row) for row in rows}) == 1 < len(header), len(header)

    return max(SEPARATORS, key=quality)


def _names(header: list[str], notes: Notes) -> list[str]:
    """Names without blanks around, each used once."""
    names: list[str] = []
    given = {" ".join(name.split()) for name in header}
    for position, cell in enumerate(header, start=1):
        wanted = " ".join(cell.split())
        name, count = wanted or f"column_{position}", 1
        while name in names or (name != wanted and name in given):
            count += 1
            name = f"{wanted or f'column_{position}'}_{count}"
        if name != wanted:
            notes.add("renamed" if wanted else "unnamed", name)
        names.append(name)
    return names


def _read_parquet(path: Path, target: str, notes: Notes) -> RawFile:
    library: Any = next((name for name in ("polars", "pyarrow") if find_spec(name)), None)
    if library is None:
        raise MissingPackageError("Reading a Parquet file", "polars or pyarrow", "files")
    try:
        frame: Any = nw.read_parquet(str(path), backend=library)
    except Exception as error:  # each library has its own errors
        raise ValueError(f"{path} could not be read as Parquet: {' '.join(str(error).split())[:200]}") from error
    if not len(frame):
        raise ValueError(f"{path} has no rows.")
    names = _names([str(name) for name in frame.columns], notes)
    return RawFile([_column(name, frame[given]) for name, given in zip(names, frame.columns, strict=True)], [])


def _column(name: str, series: Any) -> Column:
    """A column of a data frame."""
    dtype = series.dtype
    if series.null_count() == len(series):
        return Column(name, "numbers", np.full(len(series), np.nan))
    is_code = dtype.is_integer() and max(abs(series.max()), abs(series.min())) > LARGEST_WHOLE
    if kind_of(dtype) != "numbers" or is_code:
        return text_column(name, series.to_list())
    kind: Any = "truth" if dtype == nw.Boolean else "dates" if dtype in (nw.Date, nw.Datetime) else "numbers"
    remarks = (("durations", ""),) if dtype == nw.Duration else ()
    return Column(name, kind, np.asarray(numbers(series), dtype=float), remarks=remarks)
