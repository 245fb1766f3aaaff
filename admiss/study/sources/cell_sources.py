"""The sources of a cell: all that its numbers depend on besides its recipe, and a digest of it.

    mine.py: halved             a definition that the cell reaches, by a hash of its text
    mine.py: top-level ..       statements that are executed with it
    package scikit-learn        an installed distribution, by its version
    data.csv                    a data file that the instance declares in ``files``, by its content
    admiss, formulations        these packages, by a hash of their files that compute numbers
    Python                      its version, which is that of the standard library

The same sources have the same digest on every machine.
"""

import hashlib
import platform
import sys
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import admiss.study as engine
from admiss.study.plan import Cell, EngineError
from admiss.study.sources.distributions import parts_of, version_part
from admiss.study.sources.library import Library
from admiss.study.sources.notebook import notebook_source
from admiss.study.sources.own_packages import own_parts
from admiss.study.sources.reach import Reach
from admiss.study.sources.roots import Root, class_roots, roots_of

ALWAYS = ("numpy", "scipy")
MAIN, WORKER = "__main__", "admiss.study.worker"
# Fields of instances that hold no function.
SIMPLE = frozenset({type(None), bool, int, float, complex, str, bytes})
# Methods whose roots are remembered.
MOST_METHODS = 10_000


@dataclass(frozen=True)
class CellSources:
    """Hashes or versions by the names of parts."""

    parts: dict[str, str]

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the parts in 12 digits."""
        text = "\n".join(f"{name}\t{value}" for name, value in sorted(self.parts.items()))
        return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:12]


class Sources:
    """The sources of cells, as they are when a cell first needs them."""

    def __init__(self) -> None:
        self.library = Library()
        self._of_methods: dict[int, tuple[Any, frozenset[Root]]] = {}
        self._by_roots: dict[frozenset[Root], CellSources] = {}
        self._found: dict[tuple[Any, ...], CellSources] = {}

    def of(self, cell: Cell) -> CellSources:
        """The sources of a cell."""
        method = self._method_roots(cell.method)
        instance = _instance_roots(cell.instance)
        files = self._file_parts(cell.instance)
        key = (method, instance, files)
        if key not in self._found:
            found = self.of_roots(method | instance | class_roots(Cell))
            self._found[key] = CellSources({**found.parts, **dict(files)}) if files else found
        return self._found[key]

    def of_roots(self, roots: frozenset[Root]) -> CellSources:
        """The sources of functions and classes, given by module and name."""
        if roots not in self._by_roots:
            reach = Reach(self.library, self._canonical(roots), engine._HOMES)
            parts = {**reach.parts, "Python": ".".join(platform.python_version_tuple()[:2])}
            for name in ALWAYS:
                parts |= version_part(name)
            for name in sorted({module.partition(".")[0] for module in reach.installed}):
                parts |= parts_of(name)
            if reach.own:
                parts |= own_parts()
            self._by_roots[roots] = CellSources(dict(sorted(parts.items())))
        return self._by_roots[roots]

    def _canonical(self, roots: frozenset[Root]) -> frozenset[Root]:
        """Roots with the script that is running under its importable name; a notebook keeps its own."""
        own = sorted(name for module, name in roots if module == MAIN)
        if not own:
            return roots
        main = sys.modules[MAIN]
        if getattr(getattr(main, "__spec__", None), "name", None) == WORKER:
            raise EngineError("The sources of a notebook are known to the process that runs it only.")
        file = getattr(main, "__file__", None)
        if file is None:
            self.library.add_source(notebook_source(vars(main), own))
            return roots
        name = Path(file).stem
        if name not in sys.modules:
            self.library.add(name, Path(file))
        return frozenset((name if module == MAIN else module, each) for module, each in roots)

    def _method_roots(self, method: Any) -> frozenset[Root]:
        known = self._of_methods.get(id(method))
        if known is None or known[0] is not method:
            if len(self._of_methods) > MOST_METHODS:
                self._of_methods.clear()
            known = (method, roots_of((method.run, dict(method.parameters))))
            self._of_methods[id(method)] = known
        return known[1]

    def _file_parts(self, instance: Any) -> tuple[tuple[str, str], ...]:
        files = getattr(instance, "files", None)
        if not files or not isinstance(files, str | Path | list | tuple):
            return ()
        parts: dict[str, str] = {}
        for path in map(Path, [files] if isinstance(files, str | Path) else files):
            name, count = path.name, 1
            while name in parts:
                count += 1
                name = f"{path.name} ({count})"
            parts[name] = self.library.file_hash(path)
        return tuple(parts.items())


def _instance_roots(instance: Any) -> frozenset[Root]:
    kind: type = type(instance)
    fields = getattr(instance, "__dict__", None)
    if fields is not None and all(type(value) in SIMPLE for value in fields.values()):
        return class_roots(kind)
    return roots_of(instance)
