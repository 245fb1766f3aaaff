"""Stale cells: those whose record of dependencies differs from the present, and in what."""

import io
import os
import pickle
import sys
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import fields
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from types import CodeType, FunctionType, ModuleType
from typing import Any

from admiss.extras import optional_import
from admiss.study.dependencies import (
    ABSENT,
    OWN,
    declared_files,
    file_hash,
    found_file,
    own_hashes,
    python_version,
    text_hash,
)
from admiss.study.plan import Cell
from admiss.study.store import Store

MAIN, NOTEBOOK = "__main__", "notebook"
# Lines that say what has changed: as many as a terminal shows with the counts above them.
MOST_LINES = 12
ADVICE = "run with --stale (in Python stale=True) to compute them again"
# A script that was saved after this module was imported may not be the one that runs.
IMPORTED = time.time()


class Present:
    """The present values of dependencies; each is read once."""

    def __init__(self) -> None:
        self._values: dict[str, str] = {}
        self._of_main: dict[tuple[object, ...], tuple[object, dict[str, str]]] = {}

    def changes(self, parts: Mapping[str, str], cell: Cell) -> list[str]:
        """What differs from the record of a cell, each in a few words."""
        found = []
        for name, before in sorted(parts.items()):
            after = self._value(name, cell)
            if after != before:
                is_version = name == "Python" or name.startswith("package ")
                words = f"{before} -> {after}" if is_version else "is absent" if after == ABSENT else "changed"
                found.append(f"{name} {words}")
        return found

    def _value(self, name: str, cell: Cell) -> str:
        if name == NOTEBOOK:
            return self.main_dependencies(cell).get(name, ABSENT)
        files = declared_files(cell.instance) if name.startswith("data ") else {}
        key = str(files.get(name, name))
        if key not in self._values and name in OWN:
            self._values |= own_hashes()
        elif key not in self._values:
            self._values[key] = file_hash(files[name]) if name in files else _present_value(name)
        return self._values[key]

    def main_dependencies(self, cell: Cell) -> dict[str, str]:
        """What a cell uses of ``__main__``: the file of a script, the definitions of a notebook, or nothing.

        Other processes receive these by value and cannot record them.
        """
        values = [getattr(cell.instance, part.name) for part in fields(cell.instance)]
        own = [value for value in values if callable(value) or type(value).__module__ == MAIN]  # not rows, to be fast
        roots = (cell.method, type(cell.instance), *own)
        key = tuple(map(id, roots))
        if key not in self._of_main:
            self._of_main[key] = (roots, _main_dependencies(roots))  # with the objects, whose numbers others may get
        return self._of_main[key][1]


def _present_value(name: str) -> str:
    if name == "Python":
        return python_version()
    if name.startswith("package "):
        try:
            return version(name.removeprefix("package "))
        except PackageNotFoundError:
            return ABSENT
    return file_hash(found_file(name))


def _main_dependencies(roots: tuple[Any, ...]) -> dict[str, str]:
    try:
        if MAIN.encode() not in pickle.dumps(roots):
            return {}
    except Exception:  # what cannot be sent fails its cell with a reason
        return {}
    file = getattr(sys.modules[MAIN], "__file__", None)
    if file is not None:
        unsaved = os.path.getmtime(file) <= IMPORTED
        return {Path(file).name: file_hash(file) if unsaved else "saved while it was running"}
    return {NOTEBOOK: _definitions_hash(roots)}


def _definitions_hash(roots: tuple[Any, ...]) -> str:
    """Hash of the functions and classes of a session that objects use, by their compiled code, and of their data."""
    with optional_import("A study in a notebook or script", "study"):
        import cloudpickle
    found: dict[str, Any] = {}

    class Pickler(cloudpickle.Pickler):
        def reducer_override(self, value: Any) -> Any:
            if isinstance(value, FunctionType | type) and value.__module__ == MAIN:
                found[value.__qualname__] = value
            return super().reducer_override(value)

    Pickler(io.BytesIO()).dump(roots)
    return text_hash(repr([(name, *_described(found[name])) for name in sorted(found)]))


def _described(value: Any) -> Iterator[object]:
    if isinstance(value, type):
        names = [name for name in vars(value) if not name.startswith("__")]
        yield [(name, _data(vars(value)[name])) for name in names]
        return
    code = _code(value.__code__)
    yield code
    yield _data((value.__defaults__, value.__kwdefaults__))
    names = sorted(name for name in value.__globals__ if f"'{name}'" in repr(code))
    yield [(name, _data(value.__globals__[name])) for name in names]


def _code(code: CodeType) -> tuple[object, ...]:
    """Instructions, names and constants, without places in files."""
    constants = [_code(each) if isinstance(each, CodeType) else each for each in code.co_consts]
    plain = [sorted(map(repr, each)) if isinstance(each, frozenset) else each for each in constants]
    return code.co_code, code.co_names, code.co_varnames, plain


def _data(value: Any) -> str:
    """Hash of data; code counts by its own definition."""
    if isinstance(value, FunctionType | ModuleType | type):
        return ""
    try:
        return text_hash(pickle.dumps(value))
    except Exception:  # a lock or a file is no data
        return type(value).__name__


def stale_cells(cells: Iterable[Cell], store: Store) -> dict[str, list[str] | None]:
    """Keys of stale cells, with what has changed, or None where no record can tell."""
    present = Present()
    states, records = store.states(), store.dependencies()
    stale: dict[str, list[str] | None] = {}
    for cell in cells:
        record = records.get(states[cell.key]["digest"]) if cell.key in states else {}
        if record is None:
            stale[cell.key] = None
        elif changes := present.changes(record, cell):
            stale[cell.key] = changes
    return stale


def stale_lines(cells: Iterable[Cell], store: Store) -> list[str]:
    """Count the stale cells and name what has changed."""
    stale = stale_cells(cells, store)
    if not stale:
        return []
    known = len(store.states())
    counts = Counter(change for changes in stale.values() for change in changes or ())
    lines = [f"  {change}" + f" ({count:,} cells)" * (count < len(stale)) for change, count in counts.items()]
    if len(lines) > MOST_LINES:
        lines = [*lines[: MOST_LINES - 1], f"  and {len(lines) - MOST_LINES + 1:,} further changes"]
    if unknown := sum(changes is None for changes in stale.values()):
        lines.append(f"  {unknown:,} computed by a version that kept another record: what has changed is not known")
    verb = "cell is" if len(stale) == 1 else "cells are"
    return [f"{len(stale):,} of {known:,} {verb} stale: {ADVICE}", *lines]
