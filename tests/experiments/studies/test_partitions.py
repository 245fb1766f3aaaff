"""The study of partitions: comparable problems, and tables of its rows."""

import json
from dataclasses import replace

import numpy as np
import polars as pl
import pytest
from sklearn.linear_model import Ridge

from admiss import FiniteRegressor
from admiss.datasets import make_interacting
from admiss.partition import OptimalTree
from admiss.study.plan import Cell, instance_recipe
from experiments.studies.partitions.grid import METHODS, STUDY, _partitioner
from experiments.studies.partitions.problems import GeneratedPatterns, RealPatterns, distinct_columns
from experiments.studies.partitions.tables import Problem, paired, paired_difference, partition_sections


def run(cell):
    return cell.method.run(cell.instance.make(), cell.seed, **cell.method.parameters)


def as_row(cell, scores):
    plain = json.loads(json.dumps(scores, allow_nan=False))
    fields = instance_recipe(cell.instance)
    return {"key": cell.key, **fields, "method": cell.method.name, "status": "done", "reason": None, **plain}


@pytest.fixture(scope="module")
def rows():
    """The smoke scale without its tuned problems."""
    return [as_row(cell, run(cell)) for cell in STUDY.cells("smoke") if not cell.instance.tuned]


def test_smoke_is_ordered_by_cost(rows):
    fixed = paired(rows)
    assert len(rows) == 3 * len(fixed)
    assert {problem.fields["source"] for problem in fixed} == {"mcar", "interacting", "real target", "mar", "am"}
    for problem in fixed:
        none, greedy, exact = (problem.rows[name] for name in ("none", "greedy", "exact"))
        assert exact["proof"] == "optimal"
        assert exact["gap"] == pytest.approx(0, abs=1e-9)
        assert greedy["gap"] is None
        assert exact["train_cost"] <= greedy["train_cost"] * (1 + 1e-9)
        assert greedy["train_cost"] <= none["train_cost"] * (1 + 1e-9)
        assert none["leaves"] == 1
        assert max(greedy["depth"], exact["depth"]) <= problem.fields["max_depth"]
        assert max(greedy["leaves"], exact["leaves"]) <= 2 ** problem.fields["max_depth"]
    assert max(problem.loss() for problem in fixed) > 0.1  # where patterns interact
    assert all(np.isfinite(row["score"]) and row["seconds"] >= 0 for row in rows)


def test_sets_of_the_laptop_scale():
    real = [one for grid in STUDY.products("laptop") for one in grid.instances if isinstance(one, RealPatterns)]
    sets = {instance.dataset for instance in real}
    assert {"wiki4he", "horse-colic", "survival-cancer"} <= sets
    assert not sets & {"thyroid-disease-dis", "datasets-airquality"}


def test_seeds_are_reproducible():
    cell = next(cell for cell in STUDY.cells("smoke") if cell.instance.tuned and cell.method.name == "exact")
    first, second = run(cell), run(cell)
    assert {**first, "seconds": 0} == {**second, "seconds": 0}
    other = Cell(replace(cell.instance, replicate=7), cell.method)
    assert run(other)["score"] != first["score"]


def test_depths_share_their_rows():
    shallow, deep = (GeneratedPatterns("censoring", 200, 0.3, depth, False, 3).make() for depth in (1, 4))
    assert np.array_equal(shallow.X_train, deep.X_train, equal_nan=True)
    assert (shallow.y_test == deep.y_test).all()
    assert shallow.facts["missing"] == pytest.approx(0.3, abs=0.02)


def test_cost_is_that_of_ridge_regression():
    rows = GeneratedPatterns("mcar, nn", 300, 0.3, 2, False, 0).make()
    none = next(method for method in METHODS if method.name == "none")
    scores = none.run(rows, 0, **none.parameters)
    Z = np.nan_to_num(rows.X_train)
    model = Ridge(1.0).fit(Z, rows.y_train)
    cost = np.sum((model.predict(Z) - rows.y_train) ** 2) + np.sum(model.coef_**2)
    assert scores["train_cost"] == pytest.approx(cost)
    predicted = np.clip(model.predict(np.nan_to_num(rows.X_test)), rows.y_train.min(), rows.y_train.max())
    r2 = 1 - np.sum((predicted - rows.y_test) ** 2) / np.sum((rows.y_test - rows.y_test.mean()) ** 2)
    assert scores["score"] == pytest.approx(r2)


def test_generated_problem_is_that_of_the_printed_program():
    data = make_interacting(n=200, random_state=0)
    tree = OptimalTree(max_depth=2, min_rows=2 * (data.X_train.shape[1] + 1))
    model = FiniteRegressor(tree, ridge=1.0, leaf_model="static", center=False, scale=False)
    model.fit(data.X_train, data.y_train)
    cell = Cell(GeneratedPatterns("interacting", 200, 0.5, 2, False, 0), METHODS[2])
    scores = run(cell)
    assert scores["train_cost"] == pytest.approx(model.certificate_.objective)
    assert scores["score"] == pytest.approx(model.score(data.X_test, data.y_test))


def test_one_split_for_columns_that_are_missing_together():
    M = np.array([[1, 1, 0, 0, 1], [0, 0, 0, 1, 1], [0, 0, 0, 0, 1]], dtype=bool)
    assert distinct_columns(M) == [0, 2, 3, 4]
    rows = RealPatterns("COUNT-loomis", "real target", 5000, 2, False, 0).make()
    # nine indicators of three variables
    assert rows.X_train.shape[1] == 9
    assert len(rows.split_features) == 3
    tree = _partitioner(rows, "exact")
    shared, all_columns = (
        FiniteRegressor(partitioner, leaf_model="static").fit(rows.X_train, rows.y_train).certificate_.objective
        for partitioner in (tree, OptimalTree(max_depth=2, min_rows=rows.min_rows))
    )
    assert shared == pytest.approx(all_columns)


def test_real_rows():
    rows = RealPatterns("COUNT-loomis", "real target", 100, 2, False, 0).make()
    assert (len(rows.y_train), len(rows.y_test)) == (70, 30)
    assert np.nanmean(rows.X_train, axis=0) == pytest.approx(0, abs=1e-9)
    assert np.nanstd(rows.X_train, axis=0) == pytest.approx(1)
    with pytest.raises(ValueError, match="no numeric target"):
        RealPatterns("datasets-airquality", "real target", 100, 2, False, 0).make()


@pytest.mark.data
def test_a_downloaded_set():
    problem = {method.name: run(Cell(RealPatterns("wiki4he", "real target", 5000, 2, False, 0), method))
               for method in METHODS}  # fmt: skip
    assert problem["exact"]["proof"] == "optimal"
    costs = [problem[name]["train_cost"] for name in ("exact", "greedy", "none")]
    assert costs == sorted(costs)
    assert problem["exact"]["patterns"] > 100


def made_up(source, replicate, greedy, exact, *, proof="optimal", dataset=None, tuned=False):
    fields = {"kind": "Made", "source": source, "dataset": dataset, "n": 200, "missing_fraction": 0.3}
    common = {**fields, "max_rows": None, "max_depth": 2, "tuned": tuned, "replicate": replicate, "status": "done"}
    return [
        {**common, "method": name, "train_cost": cost, "score": score, "seconds": 0.5, "proof": proof}
        for name, (cost, score) in {"none": (9.0, 0.1), "greedy": greedy, "exact": exact}.items()
    ]


def test_differences_are_paired_over_what_is_drawn():
    rows = [*made_up("mar", 0, (1, 0.5), (1, 0.7), dataset="a"), *made_up("mar", 1, (1, 0.5), (1, 0.5), dataset="a")]
    splits = paired(rows)
    assert paired_difference(splits) == "+0.100 ± 0.100"  # over two splits of one set
    rows += made_up("mar", 0, (1, 0.0), (1, 0.3), dataset="b")
    assert paired_difference(paired(rows)) == "+0.200 ± 0.100"  # over two sets
    failed = [{**row, "status": "failed"} if row["method"] == "none" else row for row in rows[:3]]
    assert paired(failed) == []


def test_sections():
    rows = [
        *made_up("mcar", 0, (1.10, 0.5), (1.0, 0.4)),
        *made_up("mcar", 1, (1.0, 0.5), (1.0, 0.5)),
        *made_up("mcar", 2, (5.0, 0.5), (1.0, 0.5), proof="too many boxes to enumerate"),
        *made_up("mcar", 0, (1.0, 0.2), (1.0, 0.8), tuned=True),
        *made_up("am", 0, (1.02, 0.5), (1.0, 0.6), dataset="a"),
    ]
    by_depth, generated, real, tuned, times = partition_sections(pl.DataFrame(rows))
    assert by_depth.rows[0][:7] == ["mcar", "2", "2 of 3", "5.00", "5.00", "10.00", "50%"]
    assert by_depth.rows[0][-3:] == ["0.500", "0.467", "-0.033 ± 0.033"]
    assert "1 of 4 optima are not proven" in by_depth.text
    assert generated.rows[0][:4] == ["mcar", "200", "0.3", "2"]
    assert real.rows == [["am", "a", "2", "1", "2.00", "2.00", "2.00", "0%", "0.100", "0.500", "0.600", "+0.100"]]
    assert tuned.rows == [["mcar", "200", "2", "1", "0.100", "0.200", "0.800", "+0.600"]]
    assert times.rows[0][-4:] == ["0.500", "0.500", "0.500", "0.50"]


def test_a_loss_needs_a_larger_cost():
    def loss(greedy, exact):
        return Problem({"greedy": {"train_cost": greedy}, "exact": {"train_cost": exact}}).loss()

    assert loss(1.0, 1.0) == 0
    assert loss(0.0, 0.0) == 0
    assert loss(3.0, 2.0) == pytest.approx(0.5)
