"""The part of admiss: it follows what computes numbers, and neither tables nor figures nor the engine."""

import shutil
import tomllib
from pathlib import Path

import pytest

import admiss
import formulations
from admiss.study.sources import own_packages
from admiss.study.sources.own_packages import REQUIREMENTS, package_hash
from admiss.study.sources.places import Place

PACKAGES = {package.__name__: Path(package.__file__).parent for package in (admiss, formulations)}


@pytest.fixture
def copies(tmp_path, monkeypatch):
    """Copies of the packages, found instead of the installed ones."""
    for name, folder in PACKAGES.items():
        shutil.copytree(folder, tmp_path / name, ignore=shutil.ignore_patterns("__pycache__", "*.csv", "*.md"))
    monkeypatch.setattr(own_packages, "place_of", lambda name: Place("own", None, (str(tmp_path / name),)))
    return tmp_path


@pytest.mark.parametrize(
    ("path", "counts"),
    [
        ("admiss/linear/fit.py", True),
        ("formulations/losses.py", True),
        ("admiss/datasets/paper/registry.toml", True),
        ("admiss/tables/file.py", True),
        ("admiss/bounds/figures.py", False),
        ("admiss/cli/main.py", False),
        ("admiss/study/store.py", False),
        ("admiss/study/report/rows.py", False),
        ("admiss/plots.py", False),
        ("admiss/web_page/markup.py", False),
    ],
)
def test_edits_that_mark_cells_stale(copies, path, counts):
    before = [package_hash(name) for name in PACKAGES]
    assert (copies / path).exists()
    with (copies / path).open("ab") as source:
        source.write(b"# edited\n")
    assert ([package_hash(name) for name in PACKAGES] != before) == counts


def test_line_ends_do_not_matter_and_new_files_do(copies):
    before = package_hash("formulations")
    path = copies / "formulations/losses.py"
    path.write_bytes(path.read_bytes().replace(b"\n", b"\r\n"))
    assert package_hash("formulations") == before
    path.with_name("more.py").touch()
    assert package_hash("formulations") != before


def test_requirements_are_those_of_the_distribution():
    project = tomllib.loads((PACKAGES["admiss"].parent / "pyproject.toml").read_text())["project"]
    assert tuple(each.partition(">")[0] for each in project["dependencies"]) == REQUIREMENTS
