"""Predictions read off one large fit, against separate fits."""

import numpy as np
import pytest
from sklearn.ensemble import (
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.metrics import log_loss, mean_squared_error, r2_score, roc_auc_score
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor
from xgboost import XGBClassifier, XGBRegressor

from admiss import AdaptiveClassifier, AdaptiveRegressor
from admiss.baselines.kinds import KINDS, TrainingRows, path_lambdas, path_outputs
from admiss.estimator.scoring import score

exact_rows = pytest.mark.parametrize("rows", ["complete", "missing"], indirect=True)
DEPTHS = [1, 2, 3, 5, 8, None]


@pytest.fixture(params=["complete", "missing"])
def rows(request):
    """Training rows, held-out rows, a continuous target, and three classes."""
    rng = np.random.default_rng(5)
    X = rng.normal(size=(500, 5))
    y = X[:, 0] + np.sin(3 * X[:, 1]) + 0.5 * rng.normal(size=500)
    if request.param == "missing":
        X[rng.uniform(size=X.shape) < 0.2] = np.nan
    return X[:400], y[:400], X[400:], np.digitize(y, [-0.7, 0.6])[:400]


def read(kind, model, X, **nested):
    """The outputs by the values of nested parameters; those of a single parameter by that value."""
    cells = KINDS[kind].read(model, X, nested)
    return {tuple(cell.values()) if len(nested) > 1 else cell[next(iter(nested))]: found for cell, found in cells}


def outputs(model, X):
    return model.predict_proba(X) if hasattr(model, "classes_") else model.predict(X)


@pytest.mark.parametrize("task", ["numbers", "classes", "two classes"])
def test_the_descent_is_that_of_scikit_learn(rows, task):
    X, y, held, classes = rows
    target = {"numbers": y, "classes": classes, "two classes": classes > 0}[task]
    forest_type = RandomForestRegressor if task == "numbers" else RandomForestClassifier
    forest = forest_type(7, random_state=0).fit(X, target)
    found = read("forest", forest, held, max_depth=[1, None])
    np.testing.assert_allclose(found[None], outputs(forest, held), rtol=0, atol=1e-14)
    tree = forest.estimators_[0]
    np.testing.assert_array_equal(read("tree", tree, held, max_depth=[None])[None], outputs(tree, held))


def test_values_are_rounded_to_single_precision():
    """.5 + 1e-9 is .5 in single precision: scikit-learn goes left at the threshold .5."""
    tree = DecisionTreeRegressor(random_state=0).fit([[0.0], [1.0]], [0.0, 1.0])
    near = np.array([[0.5], [0.5 + 1e-9], [0.5 + 1e-6]])
    assert read("tree", tree, near, max_depth=[3])[3].tolist() == tree.predict(near).tolist() == [0.0, 0.0, 1.0]


@exact_rows
@pytest.mark.parametrize("tree_type", [DecisionTreeRegressor, DecisionTreeClassifier])
def test_a_truncated_tree_is_the_tree_of_that_depth_without_ties(rows, tree_type):
    """With 20 rows in each leaf and a continuous target no two splits of a node are equally good."""
    X, y, held, classes = rows
    # weights make the gains of different splits different in classification too
    s = np.random.default_rng(0).uniform(0.5, 1.5, size=len(y))
    target = y if tree_type is DecisionTreeRegressor else classes
    shared = {"min_samples_leaf": 20, "random_state": 3}
    deepest = tree_type(max_depth=8, **shared).fit(X, target, s)
    found = read("tree", deepest, held, max_depth=DEPTHS)
    assert deepest.get_depth() > 3
    for depth in DEPTHS[:-1]:
        separate = tree_type(max_depth=depth, **shared).fit(X, target, s)
        np.testing.assert_allclose(found[depth], outputs(separate, held), rtol=0, atol=1e-12)


@pytest.mark.parametrize("max_features", [None, "sqrt"])
def test_with_ties_or_drawn_features_the_distribution_is_the_same(max_features):
    """The mean over seeds of each prediction, and of its square, within 4.5 standard errors of 12 differences."""
    rng = np.random.default_rng(1)
    X, held = rng.normal(size=(30, 4)), rng.normal(size=(6, 4))
    y = X[:, 0] + rng.normal(size=30)
    seeds = range(400)
    trees = [DecisionTreeRegressor(max_features=max_features, random_state=k).fit(X, y) for k in seeds]
    cut = [read("tree", tree, held, max_depth=[4])[4] for tree in trees]
    # other seeds, so that the two samples are independent
    fitted = [
        DecisionTreeRegressor(max_depth=4, max_features=max_features, random_state=10_000 + k).fit(X, y).predict(held)
        for k in seeds
    ]
    first, second = np.array(cut), np.array(fitted)
    assert first.std(axis=0).max() > 0.1
    for power in (1, 2):
        a, b = first**power, second**power
        error = np.sqrt((a.var(axis=0) + b.var(axis=0)) / len(seeds))
        assert np.all(np.abs(a.mean(axis=0) - b.mean(axis=0)) <= 4.5 * error + 1e-12)


@pytest.mark.parametrize("max_features", [1.0, "sqrt"])
def test_a_smaller_forest_is_a_prefix(rows, max_features):
    X, y, held, classes = rows
    for forest_type, target in ((RandomForestRegressor, y), (RandomForestClassifier, classes)):
        large = forest_type(20, max_depth=6, max_features=max_features, random_state=2).fit(X, target)
        for count, found in read("forest", large, held, n_estimators=[1, 5, 12, 20]).items():
            small = forest_type(count, max_depth=6, max_features=max_features, random_state=2).fit(X, target)
            np.testing.assert_allclose(found, outputs(small, held), rtol=0, atol=1e-14)


@exact_rows
def test_a_forest_of_all_features_is_exact_in_both(rows):
    X, y, held, _ = rows
    shared = {"min_samples_leaf": 15, "random_state": 2}
    large = RandomForestRegressor(12, max_depth=7, **shared).fit(X, y)
    for (count, depth), found in read("forest", large, held, n_estimators=[3, 12], max_depth=[2, 4, 7]).items():
        separate = RandomForestRegressor(count, max_depth=depth, **shared).fit(X, y)
        np.testing.assert_allclose(found, separate.predict(held), rtol=0, atol=1e-12)


@pytest.mark.parametrize("drawn", [{}, {"subsample": 0.5, "colsample_bynode": 0.5}])
def test_boosting_rounds_of_xgboost(rows, drawn):
    X, y, held, classes = rows
    shared = {"max_depth": 3, "n_jobs": 1, "random_state": 4, **drawn}
    for model_type, target in ((XGBRegressor, y), (XGBClassifier, classes), (XGBClassifier, classes // 2)):
        large = model_type(n_estimators=30, **shared).fit(X, target)
        for count, found in read("xgboost", large, held, n_estimators=[1, 10, 30]).items():
            separate = model_type(n_estimators=count, **shared).fit(X, target)
            np.testing.assert_array_equal(found, outputs(separate, held))


def test_boosting_rounds_of_histogram_boosting(rows):
    X, y, held, classes = rows
    shared = {"max_depth": 3, "early_stopping": False, "random_state": 4}
    for model_type, target in ((HistGradientBoostingRegressor, y), (HistGradientBoostingClassifier, classes)):
        large = model_type(max_iter=20, **shared).fit(X, target)
        for count, found in read("hist_boosting", large, held, max_iter=[1, 7, 20]).items():
            separate = model_type(max_iter=count, **shared).fit(X, target)
            np.testing.assert_array_equal(found, outputs(separate, held))


@pytest.mark.parametrize("l1_ratio", [0.0, 0.3, 1.0])
@pytest.mark.parametrize("n_classes", [0, 2, 3])
def test_a_point_of_the_linear_path_is_the_static_model(l1_ratio, n_classes):
    rng = np.random.default_rng(3)
    X = 2.0 + rng.normal(size=(150, 4)) * [1.0, 5.0, 0.1, 1.0]
    X[:, 3] = 7.0  # constant: no coefficient
    y = X[:, 0] - 0.3 * X[:, 1] + rng.normal(size=150)
    s = rng.uniform(0.5, 2.0, size=150)
    codes = np.digitize(y, np.quantile(y, [0.3, 0.7])[: n_classes - 1]) if n_classes else y
    rows = TrainingRows(X, codes, s, np.arange(n_classes) if n_classes else None)
    lambdas = path_lambdas(rows, l1_ratio)
    found = path_outputs(rows, l1_ratio, lambdas, X)
    for k in (0, 30, 60, 99):
        estimator = AdaptiveClassifier if n_classes else AdaptiveRegressor
        model = estimator("static", lam=lambdas[k], l1_ratio=l1_ratio).fit(X, codes, s)
        # the conditions of a logistic path hold to 5e-6
        np.testing.assert_allclose(found[k], outputs(model, X), rtol=0, atol=1e-4 if n_classes else 1e-7)
    if l1_ratio:
        assert np.ptp(found[0], axis=0).max() < 1e-6 < np.ptp(found[5], axis=0).max()


@pytest.mark.parametrize("weighted", [False, True])
def test_scores_are_those_of_scikit_learn(weighted):
    rng = np.random.default_rng(0)
    y, f = rng.normal(size=(2, 50))
    s = rng.uniform(size=50) if weighted else None
    assert score("r2", y, f, s) == pytest.approx(r2_score(y, f, sample_weight=s))
    assert score("squared_error", y, f, s) == pytest.approx(-mean_squared_error(y, f, sample_weight=s))
    for n_classes in (2, 3):
        codes = rng.integers(n_classes, size=50)
        p = rng.dirichlet(np.ones(n_classes), size=50).round(1)  # with ties, and with zeros
        p = p / p.sum(axis=1, keepdims=True)
        assert score("log_loss", codes, p, s) == pytest.approx(-log_loss(codes, p, sample_weight=s))
        one = [roc_auc_score(codes == k, p[:, k], sample_weight=s) for k in range(n_classes)]
        assert score("auc", codes, p, s) == pytest.approx(one[1] if n_classes == 2 else np.mean(one))
