"""Studies of scripts and notebooks, whose functions belong to ``__main__``."""

import subprocess
import sys

import pytest

SCRIPT = """
from dataclasses import dataclass

from admiss.study import Method, Product, Study
import helper_of_mine

FACTOR = 0.5

@dataclass(frozen=True)
class Numbers:
    n: int

    def make(self):
        return [float(i) for i in range(self.n)]

def scaled(x, by=1):
    return FACTOR * helper_of_mine.offset(x) * by

def half(rows, seed):
    return {"score": scaled(sum(rows)), "seconds": 0.0}

def plot():
    return "drawn"

study = Study("mine", "A title", "", lambda scale: [Product([Numbers(3)], [Method("half", half)])])
"""
END = """
if __name__ == "__main__":
    if RUN:
        study.run("all", workers=1, folder=FOLDER)
    study.status(folder=FOLDER)
"""
NOTEBOOK = """
import linecache, sys
def cell(number, text):
    name = f"<ipython-input-{number}-abc>"
    linecache.cache[name] = (len(text), None, text.splitlines(keepends=True), name)
    exec(compile(text, name, "exec"), globals())
for number, text in enumerate(open(sys.argv[1]).read().split("# next cell")):
    cell(number, text)
"""
HELPER = "def offset(x):\n    return x + 1\n"


@pytest.fixture(params=["script", "notebook"])
def stale(request, write, tmp_path):
    """Runs the study or its status after some replacements of its text, and returns what has changed since the run."""

    def changes(*replacements, helper=HELPER, run=False):
        text = f"FOLDER, RUN = {str(tmp_path / 'store')!r}, {run}\n{SCRIPT}{END}"
        for old, new in replacements:
            assert old in text
            text = text.replace(old, new)
        write({"mine_as_script.py": text, "helper_of_mine.py": helper})
        command = ["mine_as_script.py"]
        if request.param == "notebook":
            # Cells are separate texts, and the second definition of a name is the one that counts.
            text = text.replace("def scaled", "def scaled(x):\n    return 7\n# next cell\ndef scaled")
            write({"cells.txt": text})
            command = ["-c", NOTEBOOK, "cells.txt"]
        done = subprocess.run([sys.executable, "-B", *command], capture_output=True, text=True, cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        assert "1 done, 0 failed" in done.stdout
        return [line.strip() for line in done.stdout.splitlines() if line.startswith("  ")]

    changes.place = "notebook" if request.param == "notebook" else "mine_as_script.py"
    return changes


def test_edits_of_scripts_and_notebooks(stale):
    assert stale(run=True) == []
    assert stale(run=False) == ([] if stale.place == "notebook" else [f"{stale.place} changed"])
    changed = [f"{stale.place} changed"]
    for edit in (
        ("0.5", "0.25"),
        ("FACTOR *", "FACTOR +"),
        ("range(self.n)", "range(1)"),
        ("scaled(sum", "-scaled(sum"),
        ("by=1", "by=2"),
        ("n: int\n", "n: int\n    shift = 1\n"),
    ):
        assert stale(edit) == changed, edit
    if stale.place == "notebook":  # definitions that the cell does not use
        assert stale(("A title", "Another"), ('"drawn"', '"painted"')) == []
    assert "helper_of_mine.py changed" in stale(helper=HELPER.replace("+ 1", "+ 2"))


SAVED = """
import sys
from dataclasses import dataclass
from pathlib import Path

from admiss.study import Method, Product, Study

FACTOR = 0.5

@dataclass(frozen=True)
class One:
    def make(self):
        return 1.0

def half(one, seed):
    return {"score": FACTOR, "seconds": 0.0}

if __name__ == "__main__":
    path = Path(__file__)
    path.write_text(path.read_text().replace("FACTOR = 0.5", "FACTOR = 0.25"))
    study = Study("mine", "", "", lambda scale: [Product([One()], [Method("half", half)])])
    study.run("all", workers=1, folder="store")
    study.status(folder="store")
"""


def test_a_script_that_is_saved_while_it_runs_is_stale(write, tmp_path):
    write({"saved_script.py": SAVED})
    done = subprocess.run([sys.executable, "saved_script.py"], capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "1 of 1 cell is stale" in done.stdout
    assert "saved_script.py changed" in done.stdout
