"""Fits with default settings depend neither on the origin nor on the units of X; formulas are in those of the user."""

import numpy as np
import pytest
from sklearn.base import clone, is_classifier

from admiss import (
    AdaptiveClassifier,
    AdaptiveClassifierCV,
    AdaptiveRegressor,
    AdaptiveRegressorCV,
    AdaptiveStackRegressor,
    ExpectedFeaturesClassifier,
    ExpectedFeaturesRegressor,
    FiniteClassifier,
    FiniteClassifierCV,
    FiniteRegressor,
    FiniteRegressorCV,
)
from admiss.adaptivity import ConditionalMean
from admiss.bounds.counts import all_patterns
from admiss.partition import BoxPartition, Greedy, OptimalTree, PatternGroups

N, D = 240, 3
FOLDS = [(np.arange(N) % 3 != f, np.arange(N) % 3 == f) for f in range(3)]
FOLDS = [(np.flatnonzero(train), np.flatnonzero(test)) for train, test in FOLDS]

REGRESSORS = [
    AdaptiveRegressor(),
    *(AdaptiveRegressor(name) for name in ("static", "affine", "polynomial", "fully_adaptive", ConditionalMean())),
    AdaptiveRegressor("affine", lam=0.0),
    AdaptiveRegressor("affine", penalty_weights="authors"),
    AdaptiveRegressorCV(n_lambdas=20, cv=FOLDS),
    AdaptiveRegressorCV("affine", l1_ratios=[0.0], n_lambdas=20, cv=FOLDS),
    AdaptiveRegressorCV(["static", "affine", "finite"], n_lambdas=10, cv=FOLDS),
    FiniteRegressor(),
    FiniteRegressor(OptimalTree(max_depth=2), leaf_model="static"),
    FiniteRegressor(BoxPartition(max_depth=2), ridge_scale="sample", ridge=0.01),
    FiniteRegressor(PatternGroups(max_leaves=2)),
    FiniteRegressor(Greedy(max_depth=2), ridge=0.0),
    FiniteRegressorCV(cv=FOLDS),
]
CLASSIFIERS = [
    AdaptiveClassifier(),
    AdaptiveClassifier("affine"),
    AdaptiveClassifierCV("affine", n_lambdas=10, cv=FOLDS),
    AdaptiveClassifierCV(n_lambdas=10, class_weight="balanced", cv=FOLDS),
    FiniteClassifier(),
    FiniteClassifier(OptimalTree(max_depth=2), leaf_model="static"),
    FiniteClassifierCV(cv=FOLDS),
]
OTHERS = [ExpectedFeaturesRegressor(random_state=0), ExpectedFeaturesClassifier(random_state=0)]
CHANGES = {
    "shifted": lambda X: X + 1e6,
    "shifted by column": lambda X: X + np.array([-1e6, 2000.0, 1e4]),
    "large": lambda X: X * 1e6,
    "small": lambda X: X * 1e-6,
    "by column": lambda X: X * np.array([1e6, 1e-6, 3.0]),
    "both": lambda X: X * np.array([1e-6, 1e3, 1e6]) + np.array([-1.0, 1e9, 1e12]),
}
QUICK = "both"


def words(model):
    """The model without the rows of its folds."""
    return repr(clone(model).set_params(cv=3) if "cv" in model.get_params() else model)


def changes():
    return [name if name == QUICK else pytest.param(name, marks=pytest.mark.slow) for name in CHANGES]


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(3)
    X = rng.normal(size=(N, D)) @ np.array([[1.0, 0.5, 0.0], [0.0, 1.0, 0.5], [0.0, 0.0, 1.0]])
    M = rng.uniform(size=X.shape) < np.array([0.3, 0.2, 0.3])
    y = 3.0 + X @ [1.0, -2.0, 0.5] + 2.0 * M[:, 0] - X[:, 1] * M[:, 2] + rng.normal(size=N)
    return np.where(M, np.nan, X), y


def scores(model, X):
    return model.predict_proba(X)[:, 1] if is_classifier(model) else model.predict(X)


def target(model, y):
    return y > 3.0 if is_classifier(model) else y


@pytest.mark.parametrize("change", changes())
@pytest.mark.parametrize("model", REGRESSORS + CLASSIFIERS + OTHERS, ids=words)
def test_origin_and_units_of_features_do_not_matter(model, change, rows):
    X, y = rows
    moved = CHANGES[change](X)
    plain, other = (clone(model).fit(part, target(model, y)) for part in (X, moved))
    expected = scores(plain, X)
    np.testing.assert_allclose(scores(other, moved), expected, atol=1e-8 * np.std(target(model, y)), rtol=0)


@pytest.mark.slow
@pytest.mark.parametrize("change", CHANGES)
def test_of_a_stack(change, rows):
    X, y = rows
    moved, names = CHANGES[change](X), ["affine_intercept", "affine", "conditional_mean"]
    plain, other = (AdaptiveStackRegressor(names, cv=FOLDS, random_state=0).fit(part, y) for part in (X, moved))
    np.testing.assert_allclose(other.predict(moved), plain.predict(X), atol=1e-8 * y.std(), rtol=0)


@pytest.mark.parametrize("unit", [1e6, pytest.param(1e-6, marks=pytest.mark.slow)])
@pytest.mark.parametrize("model", REGRESSORS, ids=words)
def test_units_of_the_target_do_not_matter(model, unit, rows):
    X, y = rows
    plain, other = clone(model).fit(X, y), clone(model).fit(X, unit * y)
    np.testing.assert_allclose(other.predict(X) / unit, plain.predict(X), atol=1e-8 * y.std(), rtol=0)


LINEAR = [
    *(model for model in REGRESSORS + CLASSIFIERS if hasattr(type(model), "coef_at")),
    AdaptiveRegressor("affine", center=False),
    AdaptiveRegressor("affine", fit_intercept=False),
    FiniteRegressor(OptimalTree(max_depth=2), center=False, scale=False),
]


@pytest.mark.parametrize("model", LINEAR, ids=words)
def test_coefficients_at_every_pattern_give_the_predictions(model, rows):
    X, y = rows
    X = X * np.array([1.0, 1e-3, 1e3]) + np.array([2000.0, 0.0, -1e5])
    model = clone(model)
    if hasattr(model, "truncate"):
        model.set_params(truncate=False)
    model.fit(X, target(model, y))
    unseen = np.array([2001.0, 1e-3, -9.9e4])
    for m in all_patterns(D).astype(bool)[:-1]:
        x = np.where(m, np.nan, unseen)
        linear = model.intercept_at(m) + model.coef_at(m) @ np.where(m, 0.0, unseen)
        predicted = (model.decision_function if is_classifier(model) else model.predict)(x[None, :])[0]
        assert linear == pytest.approx(predicted, abs=1e-7)
        assert not model.coef_at(m)[m].any()


@pytest.mark.parametrize("center", [True, False])
def test_imputed_values_are_equivalent_and_move_with_the_features(center, rows):
    X, y = rows
    model = AdaptiveRegressor(center=center).fit(X, y)
    table = model.coef_table()
    weights = dict(zip(zip(table["feature"], table["basis"], strict=True), table["coefficient"], strict=True))
    origin = np.nanmean(X, axis=0) if center else np.zeros(D)
    jumps = np.array([weights["(intercept)", f"x{j} missing"] for j in range(D)])
    slopes = np.array([weights[f"x{j}", "1"] for j in range(D)])
    np.testing.assert_allclose(model.imputation_, origin + jumps / slopes, rtol=1e-9)
    filled = np.where(np.isnan(X), model.imputation_, X)
    linear = model.intercept_at([0] * D) + filled @ model.coef_at([0] * D)
    np.testing.assert_allclose(linear, model.predict(X), atol=1e-10)
    if center:
        unit, shift = np.array([1e3, 1e-3, 7.0]), np.array([1e6, -4.0, 2000.0])
        moved = AdaptiveRegressor().fit(X * unit + shift, y)
        np.testing.assert_allclose((moved.imputation_ - shift) / unit, model.imputation_, atol=1e-7)
        np.testing.assert_allclose(moved.coef_at([0] * D) * unit, model.coef_at([0] * D), rtol=1e-7)


def test_formulas_are_in_the_units_of_the_user():
    rng = np.random.default_rng(0)
    year = np.round(2001.3 + 9.5 * rng.normal(size=200))
    year += 2001.3 - year.mean()
    y = 0.25 * (year - 2001.3) + 0.1 * rng.normal(size=200)
    X = year[:, None]
    for model in (AdaptiveRegressor("static", lam=0.0), FiniteRegressor(Greedy(max_leaves=1), ridge=0.0)):
        assert "(x0 - 2001.3)" in model.fit(X, y).to_text()
        assert model.coef_at([0])[0] == pytest.approx(0.25, abs=0.01)
        assert model.intercept_at([0]) == pytest.approx(-0.25 * 2001.3, rel=0.01)
        assert "- 2001" not in clone(model).set_params(center=False).fit(X, y).to_text()
    hidden = np.where(rng.uniform(size=200) < 0.2, np.nan, year)[:, None] + 1e6
    imputed = AdaptiveRegressor().fit(hidden, y)
    assert f"x0 = {imputed.imputation_[0]:.2f}".rstrip("0") in imputed.to_text()


def test_without_an_intercept_nothing_is_centred(rows):
    X, y = rows
    X = X + 5.0
    for name in ("static", "affine_intercept", "affine"):
        centred, plain = (AdaptiveRegressor(name, fit_intercept=False, center=c).fit(X, y) for c in (True, False))
        assert not centred.design_.centre.any()
        np.testing.assert_array_equal(centred.predict(X), plain.predict(X))
        assert centred.predict(np.zeros((1, D)))[0] == 0.0
    search = AdaptiveRegressorCV("affine", fit_intercept=False, n_lambdas=5, cv=FOLDS).fit(X, y)
    assert search.predict(np.zeros((1, D)))[0] == 0.0


def test_the_mean_is_that_of_the_weighted_observed_training_values(rows):
    X, y = rows
    s = np.random.default_rng(0).integers(0, 3, size=N).astype(float)
    expected = [np.average(x[~np.isnan(x)], weights=s[~np.isnan(x)]) for x in X.T]
    linear, finite = (kind().fit(X, y, sample_weight=s) for kind in (AdaptiveRegressor, FiniteRegressor))
    np.testing.assert_allclose(linear.design_.centre, expected, rtol=1e-9)
    np.testing.assert_allclose(finite.leaf_features_.centre, expected, rtol=1e-9)
