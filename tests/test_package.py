"""The package as a whole: its imports, its command, its README."""

import doctest
import re
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import pytest

import admiss
from admiss.cli.main import main

ROOT = Path(__file__).parents[1]


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
    submodules += ["streaming", "study", "tables", "testing"]
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


def test_an_unexpected_error_says_how_to_report_it(capsys, monkeypatch):
    monkeypatch.setattr("admiss.cli.demo.make_synthetic", lambda **_: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        main(["demo"])
    *progress, shown = capsys.readouterr().err.strip().splitlines()
    assert shown.startswith("admiss demo: unexpected error: please report it")
    assert f"admiss {admiss.__version__}" in shown
    assert all(re.fullmatch(r"admiss demo \[\d+ s\]", line) for line in progress)  # shown if the machine is slow


def test_help_names_every_option(capsys):
    with pytest.raises(SystemExit) as stop:
        main(["demo", "--help"])
    assert stop.value.code == 0
    shown = capsys.readouterr().out
    assert all(option in shown for option in ("--rows", "--missing", "--lam", "--seed", "default"))


@pytest.mark.slow
def test_readme_examples_run():
    results = doctest.testfile(str(ROOT / "README.md"), module_relative=False)
    assert results.attempted >= 9
    assert results.failed == 0


def test_the_comparison_in_the_guide_is_what_the_command_prints(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "120")
    assert main(["compare"]) == 0
    page = (ROOT / "docs" / "guides" / "exact-or-greedy.md").read_text()
    printed = capsys.readouterr().out.split("\nwritten:")[0]
    block = page[page.index("interacting patterns:") :].split("```")[0]
    seconds = re.compile(r"(optimal|heuristic|-) +\d+\.\d\d(?=  )")
    lines, expected = (
        [seconds.sub(r"\1", line).split() for line in text.strip().splitlines()] for text in (printed, block)
    )
    assert len(lines) > 30
    assert lines == expected
