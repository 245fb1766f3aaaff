"""Columns as features, fixed before the first chunk so that every chunk gives the same ones.

====================================  =========================================================
a column                              becomes
====================================  =========================================================
numbers, truth values                 as it is
dates, times and durations            days, dates since 1970-01-01
text                                  a 0/1 column per value, one for two values
====================================  =========================================================

0/1 columns are missing where the text is. A value of text that the schema does not know is an error, or missing if
``unknown`` says so.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np
from numpy.typing import NDArray

from admiss.tables.column import Kind, SourceError, kind_of, numbers, require_column, text_column, with_columns
from admiss.tables.notes import listed
from formulations.arrays import FloatArray

# Values of a column of text that become columns; with more, it must be left out or encoded beforehand.
MOST_LEVELS = 50


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
        names: list[str] = []
        for name, levels in self.columns:
            names += [name] if levels is None else [f"{name}={level}" for level in with_columns(levels)]
        return names

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
            series = column_of(frame, name, where)
            if levels is None:
                X[:, position] = numbers(series, where)
                position += 1
                continue
            codes = self._codes(series, levels, where)
            for level in with_columns(levels):
                X[:, position] = np.where(codes < 0, np.nan, codes == levels.index(level))
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


@dataclass(frozen=True)
class Columns:
    """What the columns of a source are for, see :func:`~admiss.tables.opening.open_source`."""

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


def column_of(frame: Any, name: str, where: str) -> Any:
    """A column of a data frame that narwhals has taken."""
    require_column(name, frame.columns, where)
    return frame[name]
