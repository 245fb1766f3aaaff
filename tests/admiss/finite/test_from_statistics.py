"""Finite regression from row statistics against the fit of the rows in memory."""

import warnings
from typing import Any

import numpy as np
import pytest

from admiss import FiniteRegressor, FiniteRegressorCV
from admiss.partition import BoxPartition, Greedy, OptimalTree, PatternGroups, SplitAssignTree
from admiss.streaming import HashFolds, RowStatistics


def table(n: int, d: int = 5, offset: float = 0.0, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Rows whose best tree of depth 2 is unique: it splits the two sides of its first split on other features."""
    rng = np.random.default_rng(seed)
    X, M = rng.normal(size=(n, d)), rng.random((n, d)) < 0.35
    X[:, 1] += X[:, 0]
    M[:, 2] = False
    y = 3.0 * X[:, 2] * np.where(M[:, 3], M[:, 4], M[:, 0]) - X[:, 1] + M[:, 0] + 0.5 * rng.normal(size=n)
    X = X * np.geomspace(0.1, 10.0, d) + offset
    X[M] = np.nan
    return X, y + offset


def merged(X: np.ndarray, y: np.ndarray, n_chunks: int, seed: int = 0, **settings: Any) -> RowStatistics:
    """Statistics of chunks, merged in a random order."""
    places = np.array_split(np.arange(len(y)), n_chunks)
    parts = [RowStatistics.of(X[p], y[p], place=(0, 0, int(p[0])), adaptivity=[], **settings) for p in places]
    order = np.random.default_rng(seed).permutation(n_chunks)
    total = parts[order[0]]
    for i in order[1:]:
        total = total.merge(parts[i])
    return total


def same_model(first: FiniteRegressor, second: FiniteRegressor, X: np.ndarray, tolerance: float = 1e-10) -> None:
    spread = np.ptp(first.predict(X))
    np.testing.assert_allclose(second.predict(X), first.predict(X), atol=tolerance * spread, rtol=1e-14)


@pytest.mark.parametrize(
    "options", [{}, {"leaf_model": "static", "ridge": 0.0}, {"ridge_scale": "sample", "ridge": 0.01}]
)
@pytest.mark.parametrize("patterns", [False, True])
def test_trees_are_those_of_the_rows(options: dict[str, Any], patterns: bool) -> None:
    X, y = table(1500)
    statistics = merged(X, y, 3, tree_depth=None if patterns else 2, patterns=patterns)
    for partitioner in (Greedy(2, min_rows=40), OptimalTree(2, min_rows=40)):
        memory = FiniteRegressor(partitioner, **options).fit(X, y)
        streamed = FiniteRegressor(partitioner, **options).fit_statistics(statistics)
        assert streamed.certificate_.status == memory.certificate_.status
        assert streamed.partition_.tree == memory.partition_.tree
        assert memory.n_leaves_ > 2
        assert streamed.leaf_rows_.tolist() == memory.leaf_rows_.tolist()
        assert streamed.target_range_ == memory.target_range_
        assert streamed.certificate_.objective == pytest.approx(memory.certificate_.objective, rel=1e-10)
        assert streamed.certificate_.bound <= memory.certificate_.objective * (1 + 1e-13)
        same_model(memory, streamed, X)


@pytest.mark.parametrize("offset", [0.0, pytest.param(1e6, marks=pytest.mark.slow)])
@pytest.mark.parametrize("n_chunks", [1, 7, 100])
def test_chunks_in_any_order_choose_the_same_cell_and_tree(n_chunks: int, offset: float) -> None:
    X, y = table(1200, offset=offset)
    folds, statistics = HashFolds(3), merged(X, y, n_chunks, tree_depth=2, folds=HashFolds(3))
    search = FiniteRegressorCV(OptimalTree(), max_depths=[1, 2], ridges=[0.1, 10.0], cv=folds, truncate=False)
    memory, streamed = search.fit(X, y), FiniteRegressorCV(**search.get_params(deep=False)).fit_statistics(statistics)
    # the standard deviations that scale the ridge are exact to 1e-16 of the offset in memory
    rel = 1e-12 if offset == 0 else 1e-9
    np.testing.assert_allclose(streamed.cv_results_["mean_loss"], memory.cv_results_["mean_loss"], rtol=rel)
    assert streamed.best_index_ == memory.best_index_
    assert streamed.partition_.tree == memory.partition_.tree
    assert streamed.certificate_.status == "optimal"
    same_model(memory.best_estimator_, streamed.best_estimator_, X, 1e-10 if offset == 0 else 1e-9)


@pytest.mark.parametrize(
    ("partitioner", "options"),
    [
        (BoxPartition(max_depth=2, max_leaves=4, min_rows=30), {}),
        (PatternGroups(max_leaves=3, min_rows=30), {"ridge_scale": "sample", "ridge": 1e-3}),
    ],
)
def test_boxes_and_groups_are_those_of_the_rows(partitioner: Any, options: dict[str, Any]) -> None:
    X, y = table(1000, d=5)
    X = X[:, [0, 2, 3, 4]]
    statistics = merged(X, y, 5, tree_depth=None, patterns=True)
    memory = FiniteRegressor(partitioner, **options).fit(X, y)
    streamed = FiniteRegressor(partitioner, **options).fit_statistics(statistics)
    assert streamed.certificate_.status == memory.certificate_.status == "optimal"
    assert streamed.certificate_.objective == pytest.approx(memory.certificate_.objective, rel=1e-9)
    assert streamed.pattern_rows_.tolist() == memory.pattern_rows_.tolist()
    same_model(memory, streamed, X)


def test_doubtful_leaves_keep_true_intervals_until_rows_settle_them() -> None:
    X, y = table(900)
    X[:, 4] = 3 * X[:, 2] + 1e-6 * np.random.default_rng(1).normal(size=len(y))
    partitioner, statistics = OptimalTree(2, min_rows=40), merged(X, y, 2, tree_depth=2)
    memory = FiniteRegressor(partitioner, ridge=0.0).fit(X, y)
    with pytest.warns(UserWarning, match="ill-conditioned for sums"):
        doubtful = FiniteRegressor(partitioner, ridge=0.0).fit_statistics(statistics)
    assert doubtful.certificate_.status.startswith("not proven")
    assert doubtful.certificate_.bound <= memory.certificate_.bound
    assert doubtful.certificate_.objective >= memory.certificate_.bound
    chunks = [(X[i::4], y[i::4]) for i in range(4)]
    settled = FiniteRegressor(partitioner, ridge=0.0).fit_statistics(statistics, settle=chunks)
    assert settled.certificate_.status == "optimal"
    assert settled.partition_.tree == memory.partition_.tree
    assert settled.certificate_.objective == pytest.approx(memory.certificate_.objective, rel=1e-9)
    same_model(memory, settled, X, 1e-7)
    with pytest.raises(ValueError, match="starts anew"):
        FiniteRegressor(partitioner, ridge=0.0).fit_statistics(statistics, settle=chunks[:2])


def test_weights_are_copies_and_saved_statistics_are_the_same(tmp_path: Any) -> None:
    X, y = table(600)
    copies = np.random.default_rng(0).integers(0, 4, len(y))
    several = RowStatistics.of(np.repeat(X, copies, axis=0), np.repeat(y, copies), adaptivity=[], tree_depth=2)
    weighted = RowStatistics.of(X, y, copies.astype(float), adaptivity=[], tree_depth=2, patterns=True)
    weighted.save(tmp_path / "rows.npz")
    loaded = RowStatistics.load(tmp_path / "rows.npz")
    model = FiniteRegressor(Greedy(2, min_rows=20))
    first = model.fit_statistics(several).predict(X)
    np.testing.assert_allclose(model.fit_statistics(loaded).predict(X), first, atol=1e-10)
    np.testing.assert_array_equal(model.predict(X), model.fit_statistics(weighted).predict(X))


def test_a_feature_that_is_never_missing_in_training_has_its_mean_in_the_held_out_fold() -> None:
    X, y = table(300)
    X[:, 2] = 7.0 + np.random.default_rng(3).normal(size=300)
    folds = HashFolds(3)
    held = next(folds.split(X))[1]
    X[held[:5], 2] = np.nan
    search = FiniteRegressorCV(
        Greedy(min_rows=20), max_depths=[1], ridges=[1.0], cv=folds, truncate=False, center=False
    )
    statistics = RowStatistics.of(X, y, adaptivity=[], tree_depth=1, patterns=True, folds=folds)
    by_sets = RowStatistics.of(X, y, adaptivity=[], tree_depth=1, folds=folds)
    expected = search.fit(X, y).cv_results_["mean_loss"]
    for given in (statistics, by_sets):
        found = FiniteRegressorCV(**search.get_params(deep=False)).fit_statistics(given)
        np.testing.assert_allclose(found.cv_results_["mean_loss"], expected, rtol=1e-10)


def test_threads_do_not_change_the_search() -> None:
    X, y = table(400)
    tables = []
    for n_jobs in (1, 3):
        statistics = RowStatistics.of(X, y, adaptivity=[], tree_depth=1, folds=HashFolds(4))
        search = FiniteRegressorCV(Greedy(min_rows=20), max_depths=[1], ridges=[1.0, 10.0], n_jobs=n_jobs)
        tables.append(search.fit_statistics(statistics).cv_results_["mean_loss"])
    np.testing.assert_array_equal(*tables)


def test_models_from_sets_describe_themselves_without_inventing_patterns() -> None:
    X, y = table(400)
    model = FiniteRegressor(Greedy(2, min_rows=40)).fit_statistics(merged(X, y, 2, tree_depth=2))
    assert np.isnan(model.leaf_table()["patterns"]).all()
    assert model.leaf_table()["rows"].sum() == 400
    assert np.isnan(model.pattern_report(X)["training_rows"]).all()
    assert "is missing" in model.to_text()
    assert model.coef_table().n_rows > model.n_leaves_


@pytest.mark.parametrize(
    ("model", "settings", "message"),
    [
        (FiniteRegressor(OptimalTree(3)), {"tree_depth": 2}, "tree_depth=3"),
        (FiniteRegressor(Greedy(None)), {"tree_depth": 2}, "lower max_depth"),
        (FiniteRegressor(BoxPartition()), {"tree_depth": 2}, "patterns=True"),
        (FiniteRegressor(SplitAssignTree()), {"tree_depth": 2}, "patterns=True"),
        (FiniteRegressor(loss="absolute"), {"tree_depth": 3}, "squared loss only"),
        (FiniteRegressor(), {"tree_depth": None}, "tree_depth=3"),
        (FiniteRegressorCV(max_depths=[1]), {"tree_depth": 2}, "have no folds"),
    ],
)
def test_what_is_not_held_is_asked_for_in_a_sentence(model: Any, settings: dict[str, Any], message: str) -> None:
    X, y = table(60)
    statistics = RowStatistics.of(X, y, adaptivity=[], **settings)
    with pytest.raises(ValueError, match=message):
        model.fit_statistics(statistics)
    assert not hasattr(model, "partition_")


def test_no_more_than_twenty_thousand_patterns_have_matrices(monkeypatch: pytest.MonkeyPatch) -> None:
    X, y = table(300)
    monkeypatch.setattr("admiss.statistics.pattern_factors.MOST_PATTERNS", 5)
    with pytest.raises(ValueError, match="more than 5 patterns, too many for moments of each"):
        RowStatistics.of(X, y, adaptivity=[], tree_depth=None, patterns=True)


@pytest.mark.slow
def test_strange_tables_are_fitted_as_in_memory() -> None:
    """Columns without values, constant ones, single rows, targets of two values, nothing missing."""
    rng = np.random.default_rng(5)
    X = rng.normal(size=(120, 4))
    X[rng.random(X.shape) < 0.3] = np.nan
    empty, constant, full = X.copy(), X.copy(), rng.normal(size=(120, 4))
    empty[:, 1], constant[:, 2] = np.nan, 5.0
    y = rng.normal(size=120)
    cases = [
        (empty, y), (constant, y), (full, y), (X, np.sign(y)), (X[:1], np.ones(1)), (X[:3], np.arange(3.0)),
        (X, np.ones(120)),
    ]  # fmt: skip
    for (rows, target), patterns in ((case, patterns) for case in cases for patterns in (False, True)):
        statistics = RowStatistics.of(rows, target, adaptivity=[], tree_depth=2, patterns=patterns)
        for partitioner in (Greedy(2), OptimalTree(2)):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                memory = FiniteRegressor(partitioner).fit(rows, target)
                streamed = FiniteRegressor(partitioner).fit_statistics(statistics)
            assert streamed.n_leaves_ == memory.n_leaves_
            np.testing.assert_allclose(streamed.predict(rows), memory.predict(rows), atol=1e-9)
