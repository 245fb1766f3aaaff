"""Every study at smoke scale, through the command line, from the run to the files of its results."""

import csv
import os
import subprocess
import sys
from pathlib import Path

import pytest

from experiments.catalogue import CATALOGUE

pytestmark = pytest.mark.slow
ROOT = Path(__file__).resolve().parents[3]
NEEDS_DATA = ("real-design", "partitions", "stack")
OTHERS = [name for name in CATALOGUE if name != "synthetic"]


def command(*arguments: str, folder: Path) -> str:
    """Output of a command, run in an empty directory as a user would with a checkout on the path."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, "-m", "experiments", *arguments],
        cwd=folder, env=environment, capture_output=True, text=True, timeout=600,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout


def run(name: str, folder: Path) -> int:
    """Run a study and return its number of cells."""
    cells = sum(1 for _ in CATALOGUE[name].study.cells("smoke"))
    assert f"{cells} of {cells} cells done, 0 failed" in command("run", name, "--workers", "2", folder=folder)
    return cells


def test_study_from_run_to_page(tmp_path):
    cells = run("synthetic", tmp_path)
    assert f"{cells} done, 0 failed, 0 pending" in command("status", "synthetic", folder=tmp_path)
    assert "(0 computed now)" in command("run", "synthetic", folder=tmp_path)
    assert "Synthetic R2" in command("compare-paper", "synthetic", folder=tmp_path)
    command("report", "synthetic", folder=tmp_path)
    page = (tmp_path / "runs" / "synthetic-smoke" / "report.html").read_text()
    assert CATALOGUE["synthetic"].study.title in page


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.data if name in NEEDS_DATA else ()) for name in OTHERS]
)
def test_results_are_written(name, tmp_path):
    run(name, tmp_path)
    command("results", name, "results", folder=tmp_path)
    assert f"experiments run {name}" in (tmp_path / "results" / "README.md").read_text()
    tables = list((tmp_path / "results").glob("*.csv"))
    assert tables
    for table in tables:
        header, *rows = csv.reader(table.open())
        assert all(len(row) == len(header) for row in rows)
