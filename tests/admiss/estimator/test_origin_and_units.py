"""Origin and units of X: fits without a penalty do not depend on them, and formulas are in those of the user.

Of fits with a penalty ``tests/properties`` asks the same.
"""

import numpy as np
import pytest
from sklearn.base import clone

from admiss import AdaptiveRegressor, AdaptiveRegressorCV, FiniteRegressor
from admiss.partition import Greedy

N, D = 240, 3
FOLDS = [(np.flatnonzero(np.arange(N) % 3 != f), np.flatnonzero(np.arange(N) % 3 == f)) for f in range(3)]


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(3)
    X = rng.normal(size=(N, D)) @ np.array([[1.0, 0.5, 0.0], [0.0, 1.0, 0.5], [0.0, 0.0, 1.0]])
    M = rng.uniform(size=X.shape) < np.array([0.3, 0.2, 0.3])
    y = 3.0 + X @ [1.0, -2.0, 0.5] + 2.0 * M[:, 0] - X[:, 1] * M[:, 2] + rng.normal(size=N)
    return np.where(M, np.nan, X), y


@pytest.mark.parametrize(
    "model", [AdaptiveRegressor("affine", lam=0.0), FiniteRegressor(Greedy(max_depth=2), ridge=0.0)], ids=repr
)
def test_without_a_penalty_origin_and_units_do_not_matter(model, rows):
    X, y = rows
    moved = X * np.array([1e-6, 1e3, 1e6]) + np.array([-1.0, 1e9, 1e12])
    plain, other = clone(model).fit(X, y), clone(model).fit(moved, 1e6 * y)
    np.testing.assert_allclose(other.predict(moved) / 1e6, plain.predict(X), atol=1e-8 * y.std(), rtol=0)


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
