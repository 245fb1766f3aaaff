"""The command ``admiss study``, from an empty folder to a report, as a new user would."""

import csv
import os
import subprocess
import sys

import numpy as np
import pytest

from admiss.cli.main import main


@pytest.fixture
def empty_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    yield tmp_path
    for name in [name for name in sys.modules if name.startswith("own_")]:
        del sys.modules[name]


def flats(path, classes=False):
    rng = np.random.default_rng(3)
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["rooms", "town", "price"])
        for _ in range(120):
            rooms = rng.integers(1, 7)
            price = 100 * rooms + rng.normal(scale=50)
            shown = "?" if rng.uniform() < 0.2 else rooms
            writer.writerow(
                [shown, rng.choice(["Ulm", "Kiel"]), ("high" if price > 350 else "low") if classes else price]
            )


def test_new_writes_a_study_on_generated_rows_and_names_the_next_steps(empty_folder, capsys):
    assert main(["study", "new", "own_first.py"]) == 0
    printed = capsys.readouterr().out.splitlines()
    assert printed[:3] == [
        "written: own_first.py",
        "written: test_own_first.py",
        "run it:  admiss study run own_first.py",
    ]
    assert main(["study", "list"]) == 0
    assert capsys.readouterr().out.splitlines() == ["own_first.py   Own first", f"{'':<14} cells: all 80"]
    assert main(["study", "new", "own_first.py"]) == 2
    assert "already exists and is not overwritten" in capsys.readouterr().err


@pytest.mark.slow
def test_a_new_study_passes_its_own_test(empty_folder):
    assert main(["study", "new", "own_tested.py"]) == 0
    # Options for the run that this test is part of are not meant for the other one.
    environment = {name: value for name, value in os.environ.items() if name != "PYTEST_ADDOPTS"}
    command = [sys.executable, "-m", "pytest", "-q", "test_own_tested.py"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout
    assert "4 passed" in done.stdout


@pytest.mark.slow
@pytest.mark.parametrize("classes", [False, True])
def test_a_study_of_ones_own_table_from_new_to_report_and_results(empty_folder, capsys, classes):
    flats(empty_folder / "flats.csv", classes)
    assert main(["study", "new", "own_flats.py", "--table", "flats.csv", "--target", "price"]) == 0
    assert main(["study", "run", "own_flats.py", "--workers", "1"]) == 0
    out = capsys.readouterr().out
    assert "40 of 40 cells done, 0 failed (40 computed now)" in out
    assert main(["study", "status", "own_flats.py"]) == 0
    assert "40 done, 0 failed, 0 pending, of 40 cells" in capsys.readouterr().out
    assert main(["study", "report", "own_flats.py"]) == 0
    page = empty_folder.joinpath("runs", "own_flats", "report.html").read_text()
    assert "mean + indicators + linear" in page
    assert main(["study", "results", "own_flats.py", "out"]) == 0
    endings = {path.suffix for path in empty_folder.joinpath("out").iterdir()}
    assert {".csv", ".md", ".svg", ".pdf"} <= endings
    assert main(["study", "export", "own_flats.py", "cells.csv"]) == 0
    with empty_folder.joinpath("cells.csv").open(newline="") as file:
        assert len(list(csv.DictReader(file))) == 40


def test_a_changed_table_makes_its_cells_stale(empty_folder, capsys):
    flats(empty_folder / "flats.csv")
    empty_folder.joinpath("own_small.py").write_text(
        "from pathlib import Path\n"
        "from sklearn.tree import DecisionTreeRegressor\n"
        "from admiss.study import CsvInstance, Study\n"
        "TABLE = CsvInstance(Path(__file__).parent / 'flats.csv', target='price')\n"
        "STUDY = Study('small', instances=[TABLE], methods={'tree': DecisionTreeRegressor()})\n"
    )
    run = ["study", "run", "own_small.py", "--workers", "1"]
    assert main(run) == 0
    with empty_folder.joinpath("flats.csv").open("a") as file:
        file.write("5,Ulm,12\n")
    capsys.readouterr()
    assert main(["study", "status", "own_small.py"]) == 0
    assert "flats.csv" in capsys.readouterr().out
    assert main([*run, "--stale"]) == 0
    assert "(1 computed now)" in capsys.readouterr().out
    assert main(["study", "status", "own_small.py"]) == 0
    assert "stale" not in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["run", "nothing.py"], "There is no file nothing.py: 'admiss study new nothing.py' writes one."),
        (["report", "nothing"], "There is no file or module nothing: "),
        (["new", "mine.txt"], "mine.txt must be a name of letters, digits and _ that ends in .py"),
        (["new", "json.py"], "json.py would hide the module json: choose another name."),
        (["new", "own_x.py", "--table", "a.csv"], "--table and --target belong together"),
        (["new", "own_x.py", "--table", "a.csv", "--target", "y"], "a.csv"),
    ],
)
def test_mistakes_end_in_one_sentence(arguments, sentence, empty_folder, capsys):
    assert main(["study", *arguments]) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.startswith("error: ")
    assert sentence in printed.err
    assert len(printed.err.splitlines()) == 1
    assert list(empty_folder.glob("*.py")) == []


def test_a_folder_without_studies_says_how_to_begin(empty_folder, capsys):
    empty_folder.joinpath("other.py").write_text("raise RuntimeError('never run')\n")
    assert main(["study", "list"]) == 0
    assert capsys.readouterr().out == (
        "There are no studies here: 'admiss study new mine.py' writes one to start from.\n"
    )


def test_a_study_with_a_mistake_is_listed_with_its_line(empty_folder, capsys):
    empty_folder.joinpath("own_broken.py").write_text("from admiss.study import Study\ndef f(:\n")
    empty_folder.joinpath("other.py").write_text("def f(:\n")
    assert main(["study", "list"]) == 0
    (line,) = capsys.readouterr().out.splitlines()
    assert line.startswith("own_broken.py")
    assert "because of line 2" in line
