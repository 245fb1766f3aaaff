"""The target of a table, as numbers or as classes.

Text, truth values and whole numbers with few values are classes; all other numbers are a regression.
"""

from collections import Counter
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from admiss.user_table.column import Column
from admiss.user_table.notes import listed
from formulations.arrays import BoolArray

TASKS = ("auto", "regression", "classification")
# Whole numbers are classes if they have at most this number of values, with this many rows each on average.
MOST_CLASSES = 10
ROWS_PER_CLASS = 5
READ = {
    "notation": "read as numbers in another notation",
    "hours": "a time, in hours",
    "durations": "a duration, in days",
}


@dataclass(frozen=True)
class Target:
    """The target at the rows that have one, these rows, the task, and notes."""

    y: NDArray[Any]
    rows: BoolArray
    task: Literal["regression", "classification"]
    notes: list[str]


def read_target(column: Column, task: str) -> Target:
    """The target as ``task``, one of :data:`TASKS`, says."""
    if task not in TASKS:
        raise ValueError(f"The task must be one of {', '.join(TASKS)}, not {task!r}.")
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
    if task == "regression" or (task == "auto" and not _are_classes(column, labels, counts)):
        if column.kind == "text":
            raise ValueError(f"The target {name} is not a column of numbers: use --task classification.")
        if column.kind == "dates":
            readings = "".join(f" ({detail})" for key, detail in column.remarks if key == "dates")
            notes.append(f"{name} is a date{readings}, in days since 1970-01-01.")
        notes += [
            f"{name} is {READ[key]}{f' ({detail})' if detail else ''}." for key, detail in column.remarks if key in READ
        ]
        if task == "auto":
            notes.append(_assumed("regression", f"{name} is a number with {len(counts):,} distinct values"))
        return Target(column.numbers[rows], rows, "regression", notes)
    single = [label for label, count in counts.items() if count == 1]
    if len(counts) - len(single) < 2 or (len(counts) > MOST_CLASSES and 2 * len(single) > len(counts)):
        raise ValueError(
            f"The target {name} has {len(counts):,} different values in {len(labels):,} rows, too many for classes."
        )
    if single:
        shown = listed([repr(label) for label in single])
        notes.append(f"Rows of classes with one row are left out: {shown}.")
        rows, labels = rows.copy(), labels[(several := ~np.isin(labels, single))]
        rows[rows] = several
    if task == "auto":
        sizes = Counter(labels.tolist()).most_common()
        shown = listed([f"{label}: {count:,} rows" for label, count in sizes])
        notes.append(_assumed("classification", f"{name} has {len(sizes)} classes ({shown})"))
    return Target(labels, rows, "classification", notes)


def _assumed(task: str, reason: str) -> str:
    return f"{reason}, so {task} is assumed; --task regression or --task classification decides."


def _labels(column: Column) -> NDArray[Any]:
    """A column without missing values as classes: texts, or whole numbers."""
    numbers = column.numbers
    if column.kind == "text":
        return np.array([" ".join(str(text).split()) for text in column.texts])
    if column.kind == "truth":
        return np.where(numbers == 1, "True", "False")
    if (numbers == np.round(numbers)).all() and (np.abs(numbers) < 2**53).all():
        return numbers.astype(np.int64)
    return np.array([repr(value) for value in numbers.tolist()])


def _are_classes(column: Column, labels: NDArray[Any], counts: Counter[Any]) -> bool:
    if column.kind == "numbers":
        few = len(counts) <= min(MOST_CLASSES, len(labels) / ROWS_PER_CLASS)
        return few and labels.dtype == np.int64 and not column.remarks
    return column.kind != "dates"
