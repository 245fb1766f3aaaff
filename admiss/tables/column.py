"""A column of a table, numbers or text: the rules that all readers share.

Null, NaN and :data:`MISSING_WORDS` are missing. Dates and durations are days, dates since 1970-01-01.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Literal

import narwhals.stable.v2 as nw
import numpy as np

from admiss.tables.notes import listed
from admiss.tables.parsing import plain_number
from formulations.arrays import BoolArray, FloatArray

# Missing, in upper or lower case and with any blanks around.
MISSING_WORDS = ("", "NA", "N/A", "#N/A", "<NA>", "NaN", "NaT", "null", "?", ".")
_MISSING = frozenset(word.casefold() for word in MISSING_WORDS)
_LONGEST = max(map(len, MISSING_WORDS))
# Larger whole numbers are codes: as floating-point numbers, different ones may be equal.
LARGEST_WHOLE = 2**53


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
    is_duration : bool
        Whether the numbers are days of a duration.
    """

    name: str
    kind: Literal["numbers", "truth", "dates", "text"]
    numbers: FloatArray = field(default_factory=lambda: np.empty(0))
    texts: list[str | None] = field(default_factory=list)
    is_duration: bool = False

    @property
    def observed(self) -> BoolArray:
        """Where the value is known; infinite values are not."""
        if self.kind == "text":
            return np.array([text is not None for text in self.texts], dtype=bool)
        return np.isfinite(self.numbers)

    def __len__(self) -> int:
        return len(self.texts) if self.kind == "text" else len(self.numbers)

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


def raw_column(name: str, values: Any) -> Column:
    """A column as it is stored: cells of a CSV file, numbers of an array, or a series that narwhals has taken.

    Integers that a double rounds are codes, and what is neither a number, a date nor a truth value is text.
    """
    if isinstance(values, list):
        return text_column(name, values)
    if isinstance(values, np.ndarray):
        return Column(name, "truth" if values.dtype == bool else "numbers", values.astype(float))
    dtype = values.dtype
    if values.null_count() == len(values):
        return Column(name, "numbers", np.full(len(values), np.nan))
    is_code = dtype.is_integer() and max(abs(values.max()), abs(values.min())) > LARGEST_WHOLE
    if is_code or not is_numeric(dtype):
        return text_column(name, values.to_list())
    kind: Any = "truth" if dtype == nw.Boolean else "dates" if dtype in (nw.Date, nw.Datetime) else "numbers"
    return Column(name, kind, numbers(values), is_duration=dtype == nw.Duration)


def is_numeric(dtype: Any) -> bool:
    """Whether values of a type of narwhals are numbers, truth values, dates or durations."""
    return bool(dtype.is_numeric() or dtype in (nw.Boolean, nw.Date, nw.Datetime, nw.Duration))


def numbers(series: Any) -> FloatArray:
    """A series of numbers, dates or durations with NaN, as float64 or float32; dates and durations are days."""
    dtype = series.dtype
    if dtype.is_float() and (series.null_count() == 0 or series.implementation.is_pyarrow()):
        return np.asarray(series.to_numpy())  # pyarrow writes NaN for null
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


def require_columns(wanted: Iterable[str], names: Sequence[str], where: str | Path) -> None:
    """Raise an error with what there is, unless all columns exist."""
    lacking = [name for name in dict.fromkeys(wanted) if name not in names]
    if not lacking:
        return
    shown = f"has no column {lacking[0]!r}" if len(lacking) == 1 else f"has no columns {listed(lacking, 20)}"
    near = get_close_matches(lacking[0], names, n=1)
    hint = f" Did you mean {near[0]!r}?" if near and len(lacking) == 1 else ""
    if all(plain_number(name) is not None for name in names):
        hint = " The first line must have the names of the columns."
    raise SourceError(f"{where} {shown}: it has {listed(names, most=20)}.{hint}")
