"""What a column becomes, by the values in it.

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

A value is frequent if it has 5 rows and 1 % of all rows. Codes are numbers 0, 1, 2, .. of the texts in alphabetical
order. A column that is constant where observed and missing elsewhere is used: its missing values may predict.

Texts that are all different are an ID. So are whole numbers that are all different, if the column has an ID's name, or
if they are never missing and spread as evenly as serial numbers. A population or an income is not, and whole numbers
between 1500 and 2200 are years.
"""

import re
from collections import Counter
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from admiss.tables.column import Column, listed
from admiss.tables.parsing import FEW_VALUES, Reading, day_name, days_of_digits, read_texts
from admiss.tables.schema import Feature, level_feature
from formulations.arrays import FloatArray

# Values of a text that become columns, see the table above; a convention, not measured.
MOST_LEVELS = 10
# Values that are all different by chance on fewer rows.
ID_ROWS = 20
# Different values after which a column is not followed further: enough to know that few of them are frequent.
MOST_FOLLOWED = 10_000
_ID_NAME = re.compile(r"(?i:(.*[\W_])?(id|[cgopsu]id|uuid|guid|key|idx|index|rowid|no|nr)|id[\W_].*)|.*[a-z]I[dD]")

# In the order in which they are printed; {it} is "it", or "one" of several columns.
SENTENCES = {
    "unnamed": "Columns without a name are called by their position: {names}",
    "renamed": "Columns with the name of an earlier one get a number: {names}",
    "notation": "Read as numbers in another notation: {names}; --drop {name} leaves {it} out",
    "words": "Words among numbers or dates are treated as missing: {names}; --drop {name} leaves {it} out",
    "infinite": "Infinite values are treated as missing: {names}; --drop {name} leaves {it} out",
    "dates": "Dates are used as days: {names}; --drop {name} leaves {it} out",
    "hours": "Times are used as hours: {names}; --drop {name} leaves {it} out",
    "durations": "Durations are used as days: {names}; --drop {name} leaves {it} out",
    "levels": "Text is used as 0/1 columns of its values: {names}; --drop {name} leaves {it} out",
    "frequent": "Text is used as 0/1 columns of its most frequent values and one of all others: {names}; --keep {name}"
    " uses every value, --drop {name} leaves {it} out",
    "one value": "Only the missing values can matter, as all others are equal: {names}; --drop {name} leaves {it} out",
    "empty": "Left out, as every value is missing: {names}; --keep {name} uses {it} all the same",
    "constant": "Left out, as all values are equal: {names}; --keep {name} uses {it} all the same",
    "number id": "Left out as an ID, as all values are different: {names}; --keep {name} uses {it} as a number",
    "text id": "Left out as an ID, as all texts are different: {names}; --keep {name} uses the position of each text in"
    " alphabetical order",
    "rare": "Left out, as text with many values of which none is frequent: {names}; --keep {name} uses every value",
    "copy": "Left out as an exact copy: {names}; --keep {name} uses {it} all the same",
    "kept": "Used as --keep says: {names}",
    "kept levels": "Text is used as 0/1 columns of all its values, as --keep says: {names}",
    "kept codes": "Text is used as the position of each value in alphabetical order, as --keep says: {names}",
}  # fmt: skip


class Notes:
    """What was done with columns, one sentence for all columns with the same treatment.

    Examples
    --------
    >>> notes = Notes()
    >>> notes.add("constant", "a")
    >>> notes.add("copy", "c", "of b")
    >>> notes.add("constant", "d")
    >>> notes.sentences()
    ['Left out, as all values are equal: a and d; --keep NAME uses one all the same.', \
'Left out as an exact copy: c (of b); --keep c uses it all the same.']
    """

    def __init__(self) -> None:
        self._treated: dict[str, list[tuple[str, str]]] = {}

    def add(self, key: str, name: str, detail: str = "") -> None:
        """Note the treatment of a column."""
        self._treated.setdefault(key, []).append((name, detail))

    def sentences(self) -> list[str]:
        """One sentence per treatment."""
        return [_sentence(text, self._treated[key]) for key, text in SENTENCES.items() if key in self._treated]


def _sentence(pattern: str, columns: list[tuple[str, str]]) -> str:
    names = listed([f"{name} ({detail})" if detail else name for name, detail in columns])
    if len(columns) > 1:
        return pattern.format(names=names, name="NAME", it="one") + "."
    name = columns[0][0]
    plain = all(character.isalnum() or character in "_-.%+:/=@" for character in name)
    return pattern.format(names=names, name=name if plain else f'"{name}"', it="it") + "."


@dataclass
class Tally:
    """Rows, and counts of the values that are observed; infinite ones are apart.

    Of text, :meth:`read` makes numbers if it consists of them. Then, and for numbers, ``reading`` says how they are
    read, and ``remarks`` has details of what was done with them, by the keys of :data:`SENTENCES`.
    """

    kind: str = ""
    rows: int = 0
    infinite: int = 0
    is_duration: bool = False
    counts: Counter[Any] = field(default_factory=Counter)
    reading: Reading | None = None
    remarks: dict[str, str] = field(default_factory=dict)

    def add(self, column: Column) -> None:
        """Count the values of further rows."""
        self.rows += len(column)
        if column.kind == "text":
            self.counts.update(text for text in column.texts if text is not None)
        else:
            values, counts = np.unique(column.numbers[np.isfinite(column.numbers)] + 0.0, return_counts=True)
            if len(values) > MOST_FOLLOWED and (values != np.round(values)).any():
                # The first one that is not whole tells that the column is neither an ID nor dates in digits.
                some = np.append(np.arange(MOST_FOLLOWED), np.argmax(values != np.round(values)))
                values, counts = values[some], counts[some]
            self.counts.update(dict(zip(values.tolist(), counts.tolist(), strict=True)))
            self.infinite += int(np.isinf(column.numbers).sum())
        if not self.kind or column.observed.any():
            self.kind = column.kind
            self.is_duration = column.is_duration

    def read(self, *, decimal_comma: bool, strict: bool = False) -> "Tally":
        """The counts of numbers if text consists of them, ``strict`` as for :func:`read_texts`."""
        kind: Any = self.kind or "numbers"
        if kind != "text":
            return replace(self, reading=Reading(kind))._of_digits()
        read = read_texts(list(self.counts), decimal_comma=decimal_comma, strict=strict)
        if read is None:
            return self if self.counts else replace(self, reading=Reading())
        reading, numbers, remarks = read
        counts: Counter[Any] = Counter()
        infinite = 0
        for text, number in numbers.items():
            if np.isfinite(number):
                counts[number + 0.0] += self.counts[text]
            else:
                infinite += self.counts[text] * bool(np.isinf(number))
        return replace(self, reading=reading, counts=counts, infinite=infinite, remarks=remarks)._of_digits()

    def _of_digits(self) -> "Tally":
        """Take many whole numbers such as 20201231 for dates if all are."""
        assert self.reading is not None
        numbers = np.sort(np.array(list(self.counts)))
        days = days_of_digits(numbers) if self.reading.kind == "numbers" and len(numbers) > FEW_VALUES else None
        if days is None:
            return self
        counts = Counter(dict(zip(days.tolist(), [self.counts[v] for v in numbers.tolist()], strict=True)))
        remark = f"{numbers[0]:.0f} is {day_name(days[0])}"
        reading = replace(self.reading, are_digits=True)
        return replace(self, reading=reading, counts=counts, remarks={**self.remarks, "dates": remark})


class Decision:
    """What a column becomes, by the counts of its values; the rows that decide tell copies."""

    def __init__(self, head: Column, tally: Tally, decimal_comma: bool, is_followed: bool = False) -> None:
        self.head, self.name, self.is_followed = head, head.name, is_followed
        self.tally = tally.read(decimal_comma=decimal_comma)
        self.counts = self.tally.counts
        self.is_text = self.tally.reading is None
        self.is_complete = self.counts.total() == tally.rows
        self.reason, self.detail = self._reason_to_leave_out()

    @property
    def is_open(self) -> bool:
        """Whether rows beyond those that decide may change the decision."""
        return self.reason in ("empty", "constant") or len(self.counts) == 1 or self.is_text

    def _reason_to_leave_out(self) -> tuple[str, str]:
        """The key of a note with its detail, or two empty texts."""
        counts, n_values = self.counts, len(self.counts)
        if not counts:
            return "empty", ""
        if n_values == 1 and self.is_complete:
            return "constant", ""
        all_different = n_values == counts.total()
        if self.is_text:
            if all_different and n_values >= ID_ROWS:
                return "text id", ""
            if n_values > MOST_LEVELS and not _frequent(counts, self.tally.rows):
                return "rare", f"{n_values:,} values"
        elif all_different and self.tally.reading is not None and self.tally.reading.kind == "numbers":
            is_id = _is_id(self.name, np.array(list(counts)), self.is_complete)
            return ("number id" if is_id else "", "")
        return "", ""

    def feature(self, kept: bool, whole: bool, seen: dict[Any, str], notes: Notes) -> Feature | None:
        """The feature, or None if the column is left out; ``seen`` are the contents of columns before it."""
        if self.tally.infinite:
            notes.add("infinite", self.name, f"{self.tally.infinite:,}")
        reason, detail = self.reason, self.detail
        if reason in ("empty", "constant") and not whole:
            reason = ""
        feature = self._number_feature()
        content = self._content(feature)
        if not reason and not self.is_followed and content in seen:
            reason, detail = "copy", f"of {seen[content]}"
        seen.setdefault(content, self.name)
        if reason and not kept:
            notes.add(reason, self.name, detail)
            return None
        for key, remark in self.tally.remarks.items():
            if key != "dates":
                notes.add(key, self.name, remark)
        if self.is_text:
            return self._text_feature(kept, notes)
        self._note_numbers(feature, bool(reason), notes)
        return feature

    def _content(self, feature: Feature) -> Any:
        """What equal columns share."""
        if self.is_text:
            return tuple(self.head.texts)
        return (feature.numbers(self.head).astype(float) + 0.0 + feature.start).tobytes()

    def _number_feature(self) -> Feature:
        reading = self.tally.reading or Reading()
        start = float(np.floor(min(self.counts))) if reading.is_date and self.counts else 0.0
        return Feature(self.name, (self.name,), reading, start=start)

    def _note_numbers(self, feature: Feature, kept: bool, notes: Notes) -> None:
        if kept:
            notes.add("kept", self.name)
        if self.tally.is_duration:
            notes.add("durations", self.name)
        if feature.reading is not None and feature.reading.is_date and self.counts:
            example = self.tally.remarks.get("dates", "")
            notes.add("dates", self.name, ", ".join(filter(None, [f"since {day_name(feature.start)}", example])))
        elif not kept and len(self.counts) == 1:
            notes.add("one value", self.name)

    def _text_feature(self, kept: bool, notes: Notes) -> Feature:
        """Columns of 0 and 1, or of codes."""
        name, counts, rows = self.name, self.counts, self.tally.rows
        levels, detail = sorted(counts), f"{len(counts):,} values"
        if kept and len(counts) > max(MOST_LEVELS, min(200, rows / 2)):
            notes.add("kept codes", name, detail)
            return Feature(name, (name,), None, tuple(levels), is_code=True)
        if len(counts) <= MOST_LEVELS:
            several = len(counts) > 1
            notes.add("levels" if several else "kept" if kept else "one value", name, detail if several else "")
            return level_feature(name, levels)
        if kept:
            notes.add("kept levels", name, detail)
            return level_feature(name, levels)
        frequent = _frequent(counts, rows)
        notes.add("frequent", name, f"{len(frequent)} of {detail}")
        if len(frequent) == 1:
            return level_feature(name, frequent, [level for level in levels if level not in frequent])
        names = [*(f"{name}={level}" for level in frequent), f"{name}=other values"]
        return Feature(name, tuple(names), None, tuple(frequent), others=True)


def _is_id(name: str, values: FloatArray, complete: bool) -> bool:
    """Whether different numbers are serial ones: by the name, or by the largest distance to evenly spaced ones."""
    if len(values) < ID_ROWS or (values != np.round(values)).any():
        return False
    if _ID_NAME.fullmatch(name):
        return True
    ordered = np.sort(values)
    are_years = ordered[0] >= 1500 and ordered[-1] <= 2200
    if not complete or are_years:
        return False
    even = np.linspace(ordered[0], ordered[-1], len(ordered))
    bound = 1.36 / np.sqrt(len(ordered))  # of Kolmogorov's test at a level of 5 %
    return bool(np.abs(ordered - even).max() <= bound * (ordered[-1] - ordered[0]))


def _frequent(counts: Counter[str], n_rows: int) -> list[str]:
    """The most frequent values in alphabetical order, the first ones of those that are as frequent."""
    least = max(5, n_rows / 100)
    order = sorted(counts, key=lambda text: (-counts[text], text))[:MOST_LEVELS]
    return sorted(text for text in order if counts[text] >= least)
