"""A column of a file: numbers, or text."""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np

from formulations.arrays import BoolArray, FloatArray

# Missing, in upper or lower case and with any blanks around.
MISSING_WORDS = ("", "NA", "N/A", "#N/A", "<NA>", "NaN", "NaT", "null", "?", ".")
_MISSING = frozenset(word.casefold() for word in MISSING_WORDS)
_LONGEST = max(map(len, MISSING_WORDS))


@dataclass(frozen=True)
class Column:
    """A column.

    Parameters
    ----------
    name : str
    kind : {"numbers", "truth", "dates", "text"}
        The numbers of "truth" are 0 and 1, those of "dates" are days since 1970-01-01.
    numbers : ndarray
        Numbers with NaN; empty for text.
    texts : list
        Text, None where missing; empty for other kinds.
    remarks : tuple of (str, str)
        Keys of :data:`~admiss.user_table.notes.SENTENCES` with details: how the numbers were read.
    """

    name: str
    kind: Literal["numbers", "truth", "dates", "text"]
    numbers: FloatArray = field(default_factory=lambda: np.empty(0))
    texts: list[str | None] = field(default_factory=list)
    remarks: tuple[tuple[str, str], ...] = ()

    @property
    def observed(self) -> BoolArray:
        """Where the value is known; infinite values are not."""
        if self.kind == "text":
            return np.array([text is not None for text in self.texts], dtype=bool)
        return np.isfinite(self.numbers)

    def at(self, rows: BoolArray) -> "Column":
        """The column at some rows."""
        if self.kind == "text":
            return replace(self, texts=[text for text, taken in zip(self.texts, rows, strict=True) if taken])
        return replace(self, numbers=self.numbers[rows])


def text_column(name: str, values: Iterable[Any]) -> Column:
    """A column of text without surrounding blanks, None for words that mean a missing value.

    Examples
    --------
    >>> text_column("plan", [" pro", "?", "n/a ", None, 7]).texts
    ['pro', None, None, None, '7']
    """
    texts = ["" if value is None else str(value).strip() for value in values]
    return Column(name, "text", texts=[None if len(t) <= _LONGEST and t.casefold() in _MISSING else t for t in texts])
