"""The rows of a CSV file, some at once: the cells are those of the standard library.

Blocks of whole lines are tokenized by pyarrow, which is faster, where it gives the same cells: if every line has the
cells of the header, and quotation marks enclose whole cells within a line.
"""

import csv
import io
import re
from collections.abc import Iterable, Iterator
from itertools import chain, islice
from pathlib import Path
from typing import Any, TextIO

import numpy as np

from admiss.tables.column import SourceError

# Cells that are read at once, of about 8 characters: 60 MB of texts.
PART_CELLS = 2**20


class Cells:
    """Some rows of a CSV file: lists of texts, or arrays of pyarrow, by the names of the columns; numbers of arrays."""

    def __init__(self, columns: dict[str, Any], n_rows: int) -> None:
        self.columns, self.n_rows = columns, n_rows

    def __len__(self) -> int:
        return self.n_rows

    def __getitem__(self, name: str) -> Any:
        return self.columns[name]


class CsvRows:
    """The rows of a CSV file.

    Parameters
    ----------
    path : Path
        For messages.
    separator : str
    has_comments : bool
        Whether lines that begin with # are left out.

    Attributes
    ----------
    short : int
        Rows with fewer cells than the header.
    """

    def __init__(self, path: Path, separator: str, has_comments: bool) -> None:
        self.path, self.separator, self.has_comments = path, separator, has_comments
        self.short = 0

    def parts(self, text: TextIO, columns: list[str]) -> Iterator[Cells]:
        """The rows below the header, with which the text begins, some at once."""
        self.short = 0
        number, _ = next(self.numbered(text))
        while block := text.read(8 * PART_CELLS) + text.readline():
            rest = _without_quotes(block, self.separator)
            if rest is None:
                yield from self._tokenized(chain(io.StringIO(block, newline=""), text), columns, number)
                return
            cells = None if self.has_comments else _arrow_columns(block, rest, columns, self.separator)
            if cells is None:
                yield from self._tokenized(io.StringIO(block, newline=""), columns, number)
            elif len(cells[columns[0]]):
                yield Cells(cells, len(cells[columns[0]]))
            number += block.count("\n")

    def _tokenized(self, lines: Iterable[str], columns: list[str], before: int) -> Iterator[Cells]:
        """The rows of lines by the standard library, numbered after those before."""
        records = self.numbered(lines, before)
        while rows := list(islice(records, max(1, PART_CELLS // len(columns)))):
            yield self._cells(rows, columns)

    def _cells(self, rows: list[tuple[int, list[str]]], columns: list[str]) -> Cells:
        width = len(columns)
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
        transposed = zip(*(row for _, row in rows), strict=True)
        return Cells(dict(zip(columns, map(list, transposed), strict=True)), len(rows))

    def numbered(self, lines: Iterable[str], before: int = 0) -> Iterator[tuple[int, list[str]]]:
        """The rows with their numbers, after those before; empty ones and comments are left out."""
        reader = reader_of(lines, self.separator)
        try:
            for number, row in enumerate(reader, start=before + 1):
                if any(map(str.strip, row)) and not (self.has_comments and number > 1 and row[0].startswith("#")):
                    yield number, row
        except csv.Error as error:
            raise SourceError(f"{self.path} could not be read as CSV, check the quotation marks: {error}.") from error


def reader_of(lines: Any, separator: str) -> Any:
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


def _arrow_columns(block: str, rest: str, names: list[str], separator: str) -> dict[str, Any] | None:
    """The cells of a block as arrays of pyarrow without empty rows, or None if the standard library must read it.

    ``rest`` is the block without quotes.
    """
    try:
        import pyarrow as pa
        import pyarrow.compute as pc
        import pyarrow.csv as pv
    except ImportError:
        return None
    if separator not in ",;\t|:~":
        return None
    has_blanks = f"{separator} " in rest or "\n " in rest or rest.startswith(" ")
    if has_blanks and rest is not block:
        return None  # blanks before a cell are left out, those within quotation marks are not
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
    columns = [column.combine_chunks() for column in table.columns]
    if has_blanks:
        columns = [pc.utf8_ltrim(column, " ") for column in columns]
    empty = np.arange(len(table))
    for column in columns:
        cells = pc.utf8_trim_whitespace(column.take(pa.array(empty)))
        empty = empty[pc.equal(cells, "").to_numpy(zero_copy_only=False)]
        if not len(empty):
            return dict(zip(names, columns, strict=True))
    filled = pa.array(np.delete(np.arange(len(table)), empty))
    return {name: column.take(filled) for name, column in zip(names, columns, strict=True)}
