"""Stale cells from a run to the next: modules outside any checkout, packages elsewhere, data files, and the reasons."""

import threading
from dataclasses import dataclass
from types import SimpleNamespace

from admiss.study.dependencies import file_hash
from admiss.study.plan import Cell, Method
from admiss.study.stale import Present, stale_cells, stale_lines
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

    def make(self):
        return self.n


def test_halved_scores_are_stale_wherever_the_code_lies(write, load, compute, tmp_path, monkeypatch):
    """A study outside any checkout, a package in a folder of an editable install, and data files."""
    write(FILES)
    monkeypatch.syspath_prepend(tmp_path / "packages")

    def cells():
        return list(load("mine_of_a_stranger").STUDY.cells("all"))

    def status():
        with Store(tmp_path / "store", "toy") as store:
            lines = stale_lines(cells(), store)
            rows = {(row["method"]["name"], row["instance"]["name"]): row for row in store.rows()}
        return lines, {key: row["scores"]["score"] for key, row in rows.items()}

    compute(tmp_path / "store", cells())
    lines, first = status()
    assert lines == []
    assert first[("half", "one.txt")] == 1.5

    write({"mine_of_a_stranger.py": STUDY.replace("def half(rows, seed):", "def half(rows, seed):  # a comment")})
    assert status() == ([], first)

    write(
        {"packages/elsewhere_package/scaling.py": FILES["packages/elsewhere_package/scaling.py"].replace("0.5", "0.25")}
    )
    lines, scores = status()
    assert lines == [
        "4 of 4 cells are stale: run with --stale (in Python stale=True) to compute them again",
        "  elsewhere_package/scaling.py changed",
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
        "  data two.txt changed",
    ]
    compute(tmp_path / "store", cells(), stale=True)
    lines, third = status()
    assert lines == []
    assert third[("total", "two.txt")] == 8.0
    assert third[("total", "one.txt")] == 3.0


def test_long_lists_of_changes_are_shortened(monkeypatch):
    cells = [Cell(Numbers(1), Method(f"m{i}", print)) for i in range(6)]
    records = {"many": {f"f{i:02}": "1" for i in range(30)}, "old": {"f": "1"}, "older": {"f": "1", "g": "1"}}
    states = {cell.key: {"digest": "many"} for cell in cells}
    store = SimpleNamespace(states=lambda: states, dependencies=lambda: records)
    monkeypatch.setattr(Present, "changes", lambda self, parts, cell: [f"{part} changed" for part in parts])
    lines = stale_lines(cells, store)
    assert lines[0].startswith("6 of 6 cells are stale")
    assert lines[1] == "  f00 changed"
    assert lines[-1] == "  and 19 further changes"
    assert len(lines) == 13
    states |= {cell.key: {"digest": "old" if index else "older"} for index, cell in enumerate(cells)}
    assert stale_lines(cells, store)[1:] == ["  f changed", "  g changed (1 cells)"]
    states.clear()
    assert stale_cells(cells, store) == {}


SAVED_MEANWHILE = '''"""Mine; a worker finds its files saved with another number while it works with them."""
import sys
from dataclasses import dataclass
from pathlib import Path

from admiss.study import Method, Product, Study


def save(name):
    if "admiss.study.worker" in str(sys.orig_argv):
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


def test_the_record_is_that_of_the_text_that_was_executed(write, load, compute, tmp_path):
    """Files are saved while the study is imported, before a module is, and before a late import."""
    neighbours = dict.fromkeys(("saved_before.py", "saved_late.py"), "FACTOR = 0.5\n")
    write({"saved_meanwhile.py": SAVED_MEANWHILE, **neighbours})
    rows = compute(tmp_path / "store", list(load("saved_meanwhile").STUDY.cells("all")), workers=1)
    scores = {row["method"]["name"]: row["scores"].get("score") for row in rows.values()}
    assert len(rows) == 9
    assert scores == {"own": 0.5, "late": 0.25, "before": 0.25}
    # all files say 0.25 now, and the one that said 0.5 when it was executed has changed since
    cells = list(load("saved_meanwhile").STUDY.cells("all"))
    with Store(tmp_path / "store", "toy") as store:
        stale = stale_cells(cells, store)
    assert all("saved_meanwhile.py changed" in stale[cell.key] for cell in cells)


def test_files_that_are_saved_at_any_moment_leave_no_new_hash_over_old_code(write, load, compute, tmp_path):
    """A module is saved again and again while workers start and compute."""
    text = (
        "import time\n\nFACTOR = {}\n\n\ndef half(rows, seed):\n    time.sleep(0.02)\n    return {{'score': FACTOR}}\n"
    )
    write({"saved_often.py": text.format(0)})
    method = Method("half", load("saved_often").half)
    cells = [Cell(Numbers(n), method) for n in range(40)]
    stop = threading.Event()

    def save():
        for number in range(1, 10_000):
            if stop.wait(0.005):
                return
            write_new(tmp_path / "saved_often.py", text.format(number))

    def write_new(path, content):
        path.with_suffix(".new").write_text(content)
        path.with_suffix(".new").replace(path)

    saving = threading.Thread(target=save)
    saving.start()
    try:
        rows = compute(tmp_path / "store", cells, workers=2)
    finally:
        stop.set()
        saving.join()
    with Store(tmp_path / "store", "toy") as store:
        records = store.dependencies()
    assert len(rows) == 40
    pairs = {(records[row["digest"]]["saved_often.py"], row["scores"]["score"]) for row in rows.values()}
    for recorded, score in pairs:
        known = []
        for number in range(score + 1):  # the text that was executed, or one before it
            (tmp_path / "older.py").write_text(text.format(number))
            known.append(file_hash(tmp_path / "older.py"))
        assert recorded in known
