"""Columns as features.

======================================  ======================================  ==================================
a column                                becomes                                 with ``keep``
======================================  ======================================  ==================================
numbers, truth values                   as it is                                the same
dates                                   days since the first date               the same
text with at most 10 values             a 0/1 column per value, one for two     the same
text with more values                   0/1 columns of the 10 most frequent     0/1 columns of all values; codes
                                        values and of all others; left out if   if these are more than 200 or than
                                        none is frequent                        half the rows
an ID                                   left out                                as it is; codes of text
constant, missing, equal to another     left out                                as it is
======================================  ======================================  ==================================

A value is frequent if it has 5 rows and 1 % of all rows. 0/1 columns are missing where the text is. Codes are numbers
0, 1, 2, .. of the texts in alphabetical order. A column that is constant where observed and missing elsewhere is used:
its missing values may predict.

Texts that are all different are an ID. So are whole numbers that are all different, if the column has an ID's name, or
if they are never missing and spread as evenly as serial numbers. A population or an income is not, and whole numbers
between 1500 and 2200 are years.

Values are counted in all rows of a file, test rows included; the target has no part in it.
"""

import re
from collections import Counter
from collections.abc import Collection, Sequence

import numpy as np

from admiss.tables.column import Column, with_columns
from admiss.tables.notes import Notes
from admiss.tables.parsing import day_name
from formulations.arrays import FloatArray

# Values of a text that become columns, see the table above; a convention, not measured.
MOST_LEVELS = 10
# Values that are all different by chance on fewer rows.
ID_ROWS = 20
_ID_NAME = re.compile(r"(?i:(.*[\W_])?(id|uuid|guid|key|idx|index|rowid|no|nr)|id[\W_].*)|.*[a-z]I[dD]")


def encode(columns: Sequence[Column], keep: Collection[str], notes: Notes) -> dict[str, FloatArray]:
    """Features by name."""
    features: dict[str, FloatArray] = {}
    seen: dict[bytes | tuple[str | None, ...], str] = {}
    for column in columns:
        if column.kind != "text":
            infinite = int(np.isinf(column.numbers).sum())
            column = _cleaned(column)
            if infinite:
                notes.add("infinite", column.name, f"{infinite:,}")
        content = tuple(column.texts) if column.kind == "text" else column.numbers.tobytes()
        reason, detail = _reason_to_leave_out(column)
        if not reason and content in seen:
            reason, detail = "copy", f"of {seen[content]}"
        seen.setdefault(content, column.name)
        if reason and column.name not in keep:
            notes.add(reason, column.name, detail)
            continue
        for key, detail in column.remarks:
            if key != "dates":
                notes.add(key, column.name, detail)
        encoded = (
            _text_features(column, column.name in keep, notes)
            if column.kind == "text"
            else {column.name: _numeric_feature(column, bool(reason), notes)}
        )
        for name, values in encoded.items():
            features[_unused(name, features)] = values
    return features


def _cleaned(column: Column) -> Column:
    """A column whose missing values are all the same NaN, and whose zeros have no sign."""
    numbers = np.where(np.isfinite(column.numbers), column.numbers, np.nan) + 0.0
    return Column(column.name, column.kind, numbers, remarks=column.remarks)


def _reason_to_leave_out(column: Column) -> tuple[str, str]:
    """The key of a note with its detail, or two empty texts."""
    observed = column.observed
    if not observed.any():
        return "empty", ""
    if column.kind == "text":
        counts = Counter(text for text in column.texts if text is not None)
        if len(counts) == 1 and observed.all():
            return "constant", ""
        if len(counts) == observed.sum() >= ID_ROWS:
            return "text id", ""
        if len(counts) > MOST_LEVELS and not _frequent(counts, len(observed)):
            return "rare", f"{len(counts):,} values"
        return "", ""
    values = column.numbers[observed]
    if observed.all() and (values == values[0]).all():
        return "constant", ""
    is_id = column.kind == "numbers" and _is_id(column.name, values, bool(observed.all()))
    return ("number id" if is_id else "", "")


def _is_id(name: str, values: FloatArray, complete: bool) -> bool:
    """Whether numbers are serial numbers: by the name, or by the largest distance to evenly spaced ones."""
    if len(values) < ID_ROWS or (values != np.round(values)).any():
        return False
    ordered = np.sort(values)
    if (np.diff(ordered) == 0).any():
        return False
    if _ID_NAME.fullmatch(name):
        return True
    are_years = ordered[0] >= 1500 and ordered[-1] <= 2200
    if not complete or are_years:
        return False
    even = np.linspace(ordered[0], ordered[-1], len(ordered))
    bound = 1.36 / np.sqrt(len(ordered))  # of Kolmogorov's test at a level of 5 %
    return bool(np.abs(ordered - even).max() <= bound * (ordered[-1] - ordered[0]))


def _numeric_feature(column: Column, kept: bool, notes: Notes) -> FloatArray:
    numbers, observed = column.numbers, column.observed
    if kept:
        notes.add("kept", column.name)
    if column.kind == "dates" and observed.any():
        start = np.floor(numbers[observed].min())
        readings = [detail for key, detail in column.remarks if key == "dates"]
        notes.add("dates", column.name, ", ".join([f"since {day_name(start)}", *readings]))
        numbers = numbers - start
    elif not kept and len(np.unique(numbers[observed])) == 1:
        notes.add("one value", column.name)
    return numbers


def _text_features(column: Column, kept: bool, notes: Notes) -> dict[str, FloatArray]:
    """Columns of 0 and 1, or of codes."""
    texts = np.array(column.texts, dtype=object)
    missing = ~column.observed
    counts = Counter(text for text in column.texts if text is not None)
    levels, detail = sorted(counts), f"{len(counts):,} values"
    if kept and not counts:
        notes.add("kept", column.name)
        return {column.name: np.full(len(texts), np.nan)}
    if kept and len(counts) > max(MOST_LEVELS, min(200, len(texts) / 2)):
        notes.add("kept codes", column.name, detail)
        code: dict[str | None, float] = {level: float(k) for k, level in enumerate(levels)}
        return {column.name: np.array([code.get(text, np.nan) for text in column.texts])}
    if len(counts) <= MOST_LEVELS:
        several = len(counts) > 1
        notes.add("levels" if several else "kept" if kept else "one value", column.name, detail if several else "")
        levels = list(with_columns(levels))
    elif kept:
        notes.add("kept levels", column.name, detail)
    else:
        levels = _frequent(counts, len(texts))
        notes.add("frequent", column.name, f"{len(levels)} of {detail}")
    features = {f"{column.name}={level}": np.where(missing, np.nan, texts == level) for level in levels}
    if 1 < len(levels) < len(counts):
        features[f"{column.name}=other values"] = np.where(missing, np.nan, ~np.isin(texts.astype(str), levels))
    return features


def _frequent(counts: Counter[str], n_rows: int) -> list[str]:
    """The most frequent values in alphabetical order, the first ones of those that are as frequent."""
    least = max(5, n_rows / 100)
    order = sorted(counts, key=lambda text: (-counts[text], text))[:MOST_LEVELS]
    return sorted(text for text in order if counts[text] >= least)


def _unused(name: str, used: Collection[str], longest: int = 60) -> str:
    """A short name that no other feature has."""
    name = " ".join(name.split())
    short = name if len(name) <= longest else name[: longest - 2] + ".."
    found, count = short, 1
    while found in used:
        count += 1
        found = f"{short} ({count})"
    return found
