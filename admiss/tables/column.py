"""A column of a table, numbers or text: the rules that all readers share.

Null, NaN and :data:`MISSING_WORDS` are missing. Dates and durations are days, dates since 1970-01-01.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from functools import cached_property, partial
from pathlib import Path
from typing import Any, Literal

import narwhals.stable.v2 as nw
import numpy as np

from admiss.tables.parsing import MOST_DIGITS, plain_number
from formulations.arrays import BoolArray, FloatArray

# Missing, in upper or lower case and with any blanks around.
MISSING_WORDS = ("", "NA", "N/A", "#N/A", "<NA>", "NaN", "NaT", "null", "?", ".")
_MISSING = frozenset(word.casefold() for word in MISSING_WORDS)
_LONGEST = max(map(len, MISSING_WORDS))
# Larger whole numbers are codes: as floating-point numbers, different ones may be equal.
LARGEST_WHOLE = 2**53


def listed(names: Sequence[str], most: int = 6) -> str:
    """Names in a sentence; more are counted.

    Examples
    --------
    >>> listed(["a", "b", "c"]), listed(["a", "b", "c", "d"], most=2)
    ('a, b and c', 'a, b and 2 more')
    """
    if len(names) > most + 1:
        names = [*names[:most], f"{len(names) - most:,} more"]
    return " and ".join(filter(None, [", ".join(names[:-1]), names[-1]]))


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
    cells : list, or array of pyarrow
        Values that are text; empty for other kinds.
    is_duration : bool
        Whether the numbers are days of a duration.
    """

    name: str
    kind: Literal["numbers", "truth", "dates", "text"]
    numbers: FloatArray = field(default_factory=lambda: np.empty(0))
    cells: Any = ()
    is_duration: bool = False

    @cached_property
    def texts(self) -> list[str | None]:
        """The cells without surrounding blanks, None for words that mean a missing value.

        Examples
        --------
        >>> Column("plan", "text", cells=[" pro", "?", "n/a ", None, 7]).texts
        ['pro', None, None, None, '7']
        """
        if isinstance(self.cells, list):
            return _cleaned(self.cells)
        encoded = self.cells.dictionary_encode()
        distinct = np.array([*_cleaned(encoded.dictionary.to_pylist()), None], dtype=object)
        return list(distinct[encoded.indices.fill_null(-1).to_numpy()].tolist())

    @cached_property
    def plain(self) -> FloatArray | None:
        """The numbers of text if all of it is missing or a number in the notation of programs, else None."""
        found = None if isinstance(self.cells, list) else _arrow_numbers(self.cells)
        return _plain_numbers(self.texts) if found is None else found

    @property
    def as_numbers(self) -> "Column":
        """Text as a column of numbers if it has values and all are plain; any other column as it is."""
        if self.kind != "text" or self.plain is None or np.isnan(self.plain).all():
            return self
        return Column(self.name, "numbers", self.plain)

    @property
    def observed(self) -> BoolArray:
        """Where the value is known; infinite values are not."""
        if self.kind == "text":
            return np.array([text is not None for text in self.texts], dtype=bool)
        return np.isfinite(self.numbers)

    def __len__(self) -> int:
        return len(self.cells) if self.kind == "text" else len(self.numbers)

    def at(self, rows: BoolArray) -> "Column":
        """The column at some rows."""
        if self.kind == "text":
            if isinstance(self.cells, list):
                return replace(self, cells=[cell for cell, taken in zip(self.cells, rows, strict=True) if taken])
            return replace(self, cells=self.cells.take(np.flatnonzero(rows)))
        return replace(self, numbers=self.numbers[rows])


def raw_column(name: str, values: Any) -> Column:
    """A column as it is stored: numbers of an array, a list of cells, or a series that narwhals has taken.

    Integers that a double rounds are codes, and what is neither a number, a date nor a truth value is text.
    """
    if isinstance(values, np.ndarray):
        return Column(name, "truth" if values.dtype == bool else "numbers", values.astype(float))
    if not isinstance(values, nw.Series):
        return Column(name, "text", cells=values)
    dtype = values.dtype
    if values.null_count() == len(values):
        return Column(name, "numbers", np.full(len(values), np.nan))
    if dtype == nw.String and values.implementation.is_pyarrow():
        return Column(name, "text", cells=_one_array(values.to_native().chunks))
    is_code = dtype.is_integer() and max(abs(values.max()), abs(values.min())) > LARGEST_WHOLE
    if is_code or not is_numeric(dtype):
        return Column(name, "text", cells=values.to_list())
    kind: Any = "truth" if dtype == nw.Boolean else "dates" if dtype in (nw.Date, nw.Datetime) else "numbers"
    return Column(name, kind, numbers(values), is_duration=dtype == nw.Duration)


def joined(name: str, pieces: Sequence[Column]) -> Column:
    """Columns of successive rows as one; those without a value have any kind."""
    kinds = {piece.kind for piece in pieces}
    typed = pieces[0] if len(kinds) == 1 else next((piece for piece in pieces if piece.observed.any()), pieces[0])
    if typed.kind != "text":
        numbers = [piece.numbers if piece.kind != "text" else np.full(len(piece), np.nan) for piece in pieces]
        return Column(name, typed.kind, np.concatenate(numbers).astype(float), is_duration=typed.is_duration)
    cells = [[None] * len(piece) if piece.kind != "text" else piece.cells for piece in pieces]
    if any(isinstance(each, list) for each in cells):
        return Column(name, "text", cells=[cell for each in cells for cell in _listed(each)])
    return Column(name, "text", cells=_one_array(cells))


def _one_array(pieces: Sequence[Any]) -> Any:
    """Arrays of pyarrow, whose texts may be of several types, as one."""
    import pyarrow as pa

    return pa.concat_arrays([piece.cast(pa.large_string()) for piece in pieces])


def _cleaned(cells: Sequence[Any]) -> list[str | None]:
    texts = ["" if cell is None else str(cell).strip() for cell in cells]
    return [None if len(text) <= _LONGEST and text.casefold() in _MISSING else text for text in texts]


def _listed(cells: Any) -> list[Any]:
    return cells if isinstance(cells, list) else cells.to_pylist()


def _arrow_numbers(cells: Any) -> FloatArray | None:
    """The numbers of cells by pyarrow, which rounds as Python does, or None if Python may read some in another way."""
    import pyarrow as pa
    import pyarrow.compute as pc

    words = pa.array({form for word in MISSING_WORDS for form in (word, word.lower(), word.upper())}, cells.type)
    for is_missing in (partial(pc.equal, cells, ""), partial(pc.is_in, cells, words)):  # the first one is faster
        try:
            read = pc.if_else(is_missing(), pa.scalar(None, cells.type), cells).cast(pa.float64())
        except pa.ArrowInvalid:
            continue
        found = np.asarray(read.to_numpy(zero_copy_only=False))
        is_finite = np.count_nonzero(np.isfinite(found)) == len(read) - read.null_count
        return found if is_finite and not _may_be_codes(found) else None
    return None


def _plain_numbers(texts: Sequence[str | None]) -> FloatArray | None:
    """All numbers at once if every text is plain, else None."""
    try:
        numbers = np.array([np.nan if text is None else float(text) for text in texts])
    except ValueError:
        return None
    return None if _may_be_codes(numbers) or "_" in "".join(filter(None, texts)) else numbers


def _may_be_codes(numbers: FloatArray) -> bool:
    """Whether some numbers are so large that whole ones are codes."""
    return bool(np.abs(numbers[np.isfinite(numbers)]).max(initial=0) >= 10.0**MOST_DIGITS)


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
