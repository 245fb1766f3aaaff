"""Studies of plain objects: what is derived from them, what is refused, and their use from Python."""

from dataclasses import dataclass

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy.sparse import csr_matrix
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge
from sklearn.metrics import mean_absolute_error
from sklearn.preprocessing import FunctionTransformer, StandardScaler

import admiss.study as study_package
from admiss.study import CsvInstance, EngineError, Method, Product, Study, combinations, instance_seed
from admiss.study.plan import instance_recipe


@dataclass(frozen=True)
class Noise:
    n: int
    replicate: int = 0

    def make(self):
        rng = np.random.default_rng(instance_seed(self))
        X = rng.normal(size=(self.n, 2))
        return X, X[:, 0] + rng.normal(size=self.n)


@dataclass(frozen=True)
class Fixed:
    n: int

    def make(self):
        return np.eye(self.n), np.arange(self.n)


def drawn(seed):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(30, 2)), rng.normal(size=30)


def halved(rows):
    return 0.5


def size(model, X, y):
    return float(len(y))


METHODS = {"ols": LinearRegression(), "ridge": Ridge()}
ROWS = (np.eye(20, 3), np.arange(20.0))


def test_a_study_derives_what_the_engine_needs():
    study = Study("a-b_1", instances=combinations(Noise, n=[20, 30]), methods=METHODS, replicates=3)
    assert (study.title, study.metrics, study.reference, study.settings) == ("a-b_1", ("r2",), "ols", ("n",))
    assert study.scales == ("all",)
    cells = list(study.cells("all"))
    assert len(cells) == 12
    assert len({cell.seed for cell in cells}) == 6
    scaled = Study("b", instances={"few": [Noise(20)], "many": [Noise(20), Noise(40)]}, methods=METHODS)
    assert scaled.scales == ("few", "many")
    assert [len(list(scaled.cells(scale))) for scale in scaled.scales] == [2, 4]


def test_metrics_follow_the_task_and_names_or_functions_replace_them():
    def of(**options):
        return Study("m", instances=[("a", ROWS)], **options).metrics

    assert of(methods={"logistic": LogisticRegression()}) == ("accuracy",)
    assert of(methods={"mine": halved}) == ("score",)
    assert of(methods=METHODS, metrics="neg_mean_squared_error") == ("neg_mean_squared_error",)
    assert of(methods=METHODS, metrics={"r2": "r2", "mine": size}) == ("r2", "mine")


def test_a_pair_of_a_name_and_a_function_or_rows_is_an_instance():
    study = Study("p", instances=[("drawn", drawn), ("given", ROWS)], methods=METHODS, replicates=2)
    cells = list(study.cells("all"))
    assert study.settings[0] in ("kind", "name")
    first, second = cells[0].instance, cells[2].instance
    assert (first.name, first.replicate, second.replicate) == ("drawn", 0, 1)
    assert not np.array_equal(first.make()[0], second.make()[0])
    changed = (ROWS[0] + 1e-9, ROWS[1])
    other = Study("p", instances=[("given", changed)], methods=METHODS)
    assert {cell.key for cell in cells}.isdisjoint(cell.key for cell in other.cells("all"))


def test_a_table_is_known_by_its_name_not_its_place(tmp_path):
    paths = [tmp_path / folder / "flats.csv" for folder in ("a", "b")]
    for path in paths:
        path.parent.mkdir()
        path.write_text("rooms,price\n3,510\n2,\n4,720.5\n?,100\n")
    assert instance_recipe(CsvInstance(paths[0], target="price"))["kind"] == "Table"  # keys and seeds stay
    first, second = (CsvInstance(path, target="price") for path in paths)
    keys = [next(Study("t", instances=[each], methods=METHODS).cells("all")).key for each in (first, second)]
    assert keys[0] == keys[1]
    assert first.files == (paths[0],)
    X, y = first.make()
    assert isinstance(X, pd.DataFrame)
    assert np.array_equal(X["rooms"], [3.0, 4.0, np.nan], equal_nan=True)
    assert y.tolist() == [510.0, 720.5, 100.0]
    with pytest.raises(EngineError, match="Two instances at scale 'all' are the same"):
        Study("t", instances=[first, second], methods=METHODS)
    with pytest.raises(ValueError, match="There is no file"):
        CsvInstance(tmp_path / "nothing.csv", target="price")


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"name": "a b"}, "must consist of letters, digits, - and _, not 'a b'"),
        ({"instances": []}, "must be a list with at least one"),
        ({"instances": None}, "needs both instances and methods"),
        ({"instances": [3]}, "An instance must be a dataclass with a method make"),
        ({"instances": [("a", lambda: ROWS)]}, "is a lambda"),
        ({"instances": [Noise(3), Noise(3)]}, "Two instances at scale 'all' are the same"),
        ({"instances": [Fixed(3)], "replicates": 2}, "replicates needs a field 'replicate' of Fixed"),
        ({"instances": [Noise(3, 1)], "replicates": 2}, "Leave out replicates, or the field"),
        ({"replicates": 0}, "replicates must be a positive integer"),
        ({"test_share": 1.5}, "test_share must be between 0 and 1"),
        ({"methods": {}}, "has no methods"),
        ({"methods": [Ridge()]}, "methods must be a dict"),
        ({"methods": {"ridge": Ridge}}, r"must be an estimator or a function, not .*: write Ridge\(\.\.\)"),
        ({"methods": {"mine": 3}}, "Method 'mine' must be an estimator or a function, not 3"),
        ({"methods": {"mine": lambda rows: 1.0}}, "method 'mine', function is a lambda"),
        ({"methods": {"mine": FunctionTransformer(lambda X: X)}, "metrics": "r2"}, "parameter func is a lambda"),
        ({"methods": {"a": Ridge(), "b": LogisticRegression()}}, "mix regressors and classifiers"),
        ({"methods": {"a": StandardScaler()}}, "The task of the methods is not known"),
        ({"metrics": "r3"}, "Unknown metric 'r3'"),
        ({"metrics": {"error": mean_absolute_error}}, "'error' must take model, X and y: sklearn.metrics.make_scorer"),
        ({"metrics": {"mine": 3}}, "must be the name of a scorer or a function"),
        ({"instances": [Noise(3)], "metrics": {"n": size}}, "The field 'n' of the instances has the name of a metric"),
        ({"reference": "lasso"}, "The reference 'lasso' is not a method: choose one of ols, ridge"),
    ],
)
def test_what_cannot_be_run_is_refused_in_one_sentence(options, sentence):
    given = {"name": "bad", "instances": [("a", ROWS)], "methods": METHODS, **options}
    with pytest.raises(ValueError, match=sentence) as error:
        Study(**given)
    assert "\n" not in str(error.value)


def test_a_method_of_the_engine_is_taken_under_its_new_name():
    own = Method("sum", halved, {})
    study = Study("m", instances=[("a", ROWS)], methods={"other": own})
    assert [cell.method.name for cell in study.cells("all")] == ["other"]


@pytest.mark.slow
def test_a_study_runs_and_is_read_from_python(tmp_path, capsys):
    metrics = ["r2", "neg_mean_absolute_error"]
    study = Study("python", instances=[Noise(40)], methods=METHODS, metrics=metrics, replicates=2)
    folder = tmp_path / "cells"
    study.run(workers=1, folder=folder)
    summary, *first = capsys.readouterr().out.splitlines()
    assert summary == "4 of 4 cells done, 0 failed (4 computed now)"
    assert first[0].startswith(("ols is best by its mean: R² ", "ridge is best by its mean: R² "))
    study.run(workers=1, folder=folder)
    assert capsys.readouterr().out.splitlines() == ["4 of 4 cells done, 0 failed (0 computed now)", *first]
    table = study.table(folder=folder)
    assert isinstance(table, pl.DataFrame)
    cell = next(study.cells("all"))
    expected = cell.method.run(cell.instance.make(), cell.seed, **cell.method.parameters)
    row = table.filter(pl.col("key") == cell.key).row(0, named=True)
    assert {name: row[name] for name in ("score", *metrics)} == {name: expected[name] for name in ("score", *metrics)}
    frame = study.table("pandas", folder=folder)
    assert isinstance(frame, pd.DataFrame)
    assert frame["score"].tolist() == table["score"].to_list()
    page = study.report(folder=folder)
    assert page == folder / "report.html"
    assert "mean absolute error" in page.read_text()
    study.status(folder=folder)
    assert "4 done, 0 failed, 0 pending, of 4 cells" in capsys.readouterr().out
    assert {"means.csv", "comparisons.csv"} <= {path.name for path in study.results(tmp_path / "out", folder=folder)}
    assert repr(study) == "Study('python', 4 cells)"
    assert repr(Study("grid", products=lambda scale: 1 / 0)) == "Study('grid')"
    with pytest.raises(EngineError, match="choose polars or pandas"):
        study.table("arrow", folder=folder)
    with pytest.raises(EngineError, match="There is no run of python in runs"):
        study.table()


@dataclass(frozen=True)
class Named:
    score: float

    def make(self):
        return Noise(20).make()


def test_a_setting_called_score_leaves_the_score_its_column(tmp_path):
    study = Study("named", instances=[Named(5.0)], methods={"mine": halved})
    study.run(workers=1, folder=tmp_path)
    row = study.table(folder=tmp_path).row(0, named=True)
    assert (row["instance_score"], row["score"]) == (5.0, 0.5)


def test_sparse_rows_give_the_score_of_dense_ones():
    X, y = Noise(30).make()
    X[::2, 1], X[::3, 0] = 0.0, 0.0
    studies = [
        Study("rows", instances=[("noise", (rows, y))], methods={"ridge": Ridge(solver="sparse_cg", tol=1e-10)})
        for rows in (X, csr_matrix(X), csr_matrix(2 * X))
    ]
    dense, sparse, other = (next(iter(study.cells("all"))).instance for study in studies)
    assert len({dense.content, sparse.content, other.content}) == 3
    assert sparse.content == next(iter(studies[1].cells("all"))).instance.content
    (cell,) = studies[1].cells("all")
    scores = cell.method.run(cell.instance.make(), 0, **cell.method.parameters)
    expected = cell.method.run((X, y), 0, **cell.method.parameters)
    assert scores["score"] == pytest.approx(expected["score"], abs=1e-6)
    assert (scores["n_train"], scores["d"], scores["missing"]) == (expected["n_train"], 2, 0.0)


@pytest.mark.parametrize(
    ("method", "sentence"),
    [
        (Method("mine", lambda rows, seed: {"score": 1.0}), "method 'mine' is a lambda"),
        (Method("mine", halved, {"open": (number for number in ())}), "cannot be hashed or sent to another process"),
    ],
)
def test_products_that_cannot_be_sent_are_refused_before_anything_runs(method, sentence, tmp_path):
    study = Study("products", products=lambda scale: [Product([Noise(5)], [method])])
    with pytest.raises(EngineError, match=sentence):
        study.run(folder=tmp_path / "cells")
    assert not tmp_path.joinpath("cells").exists()


def test_the_former_name_of_csv_instances_warns():
    with pytest.warns(FutureWarning, match="Table is now called CsvInstance"):
        assert study_package.Table is CsvInstance
    assert "Table" not in dir(study_package)
