"""Columns as features, fixed before the first chunk so that every chunk gives the same ones.

====================================  =========================================================
a column                              becomes
====================================  =========================================================
numbers, truth values                 as it is
dates, times and durations            days, dates since 1970-01-01
text                                  a 0/1 column per value, one for two values
====================================  =========================================================

Null, NaN and the words of :data:`~admiss.user_table.column.MISSING_WORDS` are missing, and 0/1 columns are missing
where the text is. A value of text that the schema does not know is an error, or missing if ``unknown`` says so.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any, Literal

import narwhals.stable.v2 as nw
import numpy as np
from numpy.typing import NDArray

from admiss.user_table.column import text_column
from admiss.user_table.notes import listed
from formulations.arrays import FloatArray

# Values of a column of text that become columns; with more, it must be left out or encoded beforehand.
MOST_LEVELS = 50
# Columns that an error names.
MOST_COLUMNS = 20
MILLISECONDS_PER_DAY = 86_400_000
Kind = Literal["numbers", "text", "empty", "other"]


class SourceError(ValueError):
    """Rows that cannot be read, in one sentence with the file and the row group."""


@dataclass(frozen=True)
class Schema:
    """What becomes of each column.

    Attributes
    ----------
    columns : tuple of (str, tuple of str or None)
        The columns that are features, and the values of those that are text.
    target, weight, key : str or None
        Columns with the target, the sample weights, and the values that identify rows for folds.
    unknown : {"error", "missing"}
        Treatment of values of text that are not in ``columns``.

    Examples
    --------
    >>> Schema((("age", None), ("plan", ("free", "pro", "team")), ("sex", ("f", "m"))), target="y").names
    ['age', 'plan=free', 'plan=pro', 'plan=team', 'sex=m']
    """

    columns: tuple[tuple[str, tuple[str, ...] | None], ...]
    target: str | None = None
    weight: str | None = None
    key: str | None = None
    unknown: str = "error"

    @property
    def names(self) -> list[str]:
        """Names of the features."""
        return [
            name if level is None else f"{name}={level}" for name, levels in self.columns for level in _encoded(levels)
        ]

    @property
    def used(self) -> list[str]:
        """Columns to read."""
        others = [self.target, self.weight, self.key]
        return list(dict.fromkeys([*(name for name, _ in self.columns), *filter(None, others)]))

    def without_target(self) -> "Schema":
        """The schema of rows to predict."""
        return Schema(self.columns, unknown=self.unknown)

    def features(self, frame: Any, where: str) -> FloatArray:
        """The features of a data frame that narwhals has taken; ``where`` is its name in errors."""
        X = np.empty((len(frame), len(self.names)))
        position = 0
        for name, levels in self.columns:
            series = _column(frame, name, where)
            if levels is None:
                X[:, position] = numbers(series, where)
                position += 1
            else:
                codes = self._codes(series, levels, where)
                for level in range(len(levels) - len(_encoded(levels)), len(levels)):
                    X[:, position] = np.where(codes < 0, np.nan, codes == level)
                    position += 1
        return X

    def _codes(self, series: Any, levels: tuple[str, ...], where: str) -> NDArray[np.int64]:
        """The position of each text among the levels, or -1."""
        if series.null_count() == len(series):
            return np.full(len(series), -1)
        if kind_of(series.dtype) != "text":
            raise SourceError(f"{where}: column {series.name!r} is {series.dtype}, and text elsewhere: make it text.")
        series = series.cast(nw.String)
        given = series.drop_nulls().unique().to_list()
        codes = np.full(len(series), -1)
        unknown = []
        for text, level in zip(given, text_column("", given).texts, strict=True):
            if level in levels:
                codes[(series == text).fill_null(False).to_numpy()] = levels.index(level)
            elif level is not None:
                unknown.append(repr(level))
        if unknown and self.unknown == "error":
            raise SourceError(
                f"{where}: column {series.name!r} holds {listed(sorted(unknown), 3)}, which is not one of its known "
                f"values ({listed(levels)}): give all values in categories, or unknown='missing' (--unknown missing)."
            )
        return codes

    def target_of(self, frame: Any, where: str) -> FloatArray | None:
        """The target, NaN where missing."""
        return None if self.target is None else numbers(_column(frame, self.target, where), where)

    def weight_of(self, frame: Any, where: str) -> FloatArray | None:
        """The sample weights."""
        return None if self.weight is None else numbers(_column(frame, self.weight, where), where)

    def keys_of(self, frame: Any, where: str) -> NDArray[Any] | None:
        """The values that identify rows."""
        if self.key is None:
            return None
        series = _column(frame, self.key, where)
        if series.null_count():
            raise SourceError(f"{where}: the key {self.key!r} is missing in {series.null_count():,} rows.")
        return np.asarray(series.to_numpy())


@dataclass(frozen=True)
class Columns:
    """What the columns of a source are for, see :func:`~admiss.streaming.sources.opening.open_source`."""

    target: str | None = None
    weight: str | None = None
    key: str | None = None
    features: Sequence[str] | None = None
    drop: Sequence[str] = ()
    categories: Mapping[str, Iterable[Any]] | None = None
    unknown: str = "error"

    def __post_init__(self) -> None:
        if self.unknown not in ("error", "missing"):
            raise ValueError(f"unknown must be 'error' or 'missing', not {self.unknown!r}.")
        if isinstance(self.features, str) or isinstance(self.drop, str):
            raise ValueError("features and drop are lists of columns, not one text.")
        if len(set(self.roles)) < len(self.roles):
            raise ValueError(f"Target, weight and key must be different columns, not {listed(self.roles)}.")
        for name in self.features or ():
            if name in (self.target, self.weight):
                raise ValueError(f"{name!r} cannot be both a feature and the target or weights.")

    @property
    def roles(self) -> list[str]:
        """Columns that are not features unless they are named."""
        return [name for name in (self.target, self.weight, self.key) if name is not None]

    def chosen(self, kinds: Mapping[str, Kind], where: str) -> list[str]:
        """The columns that are features."""
        for name in (*self.roles, *self.drop, *(self.features or ()), *(self.categories or ())):
            require_column(name, list(kinds), where)
        for name in filter(None, (self.target, self.weight)):
            if kinds[name] not in ("numbers", "empty"):
                raise SourceError(f"{where}: column {name!r} does not hold numbers, as a target and weights must.")
        wanted = [n for n in kinds if n not in self.roles] if self.features is None else dict.fromkeys(self.features)
        found = [name for name in wanted if name not in self.drop]
        if not found:
            raise SourceError(f"{where} has no columns that are features.")
        for name in found:
            if kinds[name] == "other":
                raise SourceError(
                    f"{where}: column {name!r} holds neither numbers nor text: leave it out with drop (--drop)."
                )
        return found

    def schema(
        self, kinds: Mapping[str, Kind], where: str, values_of: Callable[[list[str]], Mapping[str, Iterable[Any]]]
    ) -> Schema:
        """The schema of columns with kinds; ``values_of`` collects the values of text that are not given."""
        chosen, given = self.chosen(kinds, where), self.categories or {}
        text = [name for name in chosen if kinds[name] == "text"]
        levels = {**values_of([name for name in text if name not in given]), **given}
        found = tuple((name, _levels(name, levels[name], where) if name in text else None) for name in chosen)
        schema = Schema(found, self.target, self.weight, self.key, self.unknown)
        twice = [name for name, count in Counter(schema.names).items() if count > 1]
        if twice:
            raise SourceError(f"{where}: two features would be called {twice[0]!r}: rename one of the columns.")
        return schema


def _levels(name: str, values: Iterable[Any], where: str) -> tuple[str, ...] | None:
    """The distinct texts; None if all are missing, as in a column of numbers that is."""
    found = sorted({text for text in text_column(name, values).texts if text is not None})
    if len(found) > MOST_LEVELS:
        raise SourceError(
            f"{where}: column {name!r} is text with more than {MOST_LEVELS} values: leave it out with drop "
            "(--drop), or encode it as numbers."
        )
    return tuple(found) or None


def _encoded(levels: tuple[str, ...] | None) -> tuple[str | None, ...]:
    """The levels that have a column of their own: of two, the second."""
    return (None,) if levels is None else levels[1:] if len(levels) == 2 else levels


def kind_of(dtype: Any) -> Kind:
    """What a type of narwhals holds."""
    if dtype.is_numeric() or dtype in (nw.Boolean, nw.Date, nw.Datetime, nw.Duration):
        return "numbers"
    if dtype in (nw.String, nw.Categorical, nw.Enum):
        return "text"
    return "empty" if dtype == nw.Unknown else "other"


def numbers(series: Any, where: str) -> FloatArray:
    """A column of numbers with NaN, as float64 or float32."""
    dtype = series.dtype
    if dtype.is_float() and (series.null_count() == 0 or series.implementation.is_pyarrow()):
        return np.asarray(series.to_numpy())  # pyarrow writes NaN for null
    if series.null_count() == len(series):
        return np.full(len(series), np.nan)
    if dtype in (nw.Date, nw.Datetime):
        series = series.dt.timestamp("ms")
    elif dtype == nw.Duration:
        series = series.dt.total_milliseconds()
    elif kind_of(dtype) != "numbers":
        raise SourceError(
            f"{where}: column {series.name!r} is {dtype}, and numbers elsewhere: make it numbers, or leave it out."
        )
    if dtype.is_integer():  # casts refuse those that a double rounds
        null = series.is_null().to_numpy()
        return np.where(null, np.nan, np.asarray(series.fill_null(0).to_numpy(), dtype=float))
    values = np.asarray(series.cast(nw.Float64).fill_null(np.nan).to_numpy(), dtype=float)
    return values / MILLISECONDS_PER_DAY if dtype in (nw.Date, nw.Datetime, nw.Duration) else values


def _column(frame: Any, name: str, where: str) -> Any:
    require_column(name, frame.columns, where)
    return frame[name]


def require_column(name: str, names: Sequence[str], where: str) -> None:
    """Raise an error with what there is, unless a column exists."""
    if name not in names:
        near = get_close_matches(name, names, n=1)
        hint = f" Did you mean {near[0]!r}?" if near else ""
        raise SourceError(f"{where} has no column {name!r}: it has {listed(names, MOST_COLUMNS)}.{hint}")
