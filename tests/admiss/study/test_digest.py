"""The digest of a cell: it follows what computes numbers, and neither tables nor figures nor the engine."""

import shutil
import sys
from importlib.util import spec_from_file_location
from pathlib import Path

import pytest
from toy_study import TOY

import admiss
import formulations
from admiss.study import digest
from admiss.study.digest import source_digest, study_sources
from admiss.study.study import Method, Product, Study

PACKAGES = {package.__name__: Path(package.__file__).parent for package in (admiss, formulations)}


@pytest.fixture
def copies(tmp_path, monkeypatch):
    """Copies of the packages, found instead of the installed ones, beside a study of several modules."""
    for name, folder in PACKAGES.items():
        shutil.copytree(folder, tmp_path / name, ignore=shutil.ignore_patterns("__pycache__", "*.csv", "*.md"))
    for module in ("mine/study/grid.py", "mine/study/tables.py", "mine/shared/methods.py", "mine/paper/claims.py"):
        path = tmp_path / "studies" / module
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("x = 1\n")

    def find(name):
        folder = tmp_path / name.replace(".", "/")
        return spec_from_file_location(name, folder / "__init__.py", submodule_search_locations=[str(folder)])

    monkeypatch.setattr(digest, "find_spec", find)
    return tmp_path


@pytest.mark.parametrize(
    ("path", "counts"),
    [
        ("admiss/linear/fit.py", True),
        ("formulations/losses.py", True),
        ("admiss/datasets/real/registry.toml", True),
        ("admiss/study/study.py", True),  # the seeds
        ("studies/mine/shared/methods.py", True),
        ("studies/mine/study/grid.py", True),
        ("studies/mine/study/tables.py", False),
        ("admiss/bounds/figures.py", False),
        ("admiss/cli/main.py", False),
        ("admiss/study/store.py", False),
        ("admiss/study/report/rows.py", False),
        ("admiss/plots.py", False),
    ],
)
def test_edits_that_mark_cells_stale(copies, path, counts):
    before = source_digest(("studies",))
    assert (copies / path).exists()
    with (copies / path).open("ab") as source:
        source.write(b"# edited\n")
    assert (source_digest(("studies",)) != before) == counts


def test_line_ends_do_not_matter_and_new_files_do(copies):
    before = source_digest(("studies",))
    path = copies / "studies/mine/shared/methods.py"
    path.write_bytes(b"x = 1\r\n")
    assert source_digest(("studies",)) == before
    path.with_name("more.py").touch()
    assert source_digest(("studies",)) != before
    assert source_digest() != before


def test_sources_of_a_study():
    class Elsewhere:
        __module__ = "thesis.studies.first.instances"

    def run(rows, seed):
        return {}

    def study(module):
        run.__module__ = module
        return Study("s", "", "", lambda scale: [Product([Elsewhere()], [Method("m", run)])])

    assert study_sources(TOY, ["smoke", "laptop"]) == ("toy_study",)
    assert study_sources(study("thesis.studies.shared.methods"), ["smoke"]) == ("thesis.studies",)
    assert study_sources(study("thesis.methods"), ["smoke"]) == ("thesis", "thesis.studies")
    assert study_sources(study("admiss.demo"), ["smoke"]) == ("thesis.studies",)


def test_a_module_outside_packages_is_its_own_source(tmp_path, monkeypatch):
    (tmp_path / "one_file_study.py").write_text("x = 1\n")
    monkeypatch.syspath_prepend(tmp_path)
    first = source_digest(("one_file_study",))
    (tmp_path / "one_file_study.py").write_text("x = 2\n")
    assert len({first, source_digest(("one_file_study",)), source_digest()}) == 3
    assert source_digest(("absent", "absent.too")) == source_digest()
    assert "one_file_study" not in sys.modules
