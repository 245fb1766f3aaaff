"""CSV files, a part after the other.

The cells are those of the standard library, whatever tokenizes a part of the file: in UTF-8, with or without a
byte-order mark, in UTF-16 with one, or else in Windows-1252; separated by commas, semicolons, tabs,
bars, colons, blanks or tildes; compressed by gzip if the name ends in .gz. Lines above the header that begin with #
are comments, and so are further lines then.
"""

import csv
import gzip
import io
import re
import zlib
from codecs import getincrementaldecoder
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from hashlib import blake2b
from itertools import chain, islice
from pathlib import Path
from typing import Any, TextIO

from admiss.tables.column import SourceError, require_columns
from admiss.tables.csv_rows import Cells, CsvRows, reader_of
from admiss.tables.deciding import DECIDING_ROWS, decide
from admiss.tables.notes import Notes
from admiss.tables.schema import Schema
from admiss.tables.source import Chunk, Place, Plan, Source, common_columns

SEPARATORS = ",;\t|: ~"
SUFFIXES = (".csv", ".tsv", ".csv.gz", ".tsv.gz")
# Rows that tell whether the header lacks a name, or has names of empty columns.
HEADER_ROWS = 1000
# What spreadsheets take for a formula, and numbers that begin like one.
FORMULA = r"""^(?:[\s'"]*[=+\-@\uff1d\uff0b\uff0d\uff20]|[\t\r\n])"""
NUMBER = r"^[+-]?(?:\d[\d,]*(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?\s?%?$"


def is_csv(data: Any) -> bool:
    """Whether this is a path, or a pattern, of CSV files."""
    return isinstance(data, str | Path) and str(data).lower().endswith(SUFFIXES)


class CsvFile:
    """A CSV file.

    Parameters
    ----------
    path : Path
    known : sequence of str
        Names of columns, which tell the separator.
    roles : sequence of str
        Names that must not occur twice.

    Attributes
    ----------
    columns : list of str
        Names, each used once.
    notes : list of str
        How the file was read; complete once :meth:`parts` has come to an end.
    decimal_comma : bool
        Whether 1,234 is a number near one: in files that are separated by semicolons.
    """

    def __init__(self, path: Path, known: Sequence[str], roles: Sequence[str] = ()) -> None:
        if not path.is_file():
            raise SourceError(f"There is no file {path}.")
        self.path, self.known, self.roles = path, list(known), list(roles)
        self.about: list[str] = []
        self.encoding = self._encoding()
        with self._opened() as text:
            start = text.read(1_000_000)  # quotation marks that do not end make a row of the whole text
        if not start.strip():
            raise SourceError(f"{path} has no content.")
        named = re.match(r'"?sep=(.)"?(\r\n|\r|\n)', start)  # Excel
        self.skipped = 1 if named else 0
        lines = re.split("\r\n|\r|\n", start[named.end() if named else 0 :])
        comments = self._comments(lines)
        self.skipped += comments
        separator = named[1] if named else separator_of("\n".join(lines[comments : comments + 400]), known)
        self.rows = CsvRows(path, separator, comments > 0)
        self.decimal_comma = separator == ";"
        self._read_header()

    @property
    def notes(self) -> list[str]:
        """Sentences on the file and on its header."""
        counted = (
            f"{self.rows.short:,} rows of {self.path.name} have"
            if self.rows.short > 1
            else f"1 row of {self.path.name} has"
        )
        short = [f"{counted} fewer cells than the header; the rest is missing."] if self.rows.short else []
        return [*self.about, *short, *self.renamed.sentences()]

    def parts(self) -> Iterator[Cells]:
        """The rows, some at once."""
        with self._from_header() as text:
            yield from self.rows.parts(text, self.columns)

    def _encoding(self) -> str:
        """The encoding of the whole file, without what cannot be text."""
        with self._binary() as file:
            start = file.read(2)
            if start in (b"\xff\xfe", b"\xfe\xff"):
                return "utf-16"
            decoder, encoding = getincrementaldecoder("utf-8")(), "utf-8-sig"
            for block in chain([start], iter(lambda: file.read(2**20), b"")):
                if b"\0" in block:
                    raise SourceError(
                        f"{self.path} is not a text file, as it has bytes that are 0: save the table as CSV in UTF-8 "
                        "or as Parquet."
                    )
                if encoding == "utf-8-sig":
                    try:
                        decoder.decode(block)
                    except UnicodeDecodeError:
                        encoding = "cp1252"
            if encoding == "cp1252":
                self.about.append(f"{self.path.name} is not UTF-8 and was read as Windows-1252.")
            return encoding

    @contextmanager
    def _binary(self) -> Iterator[Any]:
        try:
            with gzip.open(self.path, "rb") if self.path.suffix.lower() == ".gz" else self.path.open("rb") as file:
                yield file
        except (EOFError, zlib.error, gzip.BadGzipFile) as error:
            raise SourceError(f"{self.path} is not a complete gzip file: compress it again.") from error

    @contextmanager
    def _opened(self) -> Iterator[TextIO]:
        with self._binary() as file:
            yield io.TextIOWrapper(file, encoding=self.encoding, errors="replace", newline="")

    @contextmanager
    def _from_header(self) -> Iterator[TextIO]:
        """The text from the header on."""
        with self._opened() as text:
            for _ in range(self.skipped):
                text.readline()
            yield text

    def _comments(self, lines: list[str]) -> int:
        """How many lines above the header are comments; a header may begin with # itself."""
        count = next((k for k, line in enumerate(lines) if line.strip() and not line.startswith("#")), len(lines))
        if not count or not any(line.startswith("#") for line in lines[:count]):
            return 0
        for line, taken in (("".join(lines[count : count + 1]), count), (lines[count - 1], count - 1)):
            cells = {cell.strip(' "') for cell in re.split(f"[{re.escape(SEPARATORS)}]", line)}
            if cells & set(self.known):
                return taken
        return count

    def _read_header(self) -> None:
        self.renamed = Notes()
        with self._from_header() as text:
            rows = [row for _, row in islice(self.rows.numbered(text), HEADER_ROWS + 1)]
        if len(rows) < 2:
            raise SourceError(f"{self.path} has {'no rows below the header' if rows else 'no content'}.")
        header = _header(rows[0], rows[1:])
        names = [" ".join(name.split()) for name in header]
        twice = next((name for name in self.roles if names.count(name) > 1), None)
        if twice is not None:
            raise SourceError(
                f"{self.path} has {names.count(twice)} columns {twice!r}, of which one is used: rename the others."
            )
        self.columns = _names(names, self.renamed)


def _header(first: list[str], rows: list[list[str]]) -> list[str]:
    """The first row, with a cell for the names of rows that R writes, and without empty columns at the end."""
    named_rows = all(len(row) == len(first) + 1 for row in rows) and any(row[-1].strip() for row in rows)
    header = ["", *first] if named_rows else first
    while not header[-1].strip() and not any("".join(row[len(header) - 1 :]).strip() for row in rows):
        header = header[:-1]
    return header


def separator_of(text: str, known: Sequence[str]) -> str:
    """The separator that gives the header the most known names, 50 rows equally many cells, and the header the most."""

    def quality(separator: str) -> tuple[int, bool, int]:
        rows: list[list[str]] = [[]]
        with suppress(csv.Error):  # quotation marks that belong to another separator
            rows = [row for row in islice(reader_of(io.StringIO(text, newline=""), separator), 50) if any(row)] or rows
        header = {" ".join(cell.split()) for cell in rows[0]}
        alike = len({len(row) for row in rows}) == 1 < len(rows[0])
        usual = separator in ",;\t|"
        return len(header & set(known)), alike and usual, len(rows[0]) if usual else 0

    return max(SEPARATORS, key=quality)


def _names(header: Sequence[str], notes: Notes) -> list[str]:
    """Names that are each used once."""
    names: list[str] = []
    for position, wanted in enumerate(header, start=1):
        name, count = wanted or f"column_{position}", 1
        while name in names or (name != wanted and name in header):
            count += 1
            name = f"{wanted or f'column_{position}'}_{count}"
        if name != wanted:
            notes.add("renamed" if wanted else "unnamed", name)
        names.append(name)
    return names


class CsvSource(Source):
    """CSV files, whose rows are read in parts.

    Parameters
    ----------
    paths : sequence of Path
    plan : Plan or Schema
        What the columns are for, or the schema of another source.
    """

    size = None

    def __init__(self, paths: Sequence[Path], plan: Plan | Schema) -> None:
        self.paths = paths
        roles = [] if isinstance(plan, Schema) else plan.roles
        known = plan.used if isinstance(plan, Schema) else [*roles, *(plan.features or ())]
        self.files = [CsvFile(path, known, roles) for path in paths]
        self.decimal_comma = self.files[0].decimal_comma
        self._small: list[tuple[int, int, Cells]] | None = None
        files = [(str(file.path), file.columns) for file in self.files]
        if isinstance(plan, Plan):
            plan = decide(self._read, plan, common_columns(files, plan), decimal_comma=self.decimal_comma)
        for where, names in files:
            require_columns(plan.used, names, where)
        self.schema = plan

    @property
    def notes(self) -> list[str]:  # type: ignore[override]
        """Sentences on the files; rows that are too short are counted in those that were read."""
        return [note for file in self.files for note in file.notes]

    def _read(self, columns: Sequence[str] | None) -> Iterator[tuple[str, Cells]]:
        for number, _, part in self._parts():
            yield str(self.paths[number]), part

    def _parts(self) -> Iterator[tuple[int, int, Cells]]:
        """Rows with the numbers of the file and of the first row; a small table is kept instead of read again."""
        if self._small is not None:
            yield from self._small
            return
        kept: list[tuple[int, int, Cells]] = []
        rows = 0
        for number, file in enumerate(self.files):
            first = 0
            for part in file.parts():
                yield number, first, part
                first += len(part)
                rows += len(part)
                kept = [*kept, (number, first - len(part), part)] if rows <= DECIDING_ROWS else []
        if rows <= DECIDING_ROWS:
            self._small = kept

    def chunks(self) -> Iterator[Chunk]:
        status = [path.stat() for path in self.paths]
        digest = blake2b(repr([(s.st_size, s.st_mtime_ns) for s in status]).encode(), digest_size=12).hexdigest()
        for number, row, part in self._parts():
            name = str(self.paths[number])
            yield CsvPart(name, f"{digest}-{number}-{row}", self.schema, Place(number, 0, row), part)


@dataclass(frozen=True)
class CsvPart(Chunk):
    """Rows of a CSV file."""

    name: str
    digest: str
    schema: Schema
    place: Place
    cells: Cells

    def frames(self, columns: Sequence[str]) -> Iterator[Any]:
        yield self.cells


def escape_formula(text: str) -> str:
    """Text for a cell of a CSV file.

    Examples
    --------
    >>> escape_formula("=1+2"), escape_formula(" @SUM(A1)"), escape_formula("-0.5"), escape_formula("ridge - mean")
    ("'=1+2", "' @SUM(A1)", '-0.5', 'ridge - mean')
    """
    return f"'{text}" if re.search(FORMULA, text) and not re.search(NUMBER, text) else text
