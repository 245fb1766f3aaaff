"""A column of a table, numbers or text: the rules that all readers share.

Null, NaN and :data:`MISSING_WORDS` are missing. Dates and durations are days, dates since 1970-01-01. Text becomes a
0/1 column per value, one for two values.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Literal

import narwhals.stable.v2 as nw
import numpy as np

from admiss.tables.notes import listed
from formulations.arrays import BoolArray, FloatArray

# Missing, in upper or lower case and with any blanks around.
MISSING_WORDS = ("", "NA", "N/A", "#N/A", "<NA>", "NaN", "NaT", "null", "?", ".")
_MISSING = frozenset(word.casefold() for word in MISSING_WORDS)
_LONGEST = max(map(len, MISSING_WORDS))
# Larger whole numbers are codes: as floating-point numbers, different ones may be equal.
LARGEST_WHOLE = 2**53
Kind = Literal["numbers", "text", "empty", "other"]


class SourceError(ValueError):
    """Rows that cannot be read, in one sentence with the file and the row group."""


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
        Keys of :data:`~admiss.tables.notes.SENTENCES` with details: how the numbers were read.
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


def kind_of(dtype: Any) -> Kind:
    """What a type of narwhals holds."""
    if dtype.is_numeric() or dtype in (nw.Boolean, nw.Date, nw.Datetime, nw.Duration):
        return "numbers"
    if dtype in (nw.String, nw.Categorical, nw.Enum):
        return "text"
    return "empty" if dtype == nw.Unknown else "other"


def numbers(series: Any, where: str = "") -> FloatArray:
    """A series of numbers, dates or durations with NaN, as float64 or float32; ``where`` is its place in errors."""
    dtype = series.dtype
    if dtype.is_float() and (series.null_count() == 0 or series.implementation.is_pyarrow()):
        return np.asarray(series.to_numpy())  # pyarrow writes NaN for null
    if series.null_count() == len(series):
        return np.full(len(series), np.nan)
    if kind_of(dtype) != "numbers":
        raise SourceError(
            f"{where}: column {series.name!r} is {dtype}, and numbers elsewhere: make it numbers, or leave it out."
        )
    if dtype.is_integer():  # casts refuse those that a double rounds
        null = series.is_null().to_numpy()
        return np.where(null, np.nan, np.asarray(series.fill_null(0).to_numpy(), dtype=float))
    milliseconds_per_day = 86_400_000
    if dtype in (nw.Date, nw.Datetime):
        return _floats(series.dt.timestamp("ms")) / milliseconds_per_day
    if dtype == nw.Duration:
        return _floats(series.dt.total_milliseconds()) / milliseconds_per_day
    return _floats(series)


def _floats(series: Any) -> FloatArray:
    return np.asarray(series.cast(nw.Float64).fill_null(np.nan).to_numpy(), dtype=float)


def with_columns(levels: Sequence[str]) -> Sequence[str]:
    """The levels of a text that have a 0/1 column: of two, the second."""
    return levels[1:] if len(levels) == 2 else levels


def require_column(name: str, names: Sequence[str], where: str | Path) -> None:
    """Raise an error with what there is, unless a column exists."""
    if name not in names:
        near = get_close_matches(name, names, n=1)
        hint = f" Did you mean {near[0]!r}?" if near else ""
        raise SourceError(f"{where} has no column {name!r}: it has {listed(names, most=20)}.{hint}")
