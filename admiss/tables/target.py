"""The target of a table: its task, and its values.

A target of text, truth values or whole numbers with few values is one of classes; all other numbers are a regression.
"""

from collections import Counter
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from admiss.tables.column import LARGEST_WHOLE, Column
from admiss.tables.notes import listed
from admiss.tables.parsing import FEW_VALUES, Reading, day_name, days_of_digits, read_texts
from admiss.tables.schema import Feature
from formulations.arrays import BoolArray

TASKS = ("auto", "regression", "classification")
# Whole numbers are classes if they have at most this number of values.
MOST_CLASSES = 10
_READ = {"notation": "read as numbers in another notation", "hours": "a time, in hours"}


@dataclass(frozen=True)
class Target:
    """The target at the rows that have one.

    Attributes
    ----------
    y : array
        Numbers, or labels: texts or whole numbers.
    rows : array of bool
        The rows that have one.
    task : {"regression", "classification"}
    feature : Feature or None
        How it is read as numbers, if it is.
    notes : list of str
    """

    y: NDArray[Any]
    rows: BoolArray
    task: Literal["regression", "classification"]
    feature: Feature | None
    notes: list[str]

    def observed(self, column: Column) -> BoolArray:
        """The rows of a further part of the column that have a target."""
        return column.observed if self.feature is None else np.isfinite(self.feature.numbers(column))


def read_target(column: Column, task: str, decimal_comma: bool = False) -> Target:
    """The target as ``task``, one of :data:`TASKS`, says."""
    if task not in TASKS:
        raise ValueError(f"The task must be one of {', '.join(TASKS)}, not {task!r}.")
    column, feature, remarks = _read(column, decimal_comma)
    rows, name = column.observed, column.name
    if not rows.any():
        raise ValueError(f"The target {name} has no values.")
    without = int((~rows).sum())
    counted = f"{without:,} rows without {name} are" if without > 1 else f"1 row without {name} is"
    notes = [f"{counted} left out."] if without else []
    labels = _labels(column.at(rows))
    counts = Counter(labels.tolist())
    if len(counts) == 1:
        raise ValueError(f"The target {name} is {labels[0]} in every row: there is nothing to predict.")
    if task == "regression" or (task == "auto" and not _are_classes(column, labels, counts, bool(remarks))):
        if column.kind == "text":
            raise ValueError(f"The target {name} is not a column of numbers: use --task classification.")
        notes += [f"{name} is {sentence}." for sentence in remarks]
        if task == "auto":
            notes.append(_assumed("regression", f"{name} is a number with {len(counts):,} distinct values"))
        return Target(column.numbers[rows].astype(float), rows, "regression", feature, notes)
    single = [label for label, count in counts.items() if count == 1]
    if len(counts) - len(single) < 2 or (len(counts) > MOST_CLASSES and 2 * len(single) > len(counts)):
        raise ValueError(
            f"The target {name} has {len(counts):,} different values in {len(labels):,} rows, too many for classes."
        )
    if single:
        shown = listed([repr(label) for label in single])
        notes.append(f"Rows of classes with one row are left out: {shown}.")
        several = ~np.isin(labels, single)
        labels = labels[several]
        rows = rows.copy()
        rows[rows] = several
    if task == "auto":
        sizes = Counter(labels.tolist()).most_common()
        shown = listed([f"{label}: {count:,} rows" for label, count in sizes])
        notes.append(_assumed("classification", f"{name} has {len(sizes)} classes ({shown})"))
    return Target(labels, rows, "classification", feature, notes)


def _read(column: Column, decimal_comma: bool) -> tuple[Column, Feature | None, list[str]]:
    """The column as numbers if it consists of them, how it is read, and remarks on what it is."""
    name, remarks, reading = column.name, list[str](), Reading()
    column = column.as_numbers
    dates = ""
    if column.kind == "text":
        texts = list(dict.fromkeys(text for text in column.texts if text is not None))
        read = read_texts(texts, decimal_comma=decimal_comma, strict=True)
        if read is None:
            return column, None, []
        reading = read.reading
        remarks = [f"{_READ[key]}{f' ({detail})' if detail else ''}" for key, detail in read.remarks if key in _READ]
        dates = "".join(f" ({detail})" for key, detail in read.remarks if key == "dates")
        kind: Any = {"truth": "truth", "dates": "dates"}.get(reading.kind, "numbers")
        column = Column(name, kind, reading.values(column.texts)[0])
    else:
        reading = Reading("dates" if column.kind == "dates" else "numbers")
        remarks = ["a duration, in days"] if column.is_duration else []
    feature = Feature(name, (name,), reading)
    if column.kind == "numbers" and len(np.unique(column.numbers)) > FEW_VALUES:
        days = days_of_digits(column.numbers)
        if days is not None:
            first = int(np.nanargmin(column.numbers))
            dates = f" ({column.numbers[first]:.0f} is {day_name(days[first])})"
            column, feature = Column(name, "dates", days), replace(feature, digits=True)
    if column.kind == "dates":
        remarks.append(f"a date{dates}, in days since 1970-01-01")
    return column, feature, remarks


def _assumed(task: str, reason: str) -> str:
    return f"{reason}, so {task} is assumed; --task regression or --task classification decides."


def _labels(column: Column) -> NDArray[Any]:
    """A column without missing values as classes: texts, or whole numbers."""
    numbers = column.numbers
    if column.kind == "text":
        return np.array([" ".join(str(text).split()) for text in column.texts])
    if column.kind == "truth":
        return np.where(numbers == 1, "True", "False")
    if (numbers == np.round(numbers)).all() and (np.abs(numbers) < LARGEST_WHOLE).all():
        return numbers.astype(np.int64)
    return np.array([repr(value) for value in numbers.tolist()])


def _are_classes(column: Column, labels: NDArray[Any], counts: Counter[Any], is_converted: bool) -> bool:
    if column.kind == "numbers":
        few = len(counts) <= min(MOST_CLASSES, len(labels) / 5)  # five rows each on average
        return few and labels.dtype == np.int64 and not is_converted
    return column.kind != "dates"
