"""A small table: a dict of columns that prints itself, numbers as text, and text that fits a terminal.

``pandas.DataFrame(table)`` and ``polars.DataFrame(table)`` convert it; neither is required here.
"""

import math
import re
import shutil
import sys
import textwrap
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

# What a table shows for a number that is not known.
ABSENT = "-"


class Table(dict[str, Any]):
    """Columns of equal length by name, printed as aligned text.

    Examples
    --------
    >>> Table(feature=["age", "income"], coefficient=[1.25, -0.5])
    feature  coefficient
    age             1.25
    income          -0.5
    """

    def __init__(self, **columns: Any) -> None:
        arrays = {name: np.asarray(values) for name, values in columns.items()}
        if len({len(values) for values in arrays.values()}) > 1:
            raise ValueError("The columns of a table must have the same length.")
        super().__init__(arrays)

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return len(next(iter(self.values()), ()))

    def __repr__(self) -> str:
        return aligned(self._cells(), self._numeric())

    def within(self, width: int, optional: Sequence[str] = ()) -> str:
        """The text with rows of at most so many characters, see :func:`aligned`."""
        return aligned(self._cells(), self._numeric(), width, optional)

    def _numeric(self) -> set[str]:
        return {name for name, values in self.items() if values.dtype.kind in "fiu"}

    def _cells(self, most_rows: int = 100, longest: int = 60) -> dict[str, list[str]]:
        """The text of each cell, abridged; of a long table that of the first and the last rows."""
        columns, half = {}, most_rows // 2
        for name, values in self.items():
            long = len(values) > most_rows
            shown = [*values[:half], *values[-half:]] if long else values
            cells = [f"{value:.6g}" if values.dtype.kind == "f" else str(value) for value in shown]
            cells = [cell if len(cell) <= longest else cell[: longest - 3] + " .." for cell in cells]
            columns[name] = [*cells[:half], "..", *cells[half:]] if long else cells
        return columns


def aligned(
    columns: Mapping[str, Sequence[str]],
    numeric: Collection[str],
    width: int | None = None,
    optional: Sequence[str] = (),
) -> str:
    """Columns of text under their names, numeric ones to the right.

    Parameters
    ----------
    columns : dict of sequences of str
    numeric : collection of str
        Names of columns of numbers.
    width : int, optional
        Most characters of a row. Columns that do not fit are printed below the others, beside the first one again.
    optional : sequence of str
        Columns that are left out instead, one after the other, if all do not fit; a last line names them.

    Examples
    --------
    >>> print(aligned({"name": ["a", "b"], "first": ["1", "10"], "second": ["x", "y"]}, {"first"}, width=14))
    name  first
    a         1
    b        10
    <BLANKLINE>
    name  second
    a     x
    b     y
    """
    blocks = {}
    for name, cells in columns.items():
        longest = max(map(len, [name, *cells]))
        blocks[name] = [cell.rjust(longest) if name in numeric else cell.ljust(longest) for cell in [name, *cells]]
    most = float("inf") if width is None else width
    left_out = []
    for name in optional:
        if name in blocks and _row_width(blocks.values()) > most:
            del blocks[name]
            left_out.append(name)
    first, *others = blocks.values()
    parts = [[first]]
    for block in others:
        if len(parts[-1]) > 1 and _row_width([*parts[-1], block]) > most:
            parts.append([first])
        parts[-1].append(block)
    texts = ["\n".join("  ".join(row).rstrip() for row in zip(*part, strict=True)) for part in parts]
    return "\n\n".join(texts) + (f"\n(in a wider terminal also: {', '.join(left_out)})" if left_out else "")


def _row_width(blocks: Iterable[Sequence[str]]) -> int:
    return sum(len(block[0]) + 2 for block in blocks) - 2


def number(value: float | None, digits: int = 3) -> str:
    """Format a number with fixed decimals, without the sign of what is shown as zero."""
    if value is None or math.isnan(value):
        return ABSENT
    text = f"{value:,.{digits}f}"
    return text.removeprefix("-") if not text.strip("-0.,") else text


def decimals(values: Sequence[float]) -> int:
    """Decimals for numbers of this size: three for those about 1, more for smaller and fewer for larger ones.

    Examples
    --------
    >>> decimals([0.5, -2.0]), decimals([25_000.0, 30_000.0]), decimals([3e-5]), decimals([])
    (3, 0, 7, 3)
    """
    sizes = sorted(abs(value) for value in values if value)
    if not sizes:
        return 3
    power = math.floor(math.log10(sizes[len(sizes) // 2]))
    return 3 if -2 <= power <= 0 else min(12, 2 - power) if power < 0 else max(0, 3 - power)


def signed(value: float | None, digits: int = 3) -> str:
    """Format a difference with its sign.

    Examples
    --------
    >>> signed(0.5, 1), signed(-0.5, 1), signed(0.0001), signed(None)
    ('+0.5', '-0.5', '0.000', '-')
    """
    text = number(value, digits)
    return f"+{text}" if value is not None and value > 0 and text.strip("0.,") else text


def interval(low: float | None, high: float | None, digits: int = 3) -> str:
    """Format the ends of an interval; nothing if it is not known."""
    return "" if low is None or high is None else f"[{signed(low, digits)}, {signed(high, digits)}]"


def terminal_width() -> int:
    """Characters in a line of the terminal, 80 if that is unknown."""
    return shutil.get_terminal_size().columns


def table_width() -> int:
    """Characters in a row of a table, which leaves a margin of two."""
    return terminal_width() - 2


def wrapped(text: str) -> str:
    """Lines that are broken between words where they are longer than those of the terminal."""
    return "\n".join(_broken(line, terminal_width()) for line in text.split("\n"))


def for_standard_error(text: str) -> str:
    """Lines broken for a terminal; as they are for a file or another program, which reads one error per line."""
    return wrapped(text) if sys.stderr.isatty() else text


def refilled(text: str) -> str:
    """The paragraphs of a help text in lines of the terminal.

    Lines that are indented, and those after a heading that ends in a colon, begin anew. What belongs to an indented
    line continues below its last column.

    Examples
    --------
    >>> print(refilled("methods:\\nFirst line,\\nsecond line.\\n\\n  none  one leaf"))
    methods:
    First line, second line.
    <BLANKLINE>
      none  one leaf
    """
    lines: list[str] = []
    for line in text.split("\n"):
        begins = not line or line.startswith(" ") or not lines or not lines[-1] or lines[-1].endswith(":")
        if begins or lines[-1].startswith(" "):
            lines.append(line)
        else:
            lines[-1] += f" {line}"
    return "\n".join(_broken(line, table_width()) for line in lines)


def _broken(line: str, width: int) -> str:
    column = re.match(r"( +(\S+ {2,})?)?", line)
    indent = " " * (column.end() if column else 0)
    parts = textwrap.wrap(line, width, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False)
    return "\n".join(parts)
