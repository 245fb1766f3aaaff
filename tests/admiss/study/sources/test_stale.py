"""Stale cells from a run to the next: modules outside any checkout, packages elsewhere, data files, and the reasons."""

import contextlib
import sqlite3
import sys
from dataclasses import dataclass

import pytest

from admiss.study.plan import Cell, EngineError, Method
from admiss.study.sources import CellSources, Sources
from admiss.study.sources.stale import changes, stale_cells, stale_lines
from admiss.study.store import Store

STUDY = '''"""Mine."""
from dataclasses import dataclass
from pathlib import Path

from admiss.study import Method, Product, Study
from elsewhere_package.scaling import scaled


@dataclass(frozen=True)
class Data:
    name: str

    @property
    def files(self):
        return (Path(__file__).parent / self.name,)

    def make(self):
        return [float(line) for line in self.files[0].read_text().splitlines()]


def half(rows, seed):
    return {"score": scaled(sum(rows)), "seconds": 0.0}


def total(rows, seed):
    return {"score": sum(rows), "seconds": 0.0}


METHODS = [Method("half", half), Method("total", total)]
STUDY = Study("toy", "A title", "", lambda scale: [Product([Data("one.txt"), Data("two.txt")], METHODS)])
'''
FILES = {
    "mine_of_a_stranger.py": STUDY,
    "one.txt": "1\n2\n",
    "two.txt": "3\n4\n",
    "packages/elsewhere_package/__init__.py": "",
    "packages/elsewhere_package/scaling.py": "FACTOR = 0.5\n\n\ndef scaled(x):\n    return FACTOR * x\n",
}


@dataclass(frozen=True)
class Numbers:
    n: int


def test_halved_scores_are_stale_wherever_the_code_lies(write, load, compute, tmp_path, monkeypatch):
    """A study outside any checkout, a package in a folder of an editable install, and data files."""
    write(FILES)
    monkeypatch.syspath_prepend(tmp_path / "packages")

    def cells():
        return list(load("mine_of_a_stranger").STUDY.cells("all"))

    def status():
        sources = Sources()
        with Store(tmp_path / "store", "toy") as store:
            lines = stale_lines(cells(), store.states(), sources, store.sources())
            rows = {(row["method"]["name"], row["instance"]["name"]): row for row in store.rows()}
        return lines, {key: row["scores"]["score"] for key, row in rows.items()}

    compute(tmp_path / "store", cells())
    lines, first = status()
    assert lines == []
    assert first[("half", "one.txt")] == 1.5

    write({"mine_of_a_stranger.py": STUDY.replace("A title", "Another title")})
    assert status() == ([], first)

    write(
        {"packages/elsewhere_package/scaling.py": FILES["packages/elsewhere_package/scaling.py"].replace("0.5", "0.25")}
    )
    lines, scores = status()
    assert lines == [
        "2 of 4 cells are stale: run with --stale (in Python stale=True) to compute them again",
        "  method half: elsewhere_package/scaling.py: FACTOR changed",
    ]
    assert scores == first  # as they were computed
    compute(tmp_path / "store", cells())  # not on request: they stay
    assert status()[1] == first
    compute(tmp_path / "store", cells(), stale=True)
    lines, second = status()
    assert lines == []
    assert second == {key: score / 2 if key[0] == "half" else score for key, score in first.items()}

    write({"two.txt": "3\n5\n"})
    lines, _ = status()
    assert lines == [
        "2 of 4 cells are stale: run with --stale (in Python stale=True) to compute them again",
        "  two.txt changed",
    ]
    compute(tmp_path / "store", cells(), stale=True)
    lines, third = status()
    assert lines == []
    assert third[("total", "two.txt")] == 8.0
    assert third[("total", "one.txt")] == 3.0

    with contextlib.closing(sqlite3.connect(tmp_path / "store" / "cells.sqlite")) as connection:
        connection.execute("DROP TABLE sources")  # as an earlier version wrote it
        connection.execute("UPDATE cells SET digest = 'abc'")
        connection.commit()
    lines, _ = status()
    assert lines == [
        "4 of 4 cells are stale: run with --stale (in Python stale=True) to compute them again",
        "  4 computed by sources that are not recorded",
    ]


def test_changes_are_named():
    before = {"a.py: f": "1", "package x": "1.0", "data.csv": "1", "gone.py: g": "1", "Python": "3.11", "same": "1"}
    after = {"a.py: f": "2", "package x": "1.1", "data.csv": "absent", "Python": "3.12", "new.py: h": "1", "same": "1"}
    assert changes(before, after) == [
        "Python 3.11 -> 3.12",
        "a.py: f changed",
        "data.csv is absent",
        "gone.py: g is no longer used",
        "new.py: h is new",
        "package x 1.0 -> 1.1",
    ]
    assert changes(after, before)[2] == "data.csv is there again"


def test_long_lists_of_changes_are_shortened(monkeypatch):
    methods = [Method(f"m{i}", print) for i in range(6)]
    cells = [Cell(Numbers(1), method) for method in methods]
    states = {cell.key: {"digest": "old"} for cell in cells}
    new = CellSources({f"f{i}": "2" for i in range(30)})
    monkeypatch.setattr(Sources, "of", lambda self, cell: new)
    lines = stale_lines(cells, states, Sources(), {"old": {f"f{i}": "1" for i in range(30)}})
    assert lines[0].startswith("6 of 6 cells are stale")
    assert lines[1] == "  f0 changed"
    assert lines[-1] == "  and 19 further changes"
    assert len(lines) == 13
    several = stale_lines(cells[:5], {cell.key: {"digest": "old"} for cell in cells[:4]}, Sources(), {"old": {}})
    assert several[1] == "  4 methods: f0 is new"
    assert stale_cells(cells, {}, Sources()) == []


def test_sources_that_cannot_be_read_are_named_in_one_sentence(write, load):
    write({"user_of_broken.py": "def half(rows, seed):\n    import broken_module\n    return broken_module.f()\n"})
    write({"broken_module.py": "def f(:\n"})
    cell = Cell(Numbers(1), Method("half", load("user_of_broken").half))
    with pytest.raises(EngineError, match=r"^The source of the module broken_module cannot be read \(.*\): correct .*"):
        Sources().of(cell)
    assert "broken_module" not in sys.modules


SAVED_MEANWHILE = '''"""Mine; a worker finds its files saved with another number while it works with them."""
import sys
from dataclasses import dataclass
from pathlib import Path

from admiss.study import Method, Product, Study


def save(name):
    if "admiss.study.worker" in sys.orig_argv:
        path = Path(__file__).with_name(name)
        path.write_text(path.read_text().replace("= 0.5\\n", "= 0.25\\n"))


FACTOR = 0.5
save("saved_meanwhile.py")
save("saved_before.py")
import saved_before


@dataclass(frozen=True)
class One:
    replicate: int

    def make(self):
        return 1.0


def own(one, seed):
    return {"score": FACTOR * one, "seconds": 0.0}


def late(one, seed):
    save("saved_late.py")
    import saved_late

    return {"score": saved_late.FACTOR * one, "seconds": 0.0}


def before(one, seed):
    return {"score": saved_before.FACTOR * one, "seconds": 0.0}


METHODS = [Method("own", own), Method("late", late), Method("before", before)]
STUDY = Study("toy", "A title", "", lambda scale: [Product([One(number) for number in range(3)], METHODS)])
'''


def test_the_digest_is_that_of_the_text_that_was_executed(write, load, compute, tmp_path):
    """Files are saved while the study is imported, before a module is, and between the digest and a late import."""
    neighbours = dict.fromkeys(("saved_before.py", "saved_late.py"), "FACTOR = 0.5\n")
    write({"saved_meanwhile.py": SAVED_MEANWHILE, **neighbours})
    rows = compute(tmp_path / "store", list(load("saved_meanwhile").STUDY.cells("all")), workers=1)
    scores = {row["method"]["name"]: row["scores"].get("score") for row in rows.values()}
    assert len(rows) == 9
    assert set(scores) == {"own", "late", "before"}
    # all files say 0.25 now: what was computed by 0.5 is stale
    stale = {
        cell.method.name for cell in stale_cells(list(load("saved_meanwhile").STUDY.cells("all")), rows, Sources())
    }
    assert stale == {name for name, score in scores.items() if score == 0.5}
    assert scores == {"own": 0.5, "late": 0.5, "before": 0.25}
