"""The package as a whole: its imports, its command, its README."""

import csv
import doctest
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import pytest

import admiss
from admiss.cli.main import main

ROOT = Path(__file__).parents[1]
SETTINGS = (("mcar", "linear"), ("mcar", "nn"), ("censoring", "linear"), ("censoring", "nn"))


def run(code, **kwargs):
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, **kwargs)


HEAVY = ["cvxpy", "pyomo", "xgboost", "matplotlib", "sklearn", "scipy", "pandas", "polars", "numba", "narwhals"]


def test_import_is_light():
    found = run(f"import sys, admiss; print([name for name in {['numpy', *HEAVY]} if name in sys.modules])")
    assert found.stdout.strip() == "[]", found.stderr


@pytest.mark.parametrize("arguments", [["--help"], ["--version"], ["versions"]])
def test_commands_that_compute_nothing_import_nothing_heavy(arguments):
    code = f"""
import atexit, sys
from admiss.cli.main import main
atexit.register(lambda: print([name for name in {HEAVY} if name in sys.modules]))
main({arguments})
"""
    found = run(code)
    assert found.returncode == 0, found.stderr
    assert found.stdout.splitlines()[-1] == "[]", found.stdout


def test_estimators_import_no_solver():
    code = "import sys; from admiss import AdaptiveRegressorCV; print([name for name in {} if name in sys.modules])"
    found = run(code.format(["cvxpy", "pyomo", "highspy", "xgboost", "matplotlib", "polars"]))
    assert found.stdout.strip() == "[]", found.stderr


def test_another_formulations_is_refused_with_the_repair(tmp_path):
    (tmp_path / "formulations").mkdir()
    (tmp_path / "formulations" / "__init__.py").write_text("")
    found = run(f"import sys; sys.path.insert(0, {str(tmp_path)!r}); sys.path.append({str(ROOT)!r}); import admiss")
    assert found.returncode == 1
    assert "ImportError: Another distribution has overwritten the package 'formulations'" in found.stderr
    assert "pip install --force-reinstall --no-deps admiss" in found.stderr


def test_public_names():
    for name in admiss.__all__:
        assert getattr(admiss, name).__doc__
    assert admiss.__version__ == version("admiss")


def test_dir_shows_public_names_only():
    submodules = ["adaptivity", "baselines", "bounds", "datasets", "joint", "laws", "partition", "plots"]
    submodules += ["study", "testing"]
    assert dir(admiss) == sorted([*admiss.__all__, *submodules])
    found = run(f"import admiss; print([getattr(admiss, name).__name__ for name in {submodules}])")
    assert found.stdout.strip() == str([f"admiss.{name}" for name in submodules]), found.stderr


def test_the_old_name_of_the_stack_leads_to_the_new_ones():
    with pytest.raises(ImportError, match="AdaptiveStackRegressor and AdaptiveStackClassifier"):
        from admiss import AdaptiveStack  # noqa: F401
    with pytest.raises(AttributeError, match="has no attribute 'Stack'"):
        admiss.Stack  # noqa: B018


def test_versions_are_shown(capsys):
    admiss.show_versions()
    shown = capsys.readouterr().out
    for name in ("admiss", "python", "cvxpy", "clarabel", "highspy", "scikit-learn"):
        assert f"\n{name}" in "\n" + shown
    assert "not installed" not in shown.split("pandas")[0]


def test_demo_prints_every_class(capsys):
    assert main(["demo", "--rows", "150", "--missing", "0.2"]) == 0
    shown = capsys.readouterr().out
    for words in ("static", "affine intercept", "affine", "polynomial, degree 2", "fully adaptive", "R2 test"):
        assert shown.count(words) >= 2


def test_command_line_errors_are_one_sentence(capsys):
    for bad in (["demo", "--missing", "2"], ["nothing"], []):
        with pytest.raises(SystemExit) as stop:
            main(bad)
        assert stop.value.code == 2
    assert "The missing fraction must be between 0 and 1" in capsys.readouterr().err


def test_help_names_every_option(capsys):
    with pytest.raises(SystemExit) as stop:
        main(["demo", "--help"])
    assert stop.value.code == 0
    shown = capsys.readouterr().out
    assert all(option in shown for option in ("--rows", "--missing", "--lam", "--seed", "default"))


@pytest.mark.slow
def test_readme_examples_run():
    results = doctest.testfile(str(ROOT / "README.md"), module_relative=False)
    assert results.attempted >= 10
    assert results.failed == 0


def test_the_comparison_in_the_readme_is_what_the_command_prints(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert main(["compare"]) == 0
    shown = capsys.readouterr().out
    block = (ROOT / "README.md").read_text().split("```\ninteracting patterns")[1].split("```")[0]
    rows = [line.split() for line in block.splitlines() if line.startswith(("none ", "greedy ", "tree "))]
    found = [line.split() for line in shown.splitlines() if line.startswith(("none ", "greedy ", "tree "))]
    assert len(rows) == len(found) == 6
    for expected, row in zip(rows, found, strict=True):
        seconds = len(row) - 3
        assert [word for place, word in enumerate(row) if place != seconds] == [
            word for place, word in enumerate(expected) if place != seconds
        ]
    verdicts = [line for line in block.splitlines() if line.startswith(("Greedy", "Within", "Best"))]
    assert len(verdicts) == 6
    assert all(line in shown for line in verdicts)


def test_the_table_of_the_paper_in_the_readme_is_that_of_the_results():
    folder = ROOT / "experiments" / "results" / "synthetic"
    kept = {}
    for name in ("synthetic-r2.csv", "synthetic-r2-by-adaptivity-level.csv"):
        for row in csv.DictReader((folder / name).open()):
            place = (row["method"], row["mechanism"], row["signal"])
            kept[place] = (float(row["R2"]), float(row["authors n >= 40"]))
    block = (ROOT / "README.md").read_text().split("## The paper, reproduced")[1].split("\n## ")[0]
    shown = {}
    for line in block.splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        for (mechanism, signal), cell in zip(SETTINGS, cells[1:], strict=False):
            if "(" in cell and line.startswith("|"):
                here, authors = cell.rstrip(")").split(" (")
                shown[cells[0], mechanism, signal] = (float(here), float(authors))
    assert shown == kept


def test_the_table_of_real_data_in_the_readme_is_that_of_the_results():
    rows = csv.DictReader((ROOT / "experiments" / "results" / "real-design" / "accuracy-by-design.csv").open())
    kept = {(row["method"], row["design"]): (row["over instances"], row["printed"]) for row in rows}
    shown = readme_table("## The paper on real data", ("mar", "nmar", "am", "real"))
    assert len(shown) == 35
    for place, cell in shown.items():
        here, _, printed = cell.rstrip(")").partition(" (")
        assert float(here) == float(kept[place][0])
        assert (float(printed) if printed else None) == (float(kept[place][1]) if kept[place][1] else None)


def test_the_tables_of_the_stack_in_the_readme_are_those_of_the_results():
    folder = ROOT / "experiments" / "results" / "stack"
    settings = [f"{mechanism} / {signal}" for mechanism, signal in SETTINGS]
    kept = {row["method"]: row for row in csv.DictReader((folder / "generated-data.csv").open())}
    shown = readme_table("## The best prediction", settings)
    assert len(shown) == 40
    assert all(float(cell) == float(kept[method][setting]) for (method, setting), cell in shown.items())
    real = {row["method"]: row for row in csv.DictReader((folder / "real-targets.csv").open())}
    columns = ("mean", "regression", "classes", "stack - method")
    for (method, column), cell in readme_table("## The best prediction", columns, table=1).items():
        numbers = [float(word) for word in cell.split(" ± ")] if cell != "-" else []
        expected = [float(word) for word in real[method][column].split(" ± ")] if real[method][column] else []
        assert numbers == expected


def test_the_table_of_indicators_in_the_readme_is_that_of_the_results():
    path = ROOT / "experiments" / "results" / "indicators" / "gains-of-indicators-by-learner.csv"
    kept = {(row["target"], row["learner"], row["mechanism"]): row for row in csv.DictReader(path.open())}
    targets = {
        "real, 22 sets": "real",
        "linear, same features": "linear on real features",
        "generated linear": "generated linear, n = 1000",
        "generated NN": "generated nn, n = 1000",
    }
    block = (ROOT / "README.md").read_text().split("## Do indicators of missing values help?")[1].split("\n## ")[0]
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in block.splitlines() if line[:1] == "|"]
    assert len(rows) == 14
    for target, learner, *cells in rows[2:]:
        for mechanism, cell in zip(rows[0][2:], cells, strict=True):
            gain, _, interval = cell.rstrip(")").partition(" (")
            shown = [float(number) for number in (gain, *interval.split(" to "))]
            row = kept[targets[target], learner, mechanism]
            # the files have a further digit
            assert shown == pytest.approx([float(row[name]) for name in ("gain", "low", "high")], abs=0.00051)


def test_the_table_of_intervals_in_the_readme_is_that_of_the_results():
    path = ROOT / "experiments" / "results" / "intervals" / "generated-data.csv"
    kept = {(row["case"], row["calibration rows"], row["method"]): row for row in csv.DictReader(path.open())}
    block = (ROOT / "README.md").read_text().split("## For whom do intervals hold?")[1].split("\n## ")[0]
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in block.splitlines() if line[:1] == "|"]
    assert len(rows) == 16
    for case, n, *cells in rows[2:]:
        for method, cell in zip(rows[0][2:], cells, strict=True):
            row = kept[case, n, method]
            assert list(map(float, cell.split(" / "))) == [
                float(row[name]) for name in ("coverage", "lowest feature", "width")
            ]


def readme_table(heading, columns, table=0):
    """Cells of a table of a section of the README, by the word on their left and their column."""
    block = (ROOT / "README.md").read_text().split(heading)[1].split("\n## ")[0]
    tables = [[]]
    for line in block.splitlines():
        if line.startswith("|"):
            tables[-1].append([cell.strip() for cell in line.strip("|").split("|")])
        elif tables[-1]:
            tables.append([])
    return {
        (name, column): cell
        for name, *cells in tables[table][2:]
        for column, cell in zip(columns, cells, strict=True)
        if cell != "-" or table
    }
