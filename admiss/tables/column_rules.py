"""What a column becomes, by the values in it: the rules of the table in :mod:`~admiss.tables.deciding`."""

import re
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from admiss.tables.column import Column
from admiss.tables.notes import Notes
from admiss.tables.parsing import FEW_VALUES, Reading, ReadTexts, day_name, days_of_digits, read_texts
from admiss.tables.schema import Feature, level_feature
from formulations.arrays import FloatArray

# Values of a text that become columns, see the table above; a convention, not measured.
MOST_LEVELS = 10
# Values that are all different by chance on fewer rows.
ID_ROWS = 20
# Different values after which a column is not followed further: enough to know that few of them are frequent.
MOST_FOLLOWED = 10_000
_ID_NAME = re.compile(r"(?i:(.*[\W_])?(id|[cgopsu]id|uuid|guid|key|idx|index|rowid|no|nr)|id[\W_].*)|.*[a-z]I[dD]")


@dataclass
class Tally:
    """Rows, and counts of the values that are observed; infinite ones are apart."""

    kind: str = ""
    rows: int = 0
    infinite: int = 0
    is_duration: bool = False
    counts: Counter[Any] = field(default_factory=Counter)

    def add(self, column: Column) -> None:
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


class Decision:
    """What a column becomes, by the counts of its values; the rows that decide tell copies."""

    def __init__(self, head: Column, tally: Tally, decimal_comma: bool, is_followed: bool = False) -> None:
        self.head, self.tally, self.name, self.is_followed = head, tally, head.name, is_followed
        counts, rows = tally.counts, tally.rows
        self.read: ReadTexts | None = None
        self.counts: Counter[Any] = counts
        self.infinite = tally.infinite
        self.kind = tally.kind
        if tally.kind == "text":
            self.read = read_texts(list(counts), decimal_comma=decimal_comma)
            if self.read is not None:
                self._take_numbers(self.read)
        self.digits = False
        self.complete = self.counts.total() == rows
        self._read_digits()
        self.reason, self.detail = self._reason_to_leave_out()

    def _take_numbers(self, read: ReadTexts) -> None:
        """Count numbers in place of the texts that are read as them."""
        self.kind = {"truth": "truth", "dates": "dates"}.get(read.reading.kind, "numbers")
        self.counts = Counter()
        for text, number in read.values.items():
            if np.isfinite(number):
                self.counts[number + 0.0] += self.tally.counts[text]
            elif np.isinf(number):
                self.infinite += self.tally.counts[text]

    def _read_digits(self) -> None:
        """Take many whole numbers such as 20201231 for dates if all are."""
        if self.kind != "numbers" or len(self.counts) <= FEW_VALUES:
            return
        values = np.sort(np.array(list(self.counts)))
        days = days_of_digits(values)
        if days is not None:
            self.digits, self.kind = True, "dates"
            self.example = f"{values[0]:.0f} is {day_name(days[0])}"
            self.counts = Counter(dict(zip(days.tolist(), [self.counts[v] for v in values.tolist()], strict=True)))

    @property
    def is_open(self) -> bool:
        """Whether rows beyond those that decide may change the decision."""
        return self.reason in ("empty", "constant") or len(self.counts) == 1 or self.kind == "text"

    def _reason_to_leave_out(self) -> tuple[str, str]:
        """The key of a note with its detail, or two empty texts."""
        counts, n_values = self.counts, len(self.counts)
        if not counts:
            return "empty", ""
        if n_values == 1 and self.complete:
            return "constant", ""
        if self.kind == "text":
            if n_values == counts.total() >= ID_ROWS:
                return "text id", ""
            if n_values > MOST_LEVELS and not _frequent(counts, self.tally.rows):
                return "rare", f"{n_values:,} values"
        elif self.kind == "numbers" and n_values == counts.total():
            is_id = _is_id(self.name, np.array(list(counts)), self.complete)
            return ("number id" if is_id else "", "")
        return "", ""

    def features(self, kept: bool, whole: bool, seen: dict[Any, str], notes: Notes) -> list[Feature]:
        """The features, if it has any; ``seen`` are the contents of columns before it."""
        if self.infinite:
            notes.add("infinite", self.name, f"{self.infinite:,}")
        reason, detail = self.reason, self.detail
        if reason in ("empty", "constant") and not whole:
            reason = ""
        is_text = self.kind == "text" and len(self.counts) > 0
        feature = self._number_feature()
        content = self._content(feature)
        if not reason and not self.is_followed and content in seen:
            reason, detail = "copy", f"of {seen[content]}"
        if content is not None:
            seen.setdefault(content, self.name)
        if reason and not kept:
            notes.add(reason, self.name, detail)
            return []
        for key, remark in self.read.remarks if self.read is not None else ():
            if key != "dates":
                notes.add(key, self.name, remark)
        if is_text:
            return [self._text_feature(kept, notes)]
        self._note_numbers(feature, bool(reason), notes)
        return [feature]

    def _content(self, feature: Feature) -> Any:
        """What equal columns share."""
        if self.kind == "text":
            return tuple(self.head.texts)
        return (feature.numbers(self.head).astype(float) + 0.0 + feature.start).tobytes()

    def _number_feature(self) -> Feature:
        reading = Reading("dates") if self.kind == "dates" else Reading("truth") if self.kind == "truth" else Reading()
        if self.read is not None:
            reading = self.read.reading
        elif self.digits:
            reading = Reading()
        start = float(np.floor(min(self.counts))) if self.kind == "dates" and self.counts else 0.0
        return Feature(self.name, (self.name,), reading, start=start, digits=self.digits)

    def _note_numbers(self, feature: Feature, kept: bool, notes: Notes) -> None:
        if kept:
            notes.add("kept", self.name)
        if self.tally.is_duration:
            notes.add("durations", self.name)
        if self.kind == "dates" and self.counts:
            readings = [detail for key, detail in self.read.remarks if key == "dates"] if self.read is not None else []
            if self.digits:
                readings.append(self.example)
            notes.add("dates", self.name, ", ".join([f"since {day_name(feature.start)}", *readings]))
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
        others = len(frequent) > 1
        names = [f"{name}={level}" for level in frequent] + [f"{name}=other values"] * others
        known = () if others else tuple(level for level in levels if level not in frequent)
        return Feature(name, tuple(names), None, tuple(frequent), known=known, others=others)


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
