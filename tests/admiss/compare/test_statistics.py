"""Comparisons from row statistics against those of the rows."""

import numpy as np
import pytest

from admiss.compare.partitions import compare_partitions
from admiss.compare.setting import Setting
from admiss.compare.statistics import REFERENCE, compare_statistics
from admiss.datasets import make_interacting
from admiss.streaming import HashFolds, RowStatistics

SETTING = Setting(max_depth=2, min_rows=20, time_limit=None)


def test_costs_bounds_curves_and_near_optimal_trees_are_those_of_the_rows() -> None:
    data = make_interacting(n=400, d=5, random_state=0)
    statistics = RowStatistics.of(data.X_train, data.y_train, adaptivity=[], tree_depth=2, folds=HashFolds(3))
    found = compare_statistics(statistics, setting=SETTING)
    expected = compare_partitions(data.X_train, data.y_train, setting=Setting(**vars(SETTING) | {"references": False}))
    for column in ("leaves", "cost"):
        np.testing.assert_allclose(found.table[column][:3], expected.table[column], rtol=1e-9)
    assert found.table["method"].tolist() == ["none", "greedy", "tree", REFERENCE]
    assert found.table["status"].tolist()[2] == "optimal"
    assert np.isfinite(found.table["cv_R2"]).all()
    for name, costs in expected.curves.items():
        np.testing.assert_allclose(found.curves[name], costs, rtol=1e-8)
    assert found.near is not None
    assert expected.near is not None
    assert [part.trees for part in found.near.within] == [part.trees for part in expected.near.within]
    assert found.verdict()
    assert found.to_dict()["description"] == expected.to_dict()["description"]


def test_scores_are_those_of_held_out_rows() -> None:
    data = make_interacting(n=300, d=4, random_state=1)
    X, y, folds = data.X_train, data.y_train, HashFolds(3)
    statistics = RowStatistics.of(X, y, adaptivity=[], tree_depth=2, folds=folds)
    found = compare_statistics(statistics, setting=SETTING)
    for row, method in enumerate(("none", "greedy", "tree")):
        predicted = np.empty(len(y))
        for train, held in folds.split(X):
            model = SETTING.estimator(method).set_params(truncate=False).fit(X[train], y[train])
            predicted[held] = model.predict(X[held])
        r2 = 1 - np.sum((y - predicted) ** 2) / np.sum((y - y.mean()) ** 2)
        assert found.table["cv_R2"][row] == pytest.approx(r2, abs=1e-9)


def test_what_statistics_cannot_do_is_said_before_any_work() -> None:
    data = make_interacting(n=100, d=4, random_state=0)
    statistics = RowStatistics.of(data.X_train, data.y_train, adaptivity=[], tree_depth=2)
    with pytest.raises(ValueError, match="squared loss only"):
        compare_statistics(statistics, setting=Setting(max_depth=2, loss="absolute"))
    with pytest.raises(ValueError, match="tree_depth=3"):
        compare_statistics(statistics)
    with pytest.raises(ValueError, match="patterns=True"):
        compare_statistics(statistics, methods=("boxes",), setting=SETTING)
    assert "cv_R2" not in compare_statistics(statistics, setting=SETTING).table
