"""Finite models by cross-validation, alone and beside the adaptive ones."""

import warnings

import numpy as np
import pytest
from sklearn.model_selection import KFold

from admiss import (
    AdaptiveClassifierCV,
    AdaptiveRegressorCV,
    FiniteClassifier,
    FiniteClassifierCV,
    FiniteRegressor,
    FiniteRegressorCV,
)
from admiss.datasets import make_interacting, make_synthetic
from admiss.estimator.cross_validation import make_folds
from admiss.partition import Greedy, OptimalTree, PatternGroups

SMALL = {"max_depths": [1, 2], "ridges": [0.1, 10.0]}


@pytest.fixture(scope="module")
def data():
    return make_synthetic(n=200, d=4, rank=3, n_active=3, mechanism="censoring", random_state=1)


def test_losses_are_those_of_the_estimator_on_the_same_folds(data):
    X, y = data.X_train, data.y_train
    search = FiniteRegressorCV(OptimalTree(), scale=True, random_state=0, **SMALL).fit(X, y)
    splits = make_folds(X, y, None, np.ones(len(y)), 5, 0)
    table = search.cv_results_
    for cell in range(table.n_rows):
        depth = int(table["max_depth"][cell])
        partitioner = OptimalTree(max_depth=depth) if depth else Greedy(max_leaves=1)
        total = 0.0
        for train, held in splits:
            model = FiniteRegressor(
                partitioner, ridge=float(table["ridge"][cell]), leaf_model=str(table["leaf_model"][cell]), scale=True
            ).fit(X[train], y[train])
            total += np.sum((y[held] - model.predict(X[held])) ** 2)
        assert table["mean_loss"][cell] == pytest.approx(total / len(y), rel=1e-9)


def test_the_smallest_loss_or_the_fewest_splits_within_an_error(data):
    X, y = data.X_train, data.y_train
    best = FiniteRegressorCV(one_standard_error=False, random_state=0, **SMALL).fit(X, y)
    assert best.best_index_ == best.cv_results_["mean_loss"].argmin()
    careful = FiniteRegressorCV(random_state=0, **SMALL).fit(X, y)
    depth = careful.cv_results_["max_depth"]
    assert depth[careful.best_index_] <= depth[best.best_index_]
    same_depth = depth == depth[careful.best_index_]
    assert careful.cv_results_["mean_loss"][careful.best_index_] == careful.cv_results_["mean_loss"][same_depth].min()
    assert careful.best_score_ == -careful.cv_results_["mean_loss"][careful.best_index_]


def test_splits_are_found_where_they_matter():
    data = make_interacting(n=600, d=6, random_state=0)
    search = FiniteRegressorCV(OptimalTree(), random_state=0, **SMALL).fit(data.X_train, data.y_train)
    assert search.best_params_["partitioner"].max_depth == 2
    assert search.score(data.X_test, data.y_test) > 0.5
    by_leaves = FiniteRegressorCV(OptimalTree(max_depth=3), max_leaves=[2, 4], ridges=[1.0], random_state=0)
    assert by_leaves.fit(data.X_train, data.y_train).best_params_["partitioner"].max_leaves == 4
    assert by_leaves.partition_.n_leaves == 4


def test_classifier_chooses_and_describes(data):
    X, y = data.X_train, np.digitize(data.y_train, np.quantile(data.y_train, [0.4, 0.8]))
    search = FiniteClassifierCV(max_depths=[1], ridges=[1.0], random_state=0).fit(X, y)
    assert isinstance(search.best_estimator_, FiniteClassifier)
    assert search.predict_proba(X).shape == (200, 3)
    assert search.cv_results_.n_rows == 4
    assert search.leaf_table()["rows"].sum() == 200
    assert search.certificate_.objective > 0
    assert search.to_text()
    assert search.coef_table().n_rows
    assert search.pattern_report(X).n_rows


def test_leaves_larger_than_a_fold_mean_no_split(data):
    search = FiniteRegressorCV(Greedy(min_rows=180), random_state=0, **SMALL).fit(data.X_train, data.y_train)
    assert set(search.cv_results_["leaves"]) == {1.0}


def test_groups_are_searched_by_leaves(data):
    with pytest.raises(ValueError, match=r"max_leaves=\[..\] instead"):
        FiniteRegressorCV(PatternGroups()).fit(data.X_train, data.y_train)
    search = FiniteRegressorCV(PatternGroups(), max_leaves=[2], ridges=[1.0], random_state=0)
    assert search.fit(data.X_train, data.y_train).cv_results_.n_rows == 4


def test_an_interrupted_partition_interrupts_the_search(data, monkeypatch):
    import admiss.partition.optimal_tree

    def interrupted(*arguments, **keywords):
        raise KeyboardInterrupt

    monkeypatch.setattr(admiss.partition.optimal_tree, "box_costs", interrupted)
    search = FiniteRegressorCV(OptimalTree(), random_state=0, **SMALL)
    with pytest.raises(KeyboardInterrupt):
        search.fit(data.X_train, data.y_train)
    assert not hasattr(search, "best_estimator_")


def test_finite_beside_adaptive_classes_on_the_same_folds(data):
    X, y = data.X_train, data.y_train
    finite = FiniteRegressorCV(OptimalTree(), cv=KFold(3), **SMALL)
    both = AdaptiveRegressorCV(["affine_intercept", finite], n_lambdas=20, cv=KFold(3)).fit(X, y)
    alone = FiniteRegressorCV(OptimalTree(), cv=KFold(3), **SMALL).fit(X, y)
    rows = both.cv_results_["class_index"] == 1
    np.testing.assert_array_equal(both.cv_results_["mean_loss"][rows], alone.cv_results_["mean_loss"])
    only = AdaptiveRegressorCV(finite, cv=KFold(3)).fit(X, y)
    assert isinstance(only.best_estimator_, FiniteRegressor)
    np.testing.assert_array_equal(only.predict(X), alone.predict(X))
    assert only.to_text() == alone.to_text()
    assert only.best_index_ == alone.best_index_
    assert only.best_score_ == alone.best_score_


def test_finite_wins_where_patterns_interact():
    data = make_interacting(n=600, d=6, random_state=0)
    candidates = ["affine_intercept", FiniteRegressorCV(OptimalTree(), **SMALL)]
    best = AdaptiveRegressorCV(candidates, n_lambdas=20, random_state=0).fit(data.X_train, data.y_train)
    assert isinstance(best.best_estimator_, FiniteRegressor)
    finite = FiniteClassifierCV(OptimalTree(), **SMALL)
    classes = AdaptiveClassifierCV(["affine_intercept", finite], n_lambdas=20, random_state=0)
    classes.fit(data.X_train, data.y_train > 0)
    assert isinstance(classes.best_estimator_, FiniteClassifier)
    assert classes.predict_proba(data.X_test).shape == (5000, 2)


def test_finite_by_name_and_bad_candidates(data):
    named = AdaptiveRegressorCV(["static", "finite"], n_lambdas=10, random_state=0).fit(data.X_train, data.y_train)
    assert any(name.startswith("finite(") for name in named.cv_results_["adaptivity"])
    with pytest.raises(ValueError, match="loss of the others"):
        AdaptiveRegressorCV([FiniteRegressorCV(loss="absolute")]).fit(data.X_train, data.y_train)


def test_small_samples_do_not_explode():
    rng = np.random.default_rng(0)
    scores, affine = [], []
    for i in range(8):
        made = make_synthetic(
            n=int(rng.integers(40, 161)),
            mechanism=("mcar", "censoring")[i % 2],
            signal=("linear", "nn")[i // 2 % 2],
            missing_fraction=float(rng.uniform(0.1, 0.8)),
            n_test=1000,
            random_state=1170 + i,
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for model, found in (
                (FiniteRegressorCV(random_state=0), scores),
                (AdaptiveRegressorCV("affine_intercept", n_lambdas=30, random_state=0), affine),
            ):
                found.append(model.fit(made.X_train, made.y_train).score(made.X_test, made.y_test))
    assert min(scores) > -1
    assert np.mean(scores[::2]) > np.mean(affine[::2]) - 0.02


@pytest.mark.parametrize("size", [1e-200, 1e-50])
def test_values_that_are_small_in_one_fold(data, size):
    """Losses of the others are large, beyond single precision if the values are no traces."""
    X, label = data.X_train.copy(), data.y_train > np.median(data.y_train)
    X[::2, 0] *= size
    folds = [(np.arange(k, 200, 2), np.arange(1 - k, 200, 2)) for k in range(2)]
    with warnings.catch_warnings(action="error", category=RuntimeWarning):
        model = FiniteClassifierCV(cv=folds, one_standard_error=True, **SMALL).fit(X, label)
    assert np.isfinite(model.cv_results_["mean_loss"]).all()
