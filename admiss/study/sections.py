"""Sections: the tables of a study as text, with fixed digits and ``-`` for what was not measured."""

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass

ABSENT = "-"


@dataclass(frozen=True)
class Section:
    """A table with its title, and a text to read with it; ``conclusion`` is repeated in the README of results."""

    title: str
    text: str
    header: Sequence[str]
    rows: Sequence[Sequence[object]]
    conclusion: str = ""

    @property
    def name(self) -> str:
        """The title as the name of a file.

        Examples
        --------
        >>> Section("R2 by n", "", [], []).name
        'r2-by-n'
        """
        return file_name(self.title)


def file_name(words: str) -> str:
    """Words as the name of a file: lower case, with hyphens."""
    return re.sub(r"[^a-z0-9]+", "-", words.lower()).strip("-")


def markdown(header: Sequence[str], rows: Sequence[Sequence[object]]) -> list[str]:
    """Lines of a Markdown table."""
    return ["| " + " | ".join(map(str, cells)) + " |" for cells in (header, ["---"] * len(header), *rows)]


def digits(number: float | None, places: int = 3) -> str:
    """Format a number with fixed digits.

    Examples
    --------
    >>> digits(0.5), digits(None), digits(-0.0001)
    ('0.500', '-', '0.000')
    """
    if number is None:
        return ABSENT
    text = f"{number:.{places}f}"
    return text.lstrip("-") if float(text) == 0 else text


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


def signed(number: float | None, places: int = 3) -> str:
    """Format a difference with its sign."""
    text = digits(number, places)
    return text if number is None or number <= 0 or float(text) == 0 else f"+{text}"
