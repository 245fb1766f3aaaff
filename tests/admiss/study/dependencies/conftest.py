"""Makes the little projects importable, and computes them: in this process, and in one that records."""

import contextlib
import importlib
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from admiss.study.pool import CellProcess, outcome_of

sys.path.insert(0, str(Path(__file__).parent))


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
def score_here(load: Callable[[str], Any]) -> Callable[[], object]:
    """The score of the only cell of the study ``mine.STUDY``, or the error in its place."""

    def scored() -> object:
        (cell,) = load("mine").STUDY.cells("all")
        try:
            return cell.method.run(cell.instance.make(), cell.seed, **cell.method.parameters)
        except Exception as error:
            return repr(error)

    return scored


@pytest.fixture
def recorded(load: Callable[[str], Any]) -> Callable[[], tuple[Any, dict[str, str]]]:
    """The only cell of ``mine.STUDY``, and what a process that has computed it records."""

    def computed() -> tuple[Any, dict[str, str]]:
        (cell,) = load("mine").STUDY.cells("all")
        with contextlib.closing(CellProcess(seconds=600, gigabytes=4)) as process:
            outcome = outcome_of(cell, process)
        assert outcome.reason in (None, "the method returned no score"), outcome.reason
        return cell, outcome.dependencies

    return computed
