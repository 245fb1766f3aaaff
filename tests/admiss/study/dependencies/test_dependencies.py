"""What a process records: files, declared data, packages, and the parts of admiss that compute numbers."""

import contextlib
import shutil
import sys
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace

import pytest
from sklearn.linear_model import Ridge

import admiss
import formulations
from admiss import AdaptiveRegressor
from admiss.study import dependencies
from admiss.study.dependencies import declared_files, own_hashes
from admiss.study.plan import Cell, Method
from admiss.study.pool import CellProcess, outcome_of
from admiss.study.stale import Present
from admiss.study.store import digest

PACKAGES = [Path(package.__file__).parent for package in (admiss, formulations)]


@dataclass(frozen=True)
class Plain:
    n: int = 1
    files: tuple = ()

    def make(self):
        return self.n


def run(rows, seed, **parameters):
    return {"score": 1.0}


def computed(*cells):
    with contextlib.closing(CellProcess(seconds=600, gigabytes=4)) as process:
        outcomes = [outcome_of(cell, process) for cell in cells]
    assert [outcome.reason for outcome in outcomes] == [None] * len(cells)
    return [outcome.dependencies for outcome in outcomes]


PLAIN = """
from dataclasses import dataclass

@dataclass(frozen=True)
class One:
    n: int = 1

    def make(self):
        return self.n

def run(rows, seed, **parameters):
    return {"score": 1.0}
"""


def test_installed_packages_count_by_version_once_they_are_loaded(write, load):
    write({"plain_run.py": PLAIN})
    module = load("plain_run")
    methods = [Method("m", module.run), Method("m", module.run, {"estimator": Ridge()})]
    cells = [Cell(module.One(), method) for method in methods]
    plain, found = computed(*cells)
    assert "package scikit-learn" not in plain
    assert found["package scikit-learn"] == sys.modules["sklearn"].__version__
    assert {"package numpy", "package scipy", "Python", "admiss.study", "plain_run.py"} <= set(found)
    assert "admiss" not in plain
    older = found | {"package numpy": "1.0", "Python": "3.1"}
    version, numpy = sys.modules["numpy"].__version__, ".".join(map(str, sys.version_info[:2]))
    assert Present().changes(older, cells[1]) == [f"Python 3.1 -> {numpy}", f"package numpy 1.0 -> {version}"]


def test_admiss_counts_once_a_cell_uses_it():
    (found,) = computed(Cell(Plain(), Method("m", run, {"estimator": AdaptiveRegressor()})))
    assert {name: found[name] for name in dependencies.OWN} == own_hashes()


@pytest.mark.parametrize(
    ("path", "part"),
    [
        ("admiss/linear/fit.py", "admiss"),
        ("formulations/losses.py", "formulations"),
        ("admiss/datasets/paper/registry.toml", "admiss"),
        ("admiss/tables/csv_file.py", "admiss"),
        ("admiss/study/scoring.py", "admiss.study"),
        ("admiss/bounds/figures.py", None),
        ("admiss/cli/main.py", None),
        ("admiss/study/store.py", None),
        ("admiss/study/report/labels.py", None),
        ("admiss/plots.py", None),
        ("admiss/report/page.py", None),
    ],
)
def test_edits_of_admiss_that_count(tmp_path, monkeypatch, path, part):
    for folder in PACKAGES:
        ignored = shutil.ignore_patterns("__pycache__", "*.csv", "*.md")
        shutil.copytree(folder, tmp_path / folder.name, ignore=ignored)
    monkeypatch.setattr(dependencies, "_own_folders", lambda: tuple(str(tmp_path / each.name) for each in PACKAGES))
    before = own_hashes()
    file = tmp_path / path
    file.write_bytes(file.read_bytes().replace(b"\n", b"\r\n"))
    assert own_hashes() == before
    with file.open("ab") as source:
        source.write(b"# edited\n")
    changed = {name for name, value in own_hashes().items() if value != before[name]}
    assert changed == ({part} if part else set())


def test_the_engine_is_hashed_before_a_worker_imports_it(tmp_path, monkeypatch):
    """A module of a copy of the engine is saved again by its own import."""
    for folder in PACKAGES:
        shutil.copytree(folder, tmp_path / folder.name, ignore=shutil.ignore_patterns("__pycache__", "*.csv", "*.md"))
    with (tmp_path / "admiss" / "study" / "plan.py").open("a") as source:
        source.write("open(__file__, 'a').write('# saved')\n")
    monkeypatch.setattr(dependencies, "_own_folders", lambda: tuple(str(tmp_path / each.name) for each in PACKAGES))
    before = own_hashes()
    monkeypatch.syspath_prepend(tmp_path)
    (found,) = computed(Cell(Plain(), Method("m", run)))
    assert found["admiss.study"] == before["admiss.study"] != own_hashes()["admiss.study"]


def test_modules_of_the_engine_that_count_are_there():
    assert {path.stem for path in (PACKAGES[0] / "study").glob("*.py")} >= dependencies.ENGINE


def test_declared_files_count_by_content_for_their_instance(tmp_path):
    path, other = tmp_path / "data.csv", tmp_path / "other" / "data.csv"
    other.parent.mkdir()
    path.write_text("a\n1\n")
    shutil.copy(path, other)
    cells = [Cell(Plain(1, (path, str(other))), Method("m", run)), Cell(Plain(2), Method("m", run))]
    both, none = computed(*cells)
    assert both["data data.csv"] == both["data data.csv (2)"]
    assert not [name for name in none if "data.csv" in name]
    path.write_text("a\n2\n")
    assert Present().changes(both, cells[0]) == ["data data.csv changed"]
    path.unlink()
    assert Present().changes(both, cells[0]) == ["data data.csv is absent"]
    other.rename(tmp_path / "moved")
    moved = Cell(Plain(1, (tmp_path / "moved",)), Method("m", run))
    assert Present().changes({"data moved": both["data data.csv"]}, moved) == []


@pytest.mark.parametrize("files", [0, None, (), SimpleNamespace()])
def test_fields_called_files_that_are_none_do_no_harm(files):
    assert declared_files(Plain(1, files)) == {}


SCRATCH = (
    PLAIN
    + """
import os
import tempfile
from pathlib import Path


def half(rows, seed):
    Path("scratch.txt").write_text("1")
    with tempfile.NamedTemporaryFile() as file:
        Path(file.name).read_text()
    os.system("echo 2 > by_another_process.txt")
    score = float(Path("scratch.txt").read_text()) + float(Path("by_another_process.txt").read_text())
    os.remove("by_another_process.txt")
    return {"score": score}
"""
)


def test_files_that_a_cell_writes_are_not_what_it_depends_on(write, load, tmp_path, monkeypatch):
    write({"scratching.py": SCRATCH})
    monkeypatch.chdir(tmp_path)
    module = load("scratching")
    (found,) = computed(Cell(module.One(), Method("m", module.half)))
    here = [name for name in found if name.endswith((".py", ".txt")) or "/" in name]
    assert here == ["scratching.py"]


def test_two_files_of_one_name_are_told_apart(write, load, tmp_path, monkeypatch):
    for folder in ("one", "two"):
        write({f"{folder}/number.txt": "1"})
        monkeypatch.syspath_prepend(tmp_path / folder)
    text = "from pathlib import Path\n\ndef half(rows, seed):\n    folder = Path(__file__).parent\n    score = 0\n"
    text += "    for name in ('one', 'two'):\n        score += int((folder / name / 'number.txt').read_text())\n"
    write({"reading_two.py": text + "    return {'score': score}\n"})
    cell = Cell(Plain(), Method("m", load("reading_two").half))
    (found,) = computed(cell)
    for folder in ("one", "two"):
        write({f"{folder}/number.txt": "2"})
        assert len(Present().changes(found, cell)) == 1
        write({f"{folder}/number.txt": "1"})


@dataclass(frozen=True, slots=True)
class Slotted:
    n: int

    def make(self):
        return self.n


def test_instances_with_slots_run(compute, tmp_path):
    (row,) = compute(tmp_path, [Cell(Slotted(1), Method("m", run))]).values()
    assert row["status"] == "done"


def test_the_digest_is_that_of_the_parts_in_any_order():
    assert digest({"a": "1", "b": "2"}) == digest({"b": "2", "a": "1"})
    assert len({digest({"a": "1", "b": "2"}), digest({"a": "1", "b": "3"}), digest({"a": "1"}), digest({})}) == 4
