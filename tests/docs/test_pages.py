"""The documentation: its examples run, and every public name is in the API reference."""

import doctest
import re
from importlib import import_module
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import admiss

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


def test_every_public_name_is_in_the_api_reference():
    listed, module = set(), ""
    for line in (DOCS / "api" / "index.rst").read_text().splitlines():
        if match := re.match(r"\.\. (currentmodule|toctree):: ?(\S*)", line):
            module = match[2]
        elif module and (match := re.fullmatch(r"   ([A-Za-z_]+)", line)):
            listed.add(f"{module}.{match[1]}")
    public = {f"admiss.{name}" for name in admiss.__all__ if name not in CONSTANTS}
    for package in admiss._SUBMODULES:
        names = getattr(import_module(f"admiss.{package}"), "__all__", [])
        public |= {f"admiss.{package}.{name}" for name in names if name not in CONSTANTS and not hasattr(admiss, name)}
    assert public <= listed, f"not in docs/api/index.rst: {sorted(public - listed)}"
    for name in listed:
        module, _, attribute = name.rpartition(".")
        assert getattr(import_module(module), attribute).__doc__, f"{name} has no docstring"


def test_links_of_the_readme_exist():
    links = re.findall(r"\]\(([^)#]+)[^)]*\)", (ROOT / "README.md").read_text())
    assert links
    for link in links:
        assert link.startswith("http") or (ROOT / link).exists(), link
