"""Cells whose sources have changed since they were computed, and what has changed."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

from admiss.study.plan import Cell
from admiss.study.sources.cell_sources import Sources

# Lines that say what has changed.
MOST_LINES = 12
ADVICE = "run with --stale (in Python stale=True) to compute them again"


def stale_cells(cells: Sequence[Cell], states: Mapping[str, Mapping[str, Any]], sources: Sources) -> list[Cell]:
    """The cells that other sources have computed."""
    known = [cell for cell in cells if cell.key in states]
    return [cell for cell in known if states[cell.key]["digest"] != sources.of(cell).digest]


def stale_lines(
    cells: Sequence[Cell],
    states: Mapping[str, Mapping[str, Any]],
    sources: Sources,
    parts: Mapping[str, Mapping[str, str]],
) -> list[str]:
    """Count the stale cells and name what has changed; ``parts`` are those of the stored digests."""
    stale = stale_cells(cells, states, sources)
    if not stale:
        return []
    known = sum(cell.key in states for cell in cells)
    verb = "cell is" if len(stale) == 1 else "cells are"
    methods: defaultdict[str, dict[str, None]] = defaultdict(dict)
    unknown = 0
    for cell in stale:
        before = parts.get(states[cell.key]["digest"])
        if before is None:
            unknown += 1
            continue
        for change in changes(before, sources.of(cell).parts):
            methods[change][cell.method.name] = None
    everyone = {cell.method.name for cell in cells}
    lines = [f"  {_holders(list(names), everyone)}{change}" for change, names in methods.items()]
    if len(lines) > MOST_LINES:
        lines = [*lines[: MOST_LINES - 1], f"  and {len(lines) - MOST_LINES + 1:,} further changes"]
    if unknown:
        lines.append(f"  {unknown:,} computed by sources that are not recorded")
    return [f"{len(stale):,} of {known:,} {verb} stale: {ADVICE}", *lines]


def _holders(names: Sequence[str], everyone: set[str]) -> str:
    if set(names) == everyone and len(everyone) > 1:
        return ""
    if len(names) > 3:
        return f"{len(names)} methods: "
    return f"method{'s' * (len(names) > 1)} {', '.join(names)}: "


def changes(before: Mapping[str, str], after: Mapping[str, str]) -> list[str]:
    """Differences between the sources of a cell then and now.

    Examples
    --------
    >>> changes({"mine.py: f": "a", "package x": "1"}, {"mine.py: f": "b", "package x": "2", "mine.py: g": "c"})
    ['mine.py: f changed', 'mine.py: g is new', 'package x 1 -> 2']
    """
    found = []
    for name in sorted({*before, *after}):
        old, new = before.get(name), after.get(name)
        if old == new:
            continue
        if old is not None and new is not None and _is_version(name):
            found.append(f"{name} {old} -> {new}")
        elif old is None or new is None:
            found.append(f"{name} is {'new' if old is None else 'no longer used'}")
        else:
            found.append(f"{name} changed" if "absent" not in (old, new) else f"{name} is {_presence(new)}")
    return found


def _is_version(name: str) -> bool:
    return name == "Python" or name.startswith("package ")


def _presence(new: str) -> str:
    return "absent" if new == "absent" else "there again"
