"""The documentation: its examples run, every public name is in the API reference in full, and links lead somewhere."""

import doctest
import inspect
import re
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import admiss
from admiss.cli.main import COMMANDS

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGES = sorted(
    path
    for path in [*DOCS.glob("*.md"), *DOCS.glob("*/*.md")]
    if path.parent.name != "examples" and ">>> " in path.read_text()
)
# Constants and aliases of types, which have no page.
CONSTANTS = {"Mechanism", "Scores", "BASELINES", "GRIDS", "DEFAULT_PRIOR", "LAWS", "__version__"}


@pytest.mark.slow
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(DOCS).as_posix())
def test_examples_of_a_page_run(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_flats(tmp_path / "flats.csv")
    write_patients(tmp_path)
    results = doctest.testfile(str(page), module_relative=False)
    assert results.attempted > 0
    assert results.failed == 0


@pytest.mark.slow
def test_the_study_of_a_page_runs(tmp_path):
    source = re.findall(r"```python\n(.*?)```", (DOCS / "extend" / "study.md").read_text(), flags=re.DOTALL)[0]
    (tmp_path / "censored.py").write_text(source)
    command = [sys.executable, "-m", "admiss", "study"]
    subprocess.run([*command, "run", "censored.py"], cwd=tmp_path, check=True, capture_output=True)
    subprocess.run([*command, "export", "censored.py", "cells.parquet"], cwd=tmp_path, check=True, capture_output=True)
    cells = pl.read_parquet(tmp_path / "cells.parquet")
    means = {key: rows["r2"].mean() for key, rows in cells.group_by("method", "share")}
    assert len(cells) == 12
    gains = [means["ours", share] - means["mean", share] for share in (0.1, 0.4)]
    assert gains[1] > gains[0] > 0


def write_flats(path):
    """The table that the pages call flats.csv."""
    rng = np.random.default_rng(0)
    area, rooms = rng.uniform(20, 150, 400), rng.integers(1, 6, 400)
    price = 3000 * area + 10_000 * rooms + 30_000 * rng.normal(size=400)
    year = np.where(rng.random(400) < 0.3, "", rng.integers(1900, 2020, 400).astype(str))
    lines = [f"{a:.1f},{r},{y},{p:.0f}" for a, r, y, p in zip(area, rooms, year, price, strict=True)]
    path.write_text("area,rooms,year,price\n" + "\n".join(lines) + "\n")


def write_patients(folder):
    """The Parquet files that the pages call folder/ and new/."""
    rng = np.random.default_rng(0)
    for place, n in (("folder/a", 300), ("folder/b", 200), ("new/a", 50)):
        x = rng.normal(size=(n, 2))
        y = x.sum(axis=1) + 0.1 * rng.normal(size=n)
        seen = np.where(rng.random(x.shape) < 0.2, np.nan, x)
        who = {"patient": rng.integers(0, 100, n), "name": [f"p{i}" for i in range(n)]}
        columns = {"dose": seen[:, 0], "age": seen[:, 1]} | ({"y": y} if place != "new/a" else {})
        (folder / place).parent.mkdir(exist_ok=True)
        pl.DataFrame(who | columns).write_parquet(folder / f"{place}.parquet")


def listed_names():
    """The names of the API reference, with their modules."""
    listed, module = set(), ""
    for line in (DOCS / "api" / "index.rst").read_text().splitlines():
        if match := re.match(r"\.\. (currentmodule|toctree):: ?(\S*)", line):
            module = match[2]
        elif module and (match := re.fullmatch(r"   ([A-Za-z_]+)", line)):
            listed.add(f"{module}.{match[1]}")
    return listed


def test_every_public_name_is_in_the_api_reference():
    listed = listed_names()
    public = {f"admiss.{name}" for name in admiss.__all__ if name not in CONSTANTS}
    for package in admiss._SUBMODULES:
        names = getattr(import_module(f"admiss.{package}"), "__all__", [])
        public |= {f"admiss.{package}.{name}" for name in names if name not in CONSTANTS and not hasattr(admiss, name)}
    assert public <= listed, f"not in docs/api/index.rst: {sorted(public - listed)}"
    for name in listed:
        module, _, attribute = name.rpartition(".")
        assert getattr(import_module(module), attribute).__doc__, f"{name} has no docstring"


@pytest.fixture
def full_parameters(monkeypatch):
    """The extension that completes docstrings for the reference."""
    monkeypatch.setattr(sys, "path", [str(DOCS / "_ext"), *sys.path])
    return import_module("full_parameters")


@pytest.mark.parametrize("name", sorted(listed_names()))
def test_parameters_are_in_the_reference_with_type_and_default(name, full_parameters):
    module, _, attribute = name.rpartition(".")
    obj = getattr(import_module(module), attribute)
    if inspect.isclass(obj) and (issubclass(obj, Exception) or getattr(obj, "_is_protocol", False)):
        return
    described = full_parameters.entries(obj, "Attributes") | full_parameters.entries(obj)
    for parameter in inspect.signature(obj).parameters.values():
        assert parameter.name in described, f"{name} does not describe {parameter.name}"
        kind = described[parameter.name].type
        assert kind, f"{name} has no type for {parameter.name}"
        assert not kind.startswith(("default", "optional")), f"{name} has a default, but no type for {parameter.name}"
        if parameter.default is not inspect.Parameter.empty:
            assert "default" in kind or "optional" in kind, f"{name} has no default for {parameter.name}"


def test_methods_on_rows_say_what_rows_are(full_parameters):
    lines = full_parameters.with_rows(admiss.AdaptiveClassifier.predict_proba, ["Probability of each class."])
    assert lines[2:5] == ["Parameters", "----------", "X : array or data frame of shape (n, d)"]
    described = ["Fit.", "", "Parameters", "----------", "X : array", "y : array"]
    assert full_parameters.with_rows(admiss.AdaptiveClassifier.fit, described) == described


# They hold results, or what others are made of; the examples are at the functions that return or take them.
WITHOUT_EXAMPLE = {
    "admiss.bounds.Bound",
    "admiss.bounds.CertifiedRisk",
    "admiss.bounds.DataRecommendation",
    "admiss.bounds.MomentBias",
    "admiss.bounds.Recommendation",
    "admiss.bounds.RiskCertificate",
    "admiss.compare.comparison.Comparison",
    "admiss.datasets.DataUnavailableError",
    "admiss.datasets.Dataset",
    "admiss.datasets.SemiSyntheticData",
    "admiss.datasets.SyntheticData",
    "admiss.datasets.full_matrix",  # writes into the cache folder
    "admiss.joint.Imputation",
    "admiss.joint.JointProblem",
    "admiss.joint.Round",
    "admiss.laws.Law",
    "admiss.partition.Limits",
    "admiss.partition.Partition",
    "admiss.partition.Partitioner",
    "admiss.streaming.SourceRows",
    "admiss.tables.Schema",
    "admiss.tables.TableFile",
    "formulations.erm.program.AdaptiveERM",
    "formulations.erm.program.CompiledERM",
    "formulations.erm.program.solve_erm",
    "admiss.study.Best",
    "admiss.study.EngineError",
    "admiss.study.Method",
    "admiss.study.Product",
    "admiss.study.Rows",
    "formulations.boxes.partition.BoxPartitionProblem",
    "formulations.groups.problem.PatternGroupsProblem",
    "formulations.set_partition.SetPartition",
    "formulations.trees.flow.OptimalTreeProblem",
}


def test_everything_that_is_used_has_an_example():
    without = set()
    for name in listed_names():
        module, _, attribute = name.rpartition(".")
        if ">>> " not in getattr(import_module(module), attribute).__doc__:
            without.add(name)
    assert without == WITHOUT_EXAMPLE


def test_every_command_has_an_example():
    page = (DOCS / "api" / "commands.md").read_text()
    commands = set(re.findall(r"```\{command-help\} (\S+)", page))
    assert commands == set(COMMANDS)
    shell = "\n".join(re.findall(r"```sh\n(.*?)```", page, flags=re.DOTALL))
    for command in commands:
        assert f"admiss {command}" in shell, f"no example of admiss {command}"


FILES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted(DOCS.glob("*.md")), *sorted(DOCS.glob("*/*.md"))]
FILES = [path for path in FILES if path.parent.name != "examples"]


@pytest.mark.parametrize("page", FILES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_links_of_a_page_exist(page):
    for link, anchor in re.findall(r"\]\(([^)#\s]*)(?:#([^)\s]*))?\)", page.read_text()):
        if link.startswith("http"):
            continue
        target = page.parent / link if link else page
        if link == "examples/index":  # written by sphinx-gallery
            continue
        assert target.exists(), link
        if anchor and target.suffix == ".md":
            headings = re.findall(r"^#+ (.*)", target.read_text(), flags=re.MULTILINE)
            assert anchor in {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}, anchor


def test_files_on_the_map_of_the_paper_exist():
    text = (DOCS / "mathematics" / "from-the-paper.md").read_text()
    named = {name for name in re.findall(r"`([^`\s]+)`", text) if "/" in name}
    assert len(named) > 50
    assert [
        name for name in named if not any((ROOT / home / name).exists() for home in ("", "experiments/results"))
    ] == []


def test_the_check_of_the_site_sees_what_is_broken(tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "path", [str(ROOT / ".ci"), *sys.path])
    problems = import_module("check_site").problems
    (tmp_path / "a.html").write_text('<p id="x"><a href="b.html#y">b</a><a href="#x">here</a><img src="c.png"></p>')
    (tmp_path / "b.html").write_text('<h1 id="y">b</h1><a href="https://example.org">elsewhere</a>')
    (tmp_path / "c.png").write_bytes(b"")
    assert problems(tmp_path) == []
    (tmp_path / "b.html").write_text('<script src="https://example.org/s.js"></script><a href="none.html">none</a>')
    assert len(problems(tmp_path)) == 3
    (tmp_path / "b.html").write_text(f'<h1 id="y">b</h1><pre>{ROOT}/admiss/page.md</pre>')
    assert problems(tmp_path) == [f"b.html contains {ROOT}, the path of the checkout"]


def test_help_on_the_site_does_not_name_the_folder_of_the_package(monkeypatch):
    monkeypatch.setattr(sys, "path", [str(DOCS / "_ext"), *sys.path])
    command_help = import_module("command_help")
    shown = command_help.help_text(["new-class"])
    assert "admiss/adaptivity/WRITE_YOUR_OWN.md" in shown
    assert str(ROOT) not in shown
