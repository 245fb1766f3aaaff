"""The sources of a cell: roots in parameters and instances, installed packages, data files, and their digest."""

import shutil
import sys
from dataclasses import dataclass
from functools import partial
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path
from types import SimpleNamespace

import pytest
from sklearn.base import BaseEstimator
from sklearn.linear_model import Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler

from admiss.study.plan import Cell, Method
from admiss.study.sources import CellSources, Sources, distributions
from admiss.study.sources.distributions import parts_of
from admiss.study.sources.own_packages import package_hash
from admiss.study.sources.roots import roots_of

PARTS = """
from functools import cache
from sklearn.base import BaseEstimator, RegressorMixin


class Model(RegressorMixin, BaseEstimator):
    def __init__(self, inner=None):
        self.inner = inner

    def fit(self, X, y):
        return self


def transform(X):
    return X


def metric(model, X, y):
    return 1.0


@cache
def cached(x):
    return x


class Callable:
    def __init__(self, function):
        self.function = function

    def __call__(self, rows):
        return self.function(rows)

    def bound(self, rows):
        return rows


class Slotted:
    __slots__ = ("function",)
"""


@dataclass(frozen=True)
class Plain:
    n: int = 1

    def make(self):
        return self.n


@dataclass(frozen=True)
class Holding:
    function: object
    files: tuple = ()

    def make(self):
        return 1


def run(rows, seed, **parameters):
    return {"score": 1.0}


def local(roots):
    return {name for module, name in roots if module == "parts_of_mine"}


@pytest.fixture
def parts(write, load):
    write({"parts_of_mine.py": PARTS})
    return load("parts_of_mine")


def test_roots_lie_anywhere_in_parameters(parts):
    slotted = parts.Slotted()
    slotted.function = parts.metric
    cases = {
        "an estimator": (parts.Model(), {"Model"}),
        "a class": (parts.Model, {"Model"}),
        "a function": ([{"scorer": (parts.metric,)}], {"metric"}),
        "a partial function": (partial(parts.metric, X=parts.transform), {"metric", "transform"}),
        "a cached function": (parts.cached, {"cached"}),
        "an object with a call": (parts.Callable(parts.transform), {"Callable", "transform"}),
        "a bound method": (parts.Callable(1).bound, {"Callable"}),
        "slots": (slotted, {"Slotted", "metric"}),
        "a pipeline": (
            make_pipeline(FunctionTransformer(parts.transform), parts.Model(Ridge())),
            {"transform", "Model"},
        ),
        "a function after something that cannot be sent": ([parts.transform, sys], {"transform"}),
        "a dict key and a set": ({parts.metric: {parts.transform}}, {"metric", "transform"}),
    }
    for name, (value, expected) in cases.items():
        assert local(roots_of(value)) == expected, name
    cell = Cell(Holding(parts.transform), Method("m", run, {"estimator": parts.Model(parts.Callable(parts.metric))}))
    found = Sources().of(cell).parts
    names = {f"parts_of_mine.py: {name}" for name in ("transform", "Model", "Callable", "metric")}
    assert names <= set(found)
    assert "parts_of_mine.py: cached" not in found


def test_functions_that_are_put_into_a_class_or_wrapped_are_roots(parts):
    def enclosing():
        inner = parts.metric
        return lambda rows: inner(rows, 1, 2)

    assert "metric" in local(roots_of(enclosing()))
    parts.Model.fit = parts.Callable.bound
    assert local(roots_of(parts.Model())) == {"Model", "Callable"}


def test_installed_packages_count_by_version_and_only_if_they_are_reached():
    plain = Sources().of(Cell(Plain(), Method("m", run))).parts
    assert "package scikit-learn" not in plain  # this file imports it, and the function names nothing of it
    pipeline = make_pipeline(StandardScaler(), Ridge())
    found = Sources().of(Cell(Plain(), Method("m", run, {"estimator": pipeline}))).parts
    assert found["package scikit-learn"] == sys.modules["sklearn"].__version__
    assert {"package numpy", "package scipy", "Python"} <= set(found)
    assert "package polars" not in found


def test_distributions_of_modules(tmp_path, monkeypatch):
    assert parts_of("sklearn") == {"package scikit-learn": sys.modules["sklearn"].__version__}
    site = tmp_path / "site-packages"
    (site / "orphan").mkdir(parents=True)
    (site / "orphan" / "__init__.py").write_text("x = 1\n")
    (site / "single.py").write_text("x = 1\n")
    info = site / "Odd_Name-2.5.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: Odd.Name\nVersion: 2.5\n")
    (info / "RECORD").write_text("odd_module/__init__.py,,\nsingle.py,,\nodd_module_too/x.py,,\n")
    monkeypatch.syspath_prepend(site)
    parts_of.cache_clear()
    assert parts_of("single") == {"package odd-name": "2.5"}
    before = parts_of("orphan")
    assert set(before) == {"package orphan"}
    (site / "orphan" / "__init__.py").write_text("x = 2\n")
    for function in (parts_of, distributions._lists, distributions._installed):
        function.cache_clear()
    assert parts_of("orphan") != before


def test_files_of_instances_count_by_content(tmp_path):
    path = tmp_path / "data.csv"
    path.write_text("a\n1\n")
    (tmp_path / "other").mkdir()
    shutil.copy(path, tmp_path / "other" / "data.csv")
    cell = Cell(Holding(None, (path, str(tmp_path / "other" / "data.csv"))), Method("m", run))
    sources = Sources()
    first = sources.of(cell)
    assert first.parts["data.csv"] == first.parts["data.csv (2)"]
    path.write_text("a\n2\n3\n")
    second = sources.of(cell)
    assert second.digest != first.digest
    assert second.parts["data.csv (2)"] == first.parts["data.csv (2)"]
    path.write_text("a\n1\n")
    assert Sources().of(cell) == first
    path.unlink()
    assert sources.of(cell).parts["data.csv"] == "absent"
    moved = Cell(Holding(None, (tmp_path / "other" / "data.csv",)), Method("m", run))
    assert str(tmp_path) not in "".join(sources.of(moved).parts)


def test_fields_called_files_that_are_none_do_no_harm():
    for files in (0, None, (), SimpleNamespace()):
        assert "absent" not in Sources().of(Cell(Holding(None, files), Method("m", run))).parts.values()


def test_local_modules_that_are_not_python_count_by_their_bytes(write, load, tmp_path, monkeypatch):
    write(
        {"user_of_compiled.py": "def half(rows, seed):\n    import compiled_part\n    return compiled_part.f(rows)\n"}
    )
    compiled = tmp_path / f"compiled_part{EXTENSION_SUFFIXES[0]}"
    compiled.write_bytes(b"one")
    module = load("user_of_compiled")
    cell = Cell(Plain(), Method("m", module.half))
    first = Sources().of(cell)
    names = [name for name in first.parts if name.startswith("compiled_part")]
    if sys.platform == "linux":
        assert names == ["compiled_part.so"]
        compiled.write_bytes(b"two")
        assert Sources().of(cell).digest != first.digest


def test_a_change_of_admiss_marks_cells_that_use_it(tmp_path, monkeypatch):
    from admiss import AdaptiveRegressor

    with_admiss = Sources().of(Cell(Plain(), Method("m", run, {"estimator": AdaptiveRegressor()}))).parts
    assert with_admiss["admiss"] == package_hash("admiss")
    assert {"formulations", "package cvxpy", "package highspy"} <= set(with_admiss)


def test_the_digest_is_that_of_the_parts_in_any_order():
    one, two = CellSources({"a": "1", "b": "2"}), CellSources({"b": "2", "a": "1"})
    assert one.digest == two.digest
    assert len(one.digest) == 12
    assert CellSources({"a": "1", "b": "3"}).digest != one.digest
    assert CellSources({"a": "1"}).digest != one.digest


def test_cells_with_the_same_roots_share_their_sources():
    sources = Sources()
    first = sources.of(Cell(Plain(1), Method("a", run, {"x": 1})))
    assert sources.of(Cell(Plain(2), Method("b", run, {"x": 2}))) is first


class Estimator(BaseEstimator):
    pass


def test_paths_of_this_machine_are_not_in_the_parts():
    found = Sources().of(Cell(Plain(), Method("m", run, {"estimator": Estimator()}))).parts
    assert not [name for name in found if str(Path.home()) in name or name.startswith("/")]
