"""CSV files, a part after the other.

A file is in UTF-8, with or without a byte-order mark, in UTF-16 with one, or else in Windows-1252; its cells are
separated by commas, semicolons, tabs, bars, colons, blanks or tildes; it is compressed by gzip if the name ends in .gz.
Lines above the header that begin with # are comments, and so are further lines then.

The cells are those of the standard library. Blocks of whole lines are tokenized by pyarrow, which is faster, where it
gives the same cells: if every line has the cells of the header, and quotation marks enclose whole cells within a line.
"""

import csv
import gzip
import io
import re
import zlib
from codecs import getincrementaldecoder
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from itertools import chain, islice
from pathlib import Path
from typing import Any, TextIO

import narwhals.stable.v2 as nw
import numpy as np

from admiss.extras import optional_import
from admiss.tables.column import SourceError
from admiss.tables.deciding import DECIDING_ROWS
from admiss.tables.rules import Notes
from admiss.tables.source import Chunk, Frame, NamedFrames, Place, TableSource

with optional_import("Reading a file", "files"):
    import pyarrow as pa
    import pyarrow.compute as pc
    import pyarrow.csv as pv

# Cells that are read at once, of about 8 characters: 60 MB of texts.
PART_CELLS = 2**20
SEPARATORS = ",;\t|: ~"
# Rows that tell whether the header lacks a name, or has names of empty columns.
HEADER_ROWS = 1000
# What spreadsheets take for a formula, and numbers that begin like one.
FORMULA = r"""^(?:[\s'"]*[=+\-@\uff1d\uff0b\uff0d\uff20]|[\t\r\n])"""
NUMBER = r"^[+-]?(?:\d[\d,]*(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?\s?%?$"


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
        self.skipped = 0
        with self._from_header() as text:
            start = text.read(1_000_000)  # quotation marks that do not end make a row of the whole text
        if not start.strip():
            raise SourceError(f"{path} has no content.")
        named = re.match(r'"?sep=(.)"?(\r\n|\r|\n)', start)  # Excel
        lines = re.split("\r\n|\r|\n", start[named.end() if named else 0 :])
        comments = self._comments(lines)
        self.skipped = comments + bool(named)
        separator = named[1] if named else separator_of("\n".join(lines[comments : comments + 400]), known)
        self.separator, self.has_comments = separator, comments > 0
        self.decimal_comma = separator == ";"
        self.short = 0  # rows with fewer cells than the header
        self._read_header()

    @property
    def notes(self) -> list[str]:
        """Sentences on the file and on its header."""
        counted = (
            f"{self.short:,} rows of {self.path.name} have" if self.short > 1 else f"1 row of {self.path.name} has"
        )
        short = [f"{counted} fewer cells than the header; the rest is missing."] if self.short else []
        renamed = Notes()
        for treatment, name in self.renamed:
            renamed.add(treatment, name)
        return [*self.about, *short, *renamed.sentences()]

    def parts(self) -> Iterator[Any]:
        """The rows, some at once, as tables of pyarrow with columns of text."""
        self.short = 0
        with self._from_header() as text:
            number, _ = next(self._numbered(text))
            while block := text.read(8 * PART_CELLS) + text.readline():
                rest = _without_quotes(block, self.separator)
                if rest is None:
                    yield from self._tokenized(chain(io.StringIO(block, newline=""), text), number)
                    return
                table = None if self.has_comments else _arrow_table(block, rest, self.columns, self.separator)
                if table is None:
                    yield from self._tokenized(io.StringIO(block, newline=""), number)
                else:
                    yield table
                number += block.count("\n")

    def _tokenized(self, lines: Iterable[str], before: int) -> Iterator[Any]:
        """The rows of lines by the standard library, numbered after those before."""
        records = self._numbered(lines, before)
        while rows := list(islice(records, max(1, PART_CELLS // len(self.columns)))):
            yield self._table(rows)

    def _table(self, rows: list[tuple[int, list[str]]]) -> Any:
        width = len(self.columns)
        for position, (number, row) in enumerate(rows):
            if len(row) == width:
                continue
            if any(map(str.strip, row[width:])):
                mark = {"\t": "a tab", " ": "a blank"}.get(self.separator, repr(self.separator))
                raise SourceError(
                    f"{self.path}: row {number:,} has {len(row)} cells and the header has {width}: put cells with"
                    f" {mark} inside into quotation marks."
                )
            self.short += len(row) < width
            rows[position] = number, [*row[:width], *[""] * (width - len(row))]
        columns = zip(*(row for _, row in rows), strict=True)
        return pa.table([pa.array(cells, pa.string()) for cells in columns], self.columns)

    def _numbered(self, lines: Iterable[str], before: int = 0) -> Iterator[tuple[int, list[str]]]:
        """The rows with their numbers, after those before; empty ones and comments are left out."""
        reader = _reader(lines, self.separator)
        try:
            for number, row in enumerate(reader, start=before + 1):
                if any(map(str.strip, row)) and not (self.has_comments and number > 1 and row[0].startswith("#")):
                    yield number, row
        except csv.Error as error:
            raise SourceError(f"{self.path} could not be read as CSV, check the quotation marks: {error}.") from error

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
    def _from_header(self) -> Iterator[TextIO]:
        """The text from the header on."""
        with self._binary() as file:
            text = io.TextIOWrapper(file, encoding=self.encoding, errors="replace", newline="")
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
        with self._from_header() as text:
            rows = [row for _, row in islice(self._numbered(text), HEADER_ROWS + 1)]
        if len(rows) < 2:
            raise SourceError(f"{self.path} has {'no rows below the header' if rows else 'no content'}.")
        header = _header(rows[0], rows[1:])
        names = [" ".join(name.split()) for name in header]
        twice = next((name for name in self.roles if names.count(name) > 1), None)
        if twice is not None:
            raise SourceError(
                f"{self.path} has {names.count(twice)} columns {twice!r}, of which one is used: rename the others."
            )
        self.columns = _names(names)
        pairs = zip(names, self.columns, strict=True)
        self.renamed = [("renamed" if given else "unnamed", name) for given, name in pairs if given != name]


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
            rows = [row for row in islice(_reader(io.StringIO(text, newline=""), separator), 50) if any(row)] or rows
        header = {" ".join(cell.split()) for cell in rows[0]}
        alike = len({len(row) for row in rows}) == 1 < len(rows[0])
        usual = separator in ",;\t|"
        return len(header & set(known)), alike and usual, len(rows[0]) if usual else 0

    return max(SEPARATORS, key=quality)


def _names(header: Sequence[str]) -> list[str]:
    """Names that are each used once."""
    names: list[str] = []
    for position, wanted in enumerate(header, start=1):
        name, count = wanted or f"column_{position}", 1
        while name in names or (name != wanted and name in header):
            count += 1
            name = f"{wanted or f'column_{position}'}_{count}"
        names.append(name)
    return names


def _reader(lines: Any, separator: str) -> Any:
    """The rows of lines, by the standard library."""
    return csv.reader(lines, delimiter=separator, skipinitialspace=True, strict=True)


def _without_quotes(block: str, separator: str) -> str | None:
    """The lines with x for quoted cells, or None if a quotation mark is elsewhere or a line may be part of a row.

    Examples
    --------
    >>> _without_quotes('1,"a ""b"", c"', ","), _without_quotes('1,5"', ",")
    ('1,x', None)
    """
    if "\r" in block and block.count("\r") != block.count("\r\n"):
        return None
    if '"' not in block:
        return block
    mark = re.escape(separator)
    rest = re.sub(rf'(?m)(?:^|(?<={mark}))"[^"\r\n]*(?:""[^"\r\n]*)*"(?={mark}|\r?$)', "x", block)
    return None if '"' in rest else rest


def _arrow_table(block: str, rest: str, names: list[str], separator: str) -> Any:
    """The cells of a block by pyarrow, or None if the standard library must read it.

    ``rest`` is the block without quotes.
    """
    if separator == " " or f"{separator} " in rest or "\n " in rest or rest.startswith(" "):
        return None  # blanks before a cell are left out
    content = block.encode()
    try:
        table = pv.read_csv(
            pa.BufferReader(content),
            pv.ReadOptions(use_threads=False, block_size=len(content) + 1, column_names=names),
            pv.ParseOptions(delimiter=separator),
            pv.ConvertOptions(column_types=dict.fromkeys(names, pa.string())),
        )
    except pa.ArrowInvalid:
        return None
    empty = np.arange(len(table))
    for column in table.columns:
        cells = pc.utf8_trim_whitespace(column.take(pa.array(empty)))
        empty = empty[pc.equal(cells, "").to_numpy()]
        if not len(empty):
            return table
    return None  # rows without content are left out


class CsvSource(TableSource):
    """CSV files, whose rows are read in parts.

    Parameters
    ----------
    paths : sequence of Path
    known : sequence of str
        Names of columns, which tell the separator.
    roles : sequence of str
        Names that must not occur twice.
    """

    is_text = True

    def __init__(self, paths: Sequence[Path], known: Sequence[str], roles: Sequence[str]) -> None:
        self.paths = paths
        self.files = [CsvFile(path, known, roles) for path in paths]
        self.kinds = {str(file.path): dict.fromkeys(file.columns, "text") for file in self.files}
        self.decimal_comma = self.files[0].decimal_comma
        self._small: list[tuple[int, int, Any]] | None = None

    @property
    def notes(self) -> list[str]:  # type: ignore[override]
        """Sentences on the files; rows that are too short are counted in those that were read."""
        return [note for file in self.files for note in file.notes]

    def chunks(self) -> Iterator[Chunk]:
        """The parts of the files."""
        for number, row, part in self._parts():
            yield Frame(str(self.paths[number]), Place(number, 0, row), self.schema, part)

    def deciding(self, columns: Sequence[str] | None) -> NamedFrames:
        """The parts with the names of their files."""
        for number, _, part in self._parts():
            yield str(self.paths[number]), part

    def _parts(self) -> Iterator[tuple[int, int, Any]]:
        """Rows with the numbers of the file and of the first row; a small table is kept instead of read again."""
        if self._small is not None:
            yield from self._small
            return
        kept: list[tuple[int, int, Any]] = []
        rows = 0
        for number, file in enumerate(self.files):
            first = 0
            for table in file.parts():
                part = nw.from_native(table, eager_only=True)
                yield number, first, part
                rows += len(part)
                kept = [*kept, (number, first, part)] if rows <= DECIDING_ROWS else []
                first += len(part)
        if rows <= DECIDING_ROWS:
            self._small = kept


def escape_formula(text: str) -> str:
    """Text for a cell of a CSV file.

    Examples
    --------
    >>> escape_formula("=1+2"), escape_formula(" @SUM(A1)"), escape_formula("-0.5"), escape_formula("ridge - mean")
    ("'=1+2", "' @SUM(A1)", '-0.5', 'ridge - mean')
    """
    return f"'{text}" if re.search(FORMULA, text) and not re.search(NUMBER, text) else text
