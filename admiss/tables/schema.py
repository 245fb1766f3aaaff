"""What becomes of the columns of a table, so that every door and every later row gives the same features.

A missing text is missing in all of its columns: it is one missing feature. Infinite values are missing. Which columns
are used, and which values of text get a column, is decided by :mod:`~admiss.tables.rules`.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import narwhals.stable.v2 as nw
import numpy as np
from numpy.typing import NDArray

from admiss.tables.column import Column, SourceError, listed, raw_column, require_columns
from admiss.tables.parsing import Reading, day_name, days_of_digits
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
        The values of text: the first ones have the 0/1 columns, and the further ones are 0 in these.
    start : float
        Subtracted from numbers: the first day of dates.
    others : bool
        Whether the last feature is 1 for all values of text without a column.
    is_code : bool
        Whether text becomes the position among its levels.
    """

    column: str
    names: tuple[str, ...]
    reading: Reading | None = Reading()  # noqa: RUF009
    levels: tuple[str, ...] = ()
    start: float = 0.0
    others: bool = False
    is_code: bool = False

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
        for position in range(len(self.names)):
            X[:, position] = codes == position
        X[codes < 0] = np.nan

    def numbers(self, column: Column, where: str = "", strict: BoolArray | None = None) -> FloatArray:
        """The numbers of a column, NaN where they are missing or infinite."""
        reading = self.reading
        assert reading is not None
        values, unread = column.numbers, list[str]()
        if column.kind == "text":
            plain = column.plain if reading.kind == "numbers" and not reading.notation else None
            values, unread = reading.values(column.texts) if plain is None else (plain, [])
        elif (column.kind == "dates") != (reading.kind == "dates") and column.observed.any():
            expected = "dates" if reading.kind == "dates" else "numbers"
            raise SourceError(f"{where}: column {column.name!r} holds {column.kind}, and {expected} elsewhere.")
        unread = _in_rows(unread, column, strict)
        if unread:
            raise SourceError(
                f"{where}: column {column.name!r} holds {listed([repr(t) for t in unread], 3)}, and {reading.kind} in "
                "the rows that decided what it is: correct it, leave it out of the model with drop (--drop of admiss "
                "fit), or take it for missing with unknown='missing' (--unknown missing of admiss predict)."
            )
        infinite = np.isinf(values)
        if infinite.any():
            values = np.where(infinite, np.nan, values)
        if reading.are_digits and not np.isnan(values).all():
            days = days_of_digits(values)
            if days is None:
                raise SourceError(f"{where}: column {column.name!r} holds numbers that are not dates such as 20201231.")
            values = days
        return values - self.start if self.start else values

    def _codes(self, column: Column, where: str, strict: BoolArray | None) -> FloatArray:
        """The position of each text among the levels, for others that of their column, or -1."""
        if column.kind != "text":
            if column.observed.any():
                raise SourceError(
                    f"{where}: column {column.name!r} holds {column.kind}, and text elsewhere: make it text."
                )
            return np.full(len(column), -1.0)
        code: dict[str | None, float] = {level: float(k) for k, level in enumerate(self.levels)}
        new = sorted({text for text in column.texts if text is not None and text not in code})
        refused = [] if self.others else _in_rows(new, column, strict)
        if refused:
            known = sorted(" ".join(level.split()) for level in self.levels)
            shown = listed([repr(text) for text in refused], 3)
            raise SourceError(
                f"{where}: column {column.name!r} holds {shown}, which is not one of its known values "
                f"({listed(known)}): give all values in categories, or unknown='missing' (--unknown missing)."
            )
        code |= dict.fromkeys(new, len(self.names) - 1.0 if self.others else -1.0)
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

    def keys_of(self, frame: Any, where: str) -> NDArray[Any]:
        """The values that identify rows for folds, none of which is missing."""
        assert self.key is not None
        require_columns([self.key], list(frame.columns), where)
        values = frame[self.key]
        column = raw_column(self.key, values) if values.dtype == nw.String else None
        lacking = values.null_count() if column is None else int((~column.observed).sum())
        if lacking:
            raise SourceError(f"{where}: the key {self.key!r} is missing in {lacking:,} rows.")
        if column is None:
            return np.asarray(values.to_numpy())
        if not self.whole_keys:
            return np.array(column.texts)
        numbers = Feature(self.key, (self.key,)).numbers(column, where, column.observed)
        return numbers.astype(np.int64)

    def __str__(self) -> str:
        """The columns with their features, and the notes."""
        width = max(len(feature.column) for feature in self.columns)
        lines = [f"{feature.column:<{width}}  {_described(feature)}" for feature in self.columns]
        return "\n".join([*lines, *self.notes])


def _in_rows(texts: Sequence[str], column: Column, rows: BoolArray | None) -> list[str]:
    """Those of the texts that occur in some rows of a column."""
    if not texts or rows is None:
        return []
    present = set(column.at(rows).texts)
    return [text for text in texts if text in present]


def level_feature(name: str, levels: Sequence[str] | None, known: Sequence[str] = ()) -> Feature:
    """A column of numbers, or of text with a 0/1 column per level, of which that of the first of two is left out.

    Values that are ``known`` have no column.
    """
    if levels is None:
        return Feature(name, (name,))
    if len(levels) == 2 and not known:
        levels, known = levels[1:], levels[:1]
    return Feature(name, tuple(f"{name}={level}" for level in levels), None, (*levels, *known))


def _described(feature: Feature) -> str:
    """What the features of a column are."""
    if feature.reading is None:
        return "codes of text" if feature.is_code else listed(feature.names)
    if feature.reading.is_date:
        return f"days since {day_name(feature.start)}"
    return {"numbers": "numbers", "truth": "0 or 1", "hours": "hours"}[feature.reading.kind]
