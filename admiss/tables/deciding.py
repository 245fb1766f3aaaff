"""The schema of a table: its target first, then its columns by the rules of :mod:`~admiss.tables.rules`.

The first :data:`DECIDING_ROWS` rows with a target decide, in memory and in batches alike. Columns that are text,
constant or missing there are followed to the end of the table, where values may be new. The target has no part in it.

A target of text, truth values or whole numbers with few values is one of classes; all other numbers are a regression.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from admiss.tables.column import LARGEST_WHOLE, Column, SourceError, joined, listed, raw_column, require_columns
from admiss.tables.rules import MOST_FOLLOWED, Decision, Notes, Tally
from admiss.tables.schema import UNKNOWN, Feature, Schema, level_feature
from admiss.tables.source import TableSource
from formulations.arrays import BoolArray

# Rows that decide: with 100 columns of numbers, 100 MB.
DECIDING_ROWS = 2**17
TASKS = ("auto", "regression", "classification")
# Whole numbers are classes if they have at most this number of values.
MOST_CLASSES = 10
_READ = {"notation": "read as numbers in another notation", "hours": "a time, in hours"}


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


@dataclass(frozen=True)
class Target:
    """The target at the rows that have one.

    Attributes
    ----------
    y : array
        Numbers, or labels: texts or whole numbers.
    rows : array of bool
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


def decide(source: TableSource, plan: Plan) -> Schema:
    """The schema of a source.

    If not all of its rows can decide, constant columns are used, as further rows may have other values.
    """
    wanted = _common_columns(source.kinds, plan) if source.kinds else None
    head, place, is_all = _head(source, plan, wanted)
    target = None
    if plan.target is not None:
        target = read_target(head.pop(plan.target), plan.task, source.decimal_comma)
    key = None if plan.key is None else head[plan.key]
    if plan.key not in (plan.features or ()):
        head.pop(plan.key or "", None)
    kept = plan.kept
    decisions = _decisions(source, plan, head, target, is_all)
    notes = Notes()
    features: list[Feature] = []
    seen: dict[Any, str] = {}
    for name, decision in decisions.items():
        given = (plan.categories or {}).get(name)
        if given is not None and (decision.is_text or head[name].kind != "text"):
            features.append(level_feature(name, sorted({str(text) for text in given})))
            continue
        feature = decision.feature(name in kept, source.is_whole or is_all, seen, notes)
        features += [] if feature is None else [feature]
    if not features:
        left_out = " ".join(notes.sentences())
        raise SourceError(f"{place} has no features{plan.purpose}. {left_out}".strip())
    schema = Schema(
        tuple(_named(features)), plan.target, plan.weight, plan.key, plan.unknown, notes=tuple(notes.sentences())
    )
    if source.is_text and key is not None:
        texts = [text for text in key.texts if text is not None]
        schema = replace(schema, whole_keys=all(text.isdecimal() and len(text) < 16 for text in texts))
    return schema if target is None else replace(schema, task=target.task, target_feature=target.feature)


def _common_columns(kinds: Mapping[str, Mapping[str, str]], plan: Plan) -> list[str]:
    """The columns that may be features; a file that lacks some or has others in them is refused, and all are named."""
    everything = list(dict.fromkeys(name for columns in kinds.values() for name in columns))
    wanted = plan.chosen(everything, next(iter(kinds)))
    expected: dict[str, str] = {}
    for where, columns in kinds.items():
        lacking = [name for name in [*wanted, *plan.roles] if name not in columns]
        if lacking:
            many = len(lacking) > 1
            raise SourceError(
                f"{where} has no column{'s' * many} {', '.join(map(repr, lacking))}, which other files have: add "
                f"{'them' if many else 'it'}, or leave {'them' if many else 'it'} out with drop (--drop)."
            )
        differing = []
        for name in [*wanted, *plan.roles]:
            if columns[name] and expected.setdefault(name, columns[name]) != columns[name]:
                differing.append(f"{name!r} does not hold {expected[name]}")
        if differing:
            raise SourceError(
                f"{where}: column {', column '.join(differing)}, as in other files: write the same type, or leave "
                "it out with drop (--drop)."
            )
    return wanted


def _head(source: TableSource, plan: Plan, wanted: Sequence[str] | None) -> tuple[dict[str, Column], str, bool]:
    """The first rows of the columns, the name of the first frame, and whether there are no more rows."""
    parts: dict[str, list[Column]] = {}
    first, rows, is_all = "", 0, True
    for where, frame in source.deciding(None):
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
    others = [piece for piece in pieces if piece.kind != column.kind and piece.observed.any()]
    if others and column.observed.any():
        before = others[0]
        raise SourceError(
            f"{where}: column {column.name!r} holds {column.kind}, and {before.kind} elsewhere: make it "
            f"{before.kind}, or leave it out with drop (--drop)."
        )


def _decisions(
    source: TableSource, plan: Plan, head: dict[str, Column], target: Target | None, is_all: bool
) -> dict[str, Decision]:
    """What is decided on each column by its first rows with a target, and by all where these leave it open."""
    decisions = {}
    for name in head:
        head[name] = head[name] if target is None else head[name].at(target.rows)
        tally = Tally()
        tally.add(head[name].as_numbers)
        decisions[name] = Decision(head[name], tally, source.decimal_comma)
    if is_all or not source.is_whole:
        return decisions
    tallies = {name: Tally() for name, decision in decisions.items() if decision.is_open}
    for _, frame in source.deciding([*tallies, *filter(None, [plan.target])]) if tallies else ():
        rows = None
        if target is not None and plan.target is not None:
            rows = target.observed(raw_column(plan.target, frame[plan.target]))
        for name, tally in tallies.items():
            if len(tally.counts) <= MOST_FOLLOWED:
                column = raw_column(name, frame[name])
                tally.add(column if rows is None else column.at(rows))
    followed = {name: Decision(head[name], tally, source.decimal_comma, True) for name, tally in tallies.items()}
    return decisions | followed


def _named(features: Sequence[Feature]) -> Iterator[Feature]:
    """Features with short names, each used once."""
    used: set[str] = set()
    for feature in features:
        names = []
        for name in feature.names:
            names.append(_unused(name, used))
            used.add(names[-1])
        yield replace(feature, names=tuple(names))


def _short(text: str, longest: int = 60) -> str:
    """A text that may be abridged."""
    return text if len(text) <= longest else text[: longest - 2] + ".."


def _unused(name: str, used: Collection[str]) -> str:
    """A short name that no other feature has."""
    short = _short(" ".join(name.split()))
    found, count = short, 1
    while found in used:
        count += 1
        found = f"{short} ({count})"
    return found


def read_target(column: Column, task: str, decimal_comma: bool = False, is_assumed: bool = False) -> Target:
    """The target as ``task``, one of :data:`TASKS`, says; a note tells why it is, if that was assumed."""
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
        raise ValueError(f"The target {name} is {_short(str(labels[0]))} in every row: there is nothing to predict.")
    if task == "regression" or (task == "auto" and not _are_classes(column, labels, counts, bool(remarks))):
        if column.kind == "text":
            raise ValueError(f"The target {name} is not a column of numbers: use --task classification.")
        notes += [f"{name} is {sentence}." for sentence in remarks]
        if is_assumed:
            notes.append(_assumed("regression", f"{name} is a number with {len(counts):,} distinct values"))
        return Target(column.numbers[rows].astype(float), rows, "regression", feature, notes)
    single = [label for label, count in counts.items() if count == 1]
    if len(counts) - len(single) < 2 or (len(counts) > MOST_CLASSES and 2 * len(single) > len(counts)):
        raise ValueError(
            f"The target {name} has {len(counts):,} different values in {len(labels):,} rows, too many for classes."
        )
    if single:
        shown = listed([_short(repr(label)) for label in single])
        notes.append(f"Rows of classes with one row are left out: {shown}.")
        several = ~np.isin(labels, single)
        labels = labels[several]
        rows = rows.copy()
        rows[rows] = several
    if is_assumed:
        sizes = Counter(labels.tolist()).most_common()
        shown = listed([f"{_short(str(label))}: {count:,} rows" for label, count in sizes])
        notes.append(_assumed("classification", f"{name} has {len(sizes)} classes ({shown})"))
    return Target(labels, rows, "classification", feature, notes)


def _read(column: Column, decimal_comma: bool) -> tuple[Column, Feature | None, list[str]]:
    """The column as numbers if it consists of them, how it is read, and remarks on what it is."""
    column, tally = column.as_numbers, Tally()
    tally.add(column)
    tally = tally.read(decimal_comma=decimal_comma, strict=True)
    reading, details = tally.reading, tally.remarks
    if reading is None:
        return column, None, []
    remarks = [
        f"{words}{f' ({details[key]})' if details[key] else ''}" for key, words in _READ.items() if key in details
    ]
    if tally.is_duration:
        remarks.append("a duration, in days")
    if reading.is_date:
        example = f" ({details['dates']})" if "dates" in details else ""
        remarks.append(f"a date{example}, in days since 1970-01-01")
    kind: Any = "dates" if reading.is_date else "truth" if reading.kind == "truth" else "numbers"
    feature = Feature(column.name, (column.name,), reading)
    return Column(column.name, kind, feature.numbers(column)), feature, remarks


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
