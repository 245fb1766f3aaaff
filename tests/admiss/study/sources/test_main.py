"""Studies of scripts and notebooks, whose functions belong to ``__main__``."""

import subprocess
import sys
import textwrap

import pytest

SCRIPT = """
from dataclasses import dataclass

from admiss.study import Method, Product, Study
from admiss.study.sources import Sources
import {helper}

FACTOR = 0.5

@dataclass(frozen=True)
class Numbers:
    n: int

    def make(self):
        return [float(i) for i in range(self.n)]

def scaled(x):
    return FACTOR * {helper}.offset(x)

def half(rows, seed):
    return {{"score": scaled(sum(rows)), "seconds": 0.0}}

study = Study("mine", "A title", "", lambda scale: [Product([Numbers(3)], [Method("half", half)])])
"""
END = """
if __name__ == "__main__":
    (cell,) = study.cells("all")
    print(sorted(Sources().of(cell).parts.items()))
    if {run}:
        from admiss.study.store import Store
        study.run("all", workers=1, folder={folder!r})
        with Store({folder!r}, "mine") as store:
            (row,) = store.rows()
            assert row["digest"] == Sources().of(cell).digest, row
            assert row["scores"]["score"] == 2.0, row
            assert store.sources()[row["digest"]] == Sources().of(cell).parts
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


def run(arguments, folder):
    done = subprocess.run(
        [sys.executable, *map(str, arguments)], capture_output=True, text=True, cwd=folder, timeout=200
    )
    assert done.returncode == 0, done.stderr
    return dict(eval(done.stdout.splitlines()[0]))


@pytest.fixture(params=["script", "notebook"])
def parts(request, write, tmp_path):
    """Computes the parts of the only cell after some replacements of its text."""

    def computed(*replacements, helper=HELPER, run_it=False):
        text = SCRIPT.format(helper="helper_of_mine") + END.format(run=run_it, folder=str(tmp_path / "store"))
        for old, new in replacements:
            assert old in text
            text = text.replace(old, new)
        write({"mine_as_script.py": text, "helper_of_mine.py": helper})
        if request.param == "script":
            return run(["-B", "mine_as_script.py"], tmp_path)
        # Cells are separate texts, and the second definition of a name is the one that counts.
        text = text.replace("def scaled", "def scaled(x):\n    return 7\n# next cell\ndef scaled")
        write({"cells.txt": text})
        return run(["-B", "-c", NOTEBOOK, "cells.txt"], tmp_path)

    computed.notebook = request.param == "notebook"
    return computed


def test_edits_of_scripts_and_notebooks(parts):
    first = parts(run_it=True)
    place = "notebook" if parts.notebook else "mine_as_script.py"
    names = {f"{place}: {name}" for name in ("FACTOR", "Numbers", "scaled", "half")}
    assert names | {"helper_of_mine.py: offset"} <= set(first)
    assert f"{place}: study" not in first
    assert parts(("A title", "Another")) == first
    edits = (("0.5", "0.25"), ("FACTOR *", "FACTOR +"), ("range(self.n)", "range(1)"), ("scaled(sum", "-scaled(sum"))
    changed = parts(*edits, helper=HELPER.replace("+ 1", "+ 2"))
    assert set(changed) == set(first)
    assert {name for name in first if changed[name] != first[name]} == names | {"helper_of_mine.py: offset"}


def test_what_has_no_source_is_refused_in_one_sentence(tmp_path):
    code = """
        from admiss.study.plan import Cell, Method
        from admiss.study.sources import Sources
        from admiss.study.plan import EngineError
        # From Python 3.13 on, the text after -c is a source too.
        exec(compile("def half(rows, seed): return {}", "<text>", "exec"))
        try:
            Sources().of(Cell(None, Method("half", half)))
        except EngineError as error:
            print([("error", str(error))])
    """
    assert run(["-c", textwrap.dedent(code)], tmp_path) == {
        "error": "half has no source, by which cells would be known to be stale: define it with def or class in a file "
        "or in a cell of a notebook."
    }
