"""What becomes of the columns of a table, so that every door and every later row gives the same features.

====================================  =====================================================================
a column                              becomes
====================================  =====================================================================
numbers, truth values, durations      numbers; durations are days
dates                                 days since the first date of the rows that decided
times of the day                      hours
text                                  0/1 columns of some of its values, and perhaps one of all others
text, by ``keep``                     the position of each value in alphabetical order
====================================  =====================================================================

A missing text is missing in all of its columns: it is one missing feature. Infinite values are missing. Which columns
are used, and which values of text get a column, is decided by :mod:`~admiss.tables.deciding`.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np

from admiss.tables.column import Column, SourceError, raw_column, require_columns
from admiss.tables.notes import listed
from admiss.tables.parsing import Reading, days_of_digits
from formulations.arrays import BoolArray, FloatArray

UNKNOWN = ("error", "missing")


@dataclass(frozen=True)
class Feature:
    """How a column becomes one feature or several.

    Attributes
    ----------
    column : str
    names : tuple of str
        Of the features.
    reading : Reading or None
        How it is read as numbers; None for text.
    levels : tuple of str
        The values of text: the first ones have the 0/1 columns, all have the codes.
    start : float
        Subtracted from numbers: the first day of dates.
    known : tuple of str
        Further values of text that have no column: they are 0 in those of the others.
    others : bool
        Whether the last feature is 1 for all values of text without a column.
    is_code : bool
        Whether text becomes the position among its levels.
    digits : bool
        Whether dates are numbers such as 20201231.
    """

    column: str
    names: tuple[str, ...]
    reading: Reading | None = Reading()  # noqa: RUF009
    levels: tuple[str, ...] = ()
    start: float = 0.0
    known: tuple[str, ...] = ()
    others: bool = False
    is_code: bool = False
    digits: bool = False

    def write(self, column: Column, X: FloatArray, where: str, strict: BoolArray | None) -> None:
        """Write the features of a column into the columns of X.

        ``where`` is its place in errors, and ``strict`` the rows in which unknown values are errors; with None they are
        missing everywhere.
        """
        if self.reading is not None:
            X[:, 0] = self.numbers(column, where, strict)
            return
        codes = self._codes(column, where, strict)
        if self.is_code:
            X[:, 0] = np.where(codes < 0, np.nan, codes)
            return
        n_levels = len(self.levels)
        for position in range(n_levels):
            X[:, position] = codes == position
        if self.others:
            X[:, n_levels] = codes >= n_levels
        X[codes < 0] = np.nan

    def numbers(self, column: Column, where: str = "", strict: BoolArray | None = None) -> FloatArray:
        """The numbers of a column, NaN where they are missing or infinite."""
        assert self.reading is not None
        values = column.numbers
        if column.kind == "text":
            values, unread = self._read(column)
            unread = _in_rows(unread, column, strict)
            if unread:
                raise SourceError(
                    f"{where}: column {column.name!r} holds {listed([repr(t) for t in unread], 3)}, and "
                    f"{self.reading.kind} in the rows that decided what it is: correct it, or leave it out with drop "
                    "(--drop)."
                )
        elif (column.kind == "dates") != (self.reading.kind == "dates" and not self.digits) and column.observed.any():
            expected = "dates" if self.reading.kind == "dates" else "numbers"
            raise SourceError(f"{where}: column {column.name!r} holds {column.kind}, and {expected} elsewhere.")
        if np.fmax.reduce(values, initial=0) == np.inf or np.fmin.reduce(values, initial=0) == -np.inf:
            values = np.where(np.isinf(values), np.nan, values)
        if self.digits:
            days = days_of_digits(values)
            if days is None and np.isfinite(values).any():
                raise SourceError(f"{where}: column {column.name!r} holds numbers that are not dates such as 20201231.")
            values = values if days is None else days
        return values - self.start if self.start else values

    def _read(self, column: Column) -> tuple[FloatArray, list[str]]:
        """The numbers of text, and the texts that cannot be read."""
        assert self.reading is not None
        plain = column.plain if self.reading == Reading() else None
        return self.reading.values(column.texts) if plain is None else (plain, [])

    def _codes(self, column: Column, where: str, strict: BoolArray | None) -> FloatArray:
        """The position of each text among the levels, the number of levels for others, or -1."""
        if column.kind != "text":
            if column.observed.any():
                raise SourceError(
                    f"{where}: column {column.name!r} holds {column.kind}, and text elsewhere: make it text."
                )
            return np.full(len(column), -1.0)
        code: dict[str | None, float] = {level: float(k) for k, level in enumerate(self.levels)}
        code |= {level: float(len(self.levels)) for level in self.known}
        other = float(len(self.levels)) if self.others else -1.0
        new = sorted({text for text in column.texts if text is not None and text not in code})
        refused = [] if self.others else _in_rows(new, column, strict)
        if refused:
            known = sorted(" ".join(level.split()) for level in (*self.levels, *self.known))
            shown = listed([repr(text) for text in refused], 3)
            raise SourceError(
                f"{where}: column {column.name!r} holds {shown}, which is not one of its known values "
                f"({listed(known)}): give all values in categories, or unknown='missing' (--unknown missing)."
            )
        code |= dict.fromkeys(new, other)
        code[None] = -1.0
        return np.array([code[text] for text in column.texts])


@dataclass(frozen=True)
class Schema:
    """What becomes of each column of a table.

    Attributes
    ----------
    columns : tuple of Feature
        The columns that are used.
    target, weight, key : str or None
        Columns with the target, the sample weights, and the values that identify rows for folds.
    unknown : {"error", "missing"}
        Treatment of values of text that no column is for, and of texts that are not numbers where numbers were.
    task : {"regression", "classification"}
        Whether the target is a number or a label.
    target_feature : Feature or None
        How the target is read as numbers, if it is.
    whole_keys : bool
        Whether the keys of a CSV file are whole numbers, not texts.
    notes : tuple of str
        Sentences on what is used, what is left out, and why.
    """

    columns: tuple[Feature, ...]
    target: str | None = None
    weight: str | None = None
    key: str | None = None
    unknown: str = "error"
    task: Literal["regression", "classification"] = "regression"
    target_feature: Feature | None = None
    whole_keys: bool = False
    notes: tuple[str, ...] = field(default=(), repr=False, compare=False)

    @classmethod
    def of_numbers(cls, names: Sequence[str], target: str | None = None) -> "Schema":
        """Columns that are features as they are.

        Examples
        --------
        >>> Schema.of_numbers(["age", "dose"]).names
        ['age', 'dose']
        """
        return cls(tuple(Feature(name, (name,)) for name in names), target)

    @property
    def names(self) -> list[str]:
        """Names of the features."""
        return [name for feature in self.columns for name in feature.names]

    @property
    def used(self) -> list[str]:
        """Columns to read."""
        others = filter(None, (self.target, self.weight, self.key))
        return list(dict.fromkeys([*(feature.column for feature in self.columns), *others]))

    def without_target(self) -> "Schema":
        """The schema of rows to predict."""
        return replace(self, target=None, weight=None, key=None)

    def encode(self, frame: Any, where: str, used: BoolArray | None = None) -> FloatArray:
        """The features of a frame of raw columns.

        ``where`` is its name in errors; ``used`` are the rows whose values must be known, by default all.
        """
        strict = None
        if self.unknown == "error":
            strict = np.ones(len(frame), dtype=bool) if used is None else used
        require_columns((feature.column for feature in self.columns), list(frame.columns), where)
        X = np.empty((len(frame), len(self.names)))
        start = 0
        for feature in self.columns:
            stop = start + len(feature.names)
            feature.write(raw_column(feature.column, frame[feature.column]), X[:, start:stop], where, strict)
            start = stop
        return X

    def numbers_of(self, frame: Any, name: str, where: str) -> FloatArray:
        """The target or the weights."""
        require_columns([name], list(frame.columns), where)
        feature = self.target_feature if name == self.target else None
        column = raw_column(name, frame[name])
        return (feature or Feature(name, (name,))).numbers(column, where, np.ones(len(column), dtype=bool))

    def __str__(self) -> str:
        """The columns with their features, and the notes."""
        width = max(len(feature.column) for feature in self.columns)
        lines = [f"{feature.column:<{width}}  {_described(feature)}" for feature in self.columns]
        return "\n".join([*lines, *self.notes])

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Restore a schema; earlier versions kept pairs of a column and its levels."""
        pairs = [pair for pair in state["columns"] if isinstance(pair, tuple)]
        if pairs:
            state = {**state, "columns": tuple(level_feature(name, levels) for name, levels in pairs)}
        self.__dict__.update({"task": "regression", "target_feature": None, "whole_keys": False, "notes": (), **state})


def _in_rows(texts: Sequence[str], column: Column, rows: BoolArray | None) -> list[str]:
    """Those of the texts that occur in some rows of a column."""
    if not texts or rows is None:
        return []
    present = set(column.at(rows).texts)
    return [text for text in texts if text in present]


def level_feature(name: str, levels: Sequence[str] | None, known: Sequence[str] = ()) -> Feature:
    """A column of numbers, or of text with a 0/1 column per level, of which that of the first of two is left out."""
    if levels is None:
        return Feature(name, (name,))
    if len(levels) == 2 and not known:
        levels, known = levels[1:], levels[:1]
    return Feature(name, tuple(f"{name}={level}" for level in levels), None, tuple(levels), known=tuple(known))


def _described(feature: Feature) -> str:
    if feature.reading is None:
        return "codes of text" if feature.is_code else listed(feature.names)
    if feature.reading.kind == "dates" or feature.digits:
        return f"days since {np.datetime64(int(feature.start), 'D')}"
    return {"numbers": "numbers", "truth": "0 or 1", "hours": "hours"}[feature.reading.kind]
