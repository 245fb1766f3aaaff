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

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any

from admiss.tables.column import Column, SourceError, joined, raw_column, require_columns
from admiss.tables.column_rules import MOST_FOLLOWED, Decision, Tally
from admiss.tables.notes import Notes
from admiss.tables.schema import Feature, Schema, level_feature
from admiss.tables.source import Plan
from admiss.tables.target import Target, read_target

# Rows that decide: with 100 columns of numbers, 100 MB.
DECIDING_ROWS = 2**17
# Frames with their names for messages, of some columns or of all.
Read = Callable[[Sequence[str] | None], Iterable[tuple[str, Any]]]


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
    tallies = {name: Tally() for name in head}
    for name, column in head.items():
        head[name] = column if target is None else column.at(target.rows)
        tallies[name].add(head[name].as_numbers)
    decisions = {name: Decision(head[name], tallies[name], decimal_comma) for name in head}
    if whole and not is_all:
        follow = [name for name, decision in decisions.items() if decision.is_open]
        for name, tally in _followed(read, follow, plan.target, target).items():
            decisions[name] = Decision(head[name], tally, decimal_comma, is_followed=True)
    features: list[Feature] = []
    seen: dict[Any, str] = {}
    for name, decision in decisions.items():
        given = (plan.categories or {}).get(name)
        if given is not None and (decision.kind == "text" or head[name].kind != "text"):
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
    others = [piece for piece in pieces if piece.kind != column.kind and piece.observed.any()]
    if others and column.observed.any():
        before = others[0]
        raise SourceError(
            f"{where}: column {column.name!r} holds {column.kind}, and {before.kind} elsewhere: make it "
            f"{before.kind}, or leave it out with drop (--drop)."
        )


def _followed(read: Read, names: Sequence[str], target_name: str | None, target: Target | None) -> dict[str, Tally]:
    """What is counted in all rows with a target."""
    tallies = {name: Tally() for name in names}
    for _, frame in read([*names, *filter(None, [target_name])]) if names else ():
        rows = None
        if target is not None and target_name is not None:
            rows = target.observed(raw_column(target_name, frame[target_name]))
        for name, tally in tallies.items():
            if len(tally.counts) <= MOST_FOLLOWED:
                column = raw_column(name, frame[name])
                tally.add(column if rows is None else column.at(rows))
    return tallies


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
