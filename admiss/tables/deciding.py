"""Deciding what becomes of each column.

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

The first :data:`DECIDING_ROWS` rows with a target decide, in memory and in batches alike. Columns that are text,
constant or missing there are followed to the end of the table, where values may be new. The target has no part in it.
"""

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from admiss.tables.column import Column, SourceError, raw_column, require_columns
from admiss.tables.notes import Notes, listed
from admiss.tables.parsing import FEW_VALUES, Reading, ReadTexts, day_name, days_of_digits, read_texts
from admiss.tables.schema import UNKNOWN, Feature, Schema, level_feature
from admiss.tables.target import Target, read_target
from formulations.arrays import FloatArray

# Values of a text that become columns, see the table above; a convention, not measured.
MOST_LEVELS = 10
# Values that are all different by chance on fewer rows.
ID_ROWS = 20
# Rows that decide: with 100 columns of numbers, 100 MB.
DECIDING_ROWS = 2**17
# Different values after which a column is not followed further: enough to know that few of them are frequent.
MOST_FOLLOWED = 10_000
_ID_NAME = re.compile(r"(?i:(.*[\W_])?(id|[cgopsu]id|uuid|guid|key|idx|index|rowid|no|nr)|id[\W_].*)|.*[a-z]I[dD]")

# Frames with their names for messages, of some columns or of all.
Read = Callable[[Sequence[str] | None], Iterable[tuple[str, Any]]]


@dataclass(frozen=True)
class Plan:
    """What the columns of a table are for, see :func:`~admiss.tables.opening.open_source`."""

    target: str | None = None
    weight: str | None = None
    key: str | None = None
    features: Sequence[str] | None = None
    drop: Sequence[str] = ()
    keep: Sequence[str] = ()
    categories: Mapping[str, Iterable[Any]] | None = None
    unknown: str = "error"
    task: str = "auto"

    def __post_init__(self) -> None:
        if self.unknown not in UNKNOWN:
            raise ValueError(f"unknown must be 'error' or 'missing', not {self.unknown!r}.")
        if any(isinstance(given, str) for given in (self.features, self.drop, self.keep)):
            raise ValueError("features, drop and keep are lists of columns, not one text.")
        if len(set(self.roles)) < len(self.roles):
            raise ValueError(f"Target, weight and key must be different columns, not {listed(self.roles)}.")
        for name in self.features or ():
            if name in (self.target, self.weight):
                raise ValueError(f"{name!r} cannot be both a feature and the target or weights.")
        both = [name for name in self.drop if name in self.keep]
        if both:
            raise ValueError(f"{listed(both)} cannot be both dropped and kept: use --drop or --keep, not both.")
        if self.target in (*self.drop, *self.keep):
            raise ValueError(f"{self.target} is the target: --drop and --keep are for other columns.")

    @property
    def roles(self) -> list[str]:
        """Columns that are not features unless they are named."""
        return [name for name in (self.target, self.weight, self.key) if name is not None]

    @property
    def kept(self) -> set[str]:
        """Columns that are used whatever they hold."""
        return {*self.keep, *(self.features or ()), *(self.categories or ())}

    def chosen(self, names: Sequence[str], where: str) -> list[str]:
        """The columns that may be features."""
        asked = [*self.roles, *self.drop, *self.keep, *(self.features or ()), *(self.categories or ())]
        require_columns(asked, names, where)
        wanted = [n for n in names if n not in self.roles] if self.features is None else dict.fromkeys(self.features)
        chosen = [name for name in wanted if name not in self.drop]
        if not chosen:
            raise SourceError(f"{where} has no features{self.purpose}.")
        return chosen

    @property
    def purpose(self) -> str:
        """What features are for, in messages."""
        return f" to predict {self.target} from" if self.target else ""


def decide(
    read: Read,
    plan: Plan,
    wanted: Sequence[str] | None = None,
    *,
    decimal_comma: bool = False,
    whole: bool = True,
) -> Schema:
    """The schema of a table.

    Parameters
    ----------
    read : function
        Reads the table from its first row: of the names of columns, or None for all, the frames with their names.
    plan : Plan
    wanted : sequence of str, optional
        Columns that may be features; by default those of the first frame that the plan does not rule out.
    decimal_comma : bool
        Whether 1,234 is a number near one.
    whole : bool
        Whether ``read`` gives the whole table, and can be called again. If not, constant columns are used, as further
        rows may have other values.
    """
    notes = Notes()
    head, place, is_all = _head(read, plan, wanted)
    target = read_target(head.pop(plan.target), plan.task, decimal_comma) if plan.target is not None else None
    key = None if plan.key is None else head[plan.key]
    if plan.key not in (plan.features or ()):
        head.pop(plan.key or "", None)
    tallies = {name: _Tally() for name in head}
    for name, column in head.items():
        head[name] = column if target is None else column.at(target.rows)
        tallies[name].add(head[name])
    decisions = {name: _Decision(head[name], tallies[name], decimal_comma) for name in head}
    if whole and not is_all:
        follow = [name for name, decision in decisions.items() if decision.is_open]
        for name, tally in _followed(read, follow, plan.target, target).items():
            decisions[name] = _Decision(head[name], tally, decimal_comma, is_followed=True)
    features: list[Feature] = []
    seen: dict[Any, str] = {}
    for name, decision in decisions.items():
        given = (plan.categories or {}).get(name)
        if given is not None and decision.read is None:
            features.append(level_feature(name, sorted({str(text) for text in given})))
            continue
        features += decision.features(name in plan.kept, whole or is_all, seen, notes)
    if not features:
        left_out = " ".join(notes.sentences())
        raise SourceError(f"{place} has no features{plan.purpose}. {left_out}".strip())
    found = Schema(tuple(_named(features)), plan.target, plan.weight, plan.key, plan.unknown)
    if key is not None and key.kind == "text":
        texts = [text for text in key.texts if text is not None]
        found = replace(found, whole_keys=all(text.isdecimal() and len(text) < 16 for text in texts))
    found = replace(found, notes=tuple(notes.sentences()))
    return found if target is None else replace(found, task=target.task, target_feature=target.feature)


def common_columns(files: Sequence[tuple[str, Sequence[str]]], plan: Plan) -> list[str]:
    """The columns that may be features, unless some of the files, given with their columns, lack some of them."""
    everything = list(dict.fromkeys(name for _, names in files for name in names))
    wanted = plan.chosen(everything, files[0][0])
    for where, names in files:
        lacking = [name for name in [*wanted, *plan.roles] if name not in names]
        if lacking:
            many = len(lacking) > 1
            raise SourceError(
                f"{where} has no column{'s' * many} {', '.join(map(repr, lacking))}, which other files have: add "
                f"{'them' if many else 'it'}, or leave {'them' if many else 'it'} out with drop (--drop)."
            )
    return wanted


def _head(read: Read, plan: Plan, wanted: Sequence[str] | None) -> tuple[dict[str, Column], str, bool]:
    """The first rows of the columns, the name of the first frame, and whether there are no more rows."""
    parts: dict[str, list[Column]] = {}
    first, rows, is_all = "", 0, True
    for where, frame in read(None):
        if not parts:
            first = where
            wanted = plan.chosen(list(frame.columns), where) if wanted is None else wanted
            parts = {name: [] for name in dict.fromkeys([*wanted, *filter(None, [plan.target, plan.key])])}
        if rows == DECIDING_ROWS:
            is_all = False
            break
        taken = min(len(frame), DECIDING_ROWS - rows)
        require_columns(parts, list(frame.columns), where)
        for name, pieces in parts.items():
            column = raw_column(name, frame[name][:taken])
            _check_alike(pieces, column, where)
            pieces.append(column)
        rows += taken
        is_all = taken == len(frame)
    if not rows:
        raise SourceError(f"{first or 'The source'} has no rows.")
    return {name: joined(name, pieces) for name, pieces in parts.items()}, first, is_all


def _check_alike(pieces: list[Column], column: Column, where: str) -> None:
    before = next((piece for piece in pieces if piece.observed.any()), None)
    if before is not None and column.observed.any() and before.kind != column.kind:
        raise SourceError(
            f"{where}: column {column.name!r} holds {column.kind}, and {before.kind} elsewhere: make it "
            f"{before.kind}, or leave it out with drop (--drop)."
        )


def joined(name: str, pieces: Sequence[Column]) -> Column:
    """Columns of successive rows as one; those without a value have any kind."""
    typed = next((piece for piece in pieces if piece.observed.any()), pieces[0])
    if typed.kind == "text":
        empty = [[None] * len(piece) if piece.kind != "text" else piece.texts for piece in pieces]
        return Column(name, "text", texts=[text for texts in empty for text in texts])
    numbers = [piece.numbers if piece.kind != "text" else np.full(len(piece), np.nan) for piece in pieces]
    return Column(name, typed.kind, np.concatenate(numbers).astype(float), is_duration=typed.is_duration)


def _followed(read: Read, names: Sequence[str], target_name: str | None, target: Target | None) -> dict[str, "_Tally"]:
    """What is counted in all rows with a target."""
    tallies = {name: _Tally() for name in names}
    for _, frame in read([*names, *filter(None, [target_name])]) if names else ():
        rows = None
        if target is not None and target_name is not None:
            rows = target.observed(raw_column(target_name, frame[target_name]))
        for name, tally in tallies.items():
            if len(tally.counts) <= MOST_FOLLOWED:
                column = raw_column(name, frame[name])
                tally.add(column if rows is None else column.at(rows))
    return tallies


@dataclass
class _Tally:
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
                values, counts = values[:MOST_FOLLOWED], counts[:MOST_FOLLOWED]  # neither an ID nor dates in digits
            self.counts.update(dict(zip(values.tolist(), counts.tolist(), strict=True)))
            self.infinite += int(np.isinf(column.numbers).sum())
        if not self.kind or column.observed.any():
            self.kind = column.kind
            self.is_duration = column.is_duration

    @property
    def observed(self) -> int:
        return self.counts.total()


class _Decision:
    """What a column becomes, by the counts of its values; the rows that decide tell copies."""

    def __init__(self, head: Column, tally: _Tally, decimal_comma: bool, is_followed: bool = False) -> None:
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


def _named(features: Sequence[Feature]) -> Iterator[Feature]:
    """Features with short names, each used once."""
    used: set[str] = set()
    for feature in features:
        names = []
        for name in feature.names:
            names.append(_unused(name, used))
            used.add(names[-1])
        yield replace(feature, names=tuple(names))


def _unused(name: str, used: Collection[str], longest: int = 60) -> str:
    """A short name that no other feature has."""
    name = " ".join(name.split())
    short = name if len(name) <= longest else name[: longest - 2] + ".."
    found, count = short, 1
    while found in used:
        count += 1
        found = f"{short} ({count})"
    return found
