"""What is needed and absent: one sentence with the command that installs it."""

import sys

import pytest

from admiss.drawing import pyplot
from admiss.extras import MissingPackageError, optional_import


def test_an_absent_package_is_named_with_its_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "polars", None)
    sentence = r"^A table needs polars: run pip install 'admiss\[study\]'\.$"
    with pytest.raises(MissingPackageError, match=sentence), optional_import("A table", "study"):
        import polars  # noqa: F401


def test_the_innermost_purpose_is_reported():
    inner = MissingPackageError("A figure", "matplotlib", "plots")
    with pytest.raises(MissingPackageError, match="A figure needs matplotlib"), optional_import("The report", "study"):
        raise inner


def test_mistakes_in_the_sources_are_passed_on():
    with pytest.raises(ImportError, match="cannot import name 'no_such_name'"), optional_import("This", "study"):
        from admiss.drawing import no_such_name  # noqa: F401


def test_figures_need_matplotlib(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    with pytest.raises(MissingPackageError, match=r"A figure needs matplotlib: run pip install 'admiss\[plots\]'\."):
        pyplot()
