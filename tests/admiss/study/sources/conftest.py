"""Makes the little projects importable, and runs them in this process."""

import importlib
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from admiss.study.sources import CellSources, Sources

sys.path.insert(0, str(Path(__file__).parent))


class Computed(NamedTuple):
    """Score of a cell, or the error in its place, and its sources."""

    score: object
    sources: CellSources


@pytest.fixture
def write(tmp_path: Path) -> Callable[[dict[str, str]], Path]:
    """Writes files below a folder."""

    def files(texts: dict[str, str]) -> Path:
        for name, text in texts.items():
            path = tmp_path / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(text.encode())
        return tmp_path

    return files


@pytest.fixture
def load(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str], Any]]:
    """Imports a module of the folder as it is now, with all that it imports there."""
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)

    def forget() -> None:
        for name, module in list(sys.modules.items()):
            own = getattr(module, "__dict__", {})
            places = [own.get("__file__"), *(own.get("__path__") or ())]
            if any(str(place).startswith(str(tmp_path)) for place in places):
                del sys.modules[name]
        importlib.invalidate_caches()

    def fresh(name: str) -> Any:
        forget()
        for path in tmp_path.rglob("*.py"):  # a module of Python with the same name may have been imported
            monkeypatch.delitem(sys.modules, path.stem, raising=False)
        return importlib.import_module(name)

    yield fresh
    forget()


@pytest.fixture
def compute_here(load: Callable[[str], Any]) -> Callable[[], Computed]:
    """Computes the only cell of the study ``mine.STUDY``."""

    def computed() -> Computed:
        (cell,) = load("mine").STUDY.cells("all")
        sources = Sources().of(cell)
        try:
            score: object = cell.method.run(cell.instance.make(), cell.seed, **cell.method.parameters)
        except Exception as error:
            score = repr(error)
        return Computed(score, sources)

    return computed
