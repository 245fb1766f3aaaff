"""The conditional mean as an adaptivity class: its weights, its limits, the best predictor."""

import numpy as np
import pytest
from sklearn.linear_model import LinearRegression

import admiss.adaptivity.conditional_mean as module
from admiss import AdaptiveRegressor, AdaptiveRegressorCV, verify
from admiss.adaptivity import ConditionalMean
from admiss.bounds import coefficient_count
from admiss.datasets import paper_instance
from admiss.linear.penalty import penalty_weights


def test_weights_are_those_of_the_formula(make_rows):
    X, y = make_rows(n=200, d=4)
    model = AdaptiveRegressor(ConditionalMean(), lam=0.5).fit(X, y)
    law = model.design_.adaptivity.law_
    mu, Sigma, centre = law.mean, law.covariance, model.design_.centre
    table = model.coef_table()
    beta = {
        name: w
        for name, basis, w in zip(table["feature"], table["basis"], table["coefficient"], strict=True)
        if basis == "1"
    }
    jump = {
        basis: w
        for name, basis, w in zip(table["feature"], table["basis"], table["coefficient"], strict=True)
        if basis != "1"
    }
    b = np.array([beta[f"x{j}"] for j in range(4)])
    for pattern in np.unique(np.isnan(X), axis=0):
        m, o = pattern, ~pattern
        to_observed = np.linalg.pinv(Sigma[np.ix_(o, o)], hermitian=True) @ Sigma[np.ix_(o, m)]
        expected = np.zeros(4)
        expected[o] = b[o] + to_observed @ b[m]
        intercept = beta["(intercept)"] + b[m] @ (mu[m] - to_observed.T @ mu[o])
        intercept += sum(jump.get(f"x{j} missing", 0.0) for j in np.flatnonzero(m)) - expected @ centre
        np.testing.assert_allclose(model.coef_at(pattern), expected, atol=1e-8)
        assert model.intercept_at(pattern) == pytest.approx(intercept, abs=1e-8)


def test_complete_data_are_least_squares(make_rows):
    X, y = make_rows(n=80, d=3, fraction=0.0)
    model = AdaptiveRegressor(ConditionalMean(prior=0.0), lam=0.0).fit(X, y)
    np.testing.assert_allclose(model.predict(X), LinearRegression().fit(X, y).predict(X), atol=1e-8)


def test_reaches_the_best_predictor():
    """Gaussian features, missing completely at random, a linear truth: R2 within .005 of the true conditional mean."""
    rng = np.random.default_rng(0)
    n, d = 30_000, 6
    root = rng.standard_normal((d, d))
    mu, Sigma, beta = rng.standard_normal(d), root @ root.T, rng.standard_normal(d)
    X = rng.multivariate_normal(mu, Sigma, 2 * n)
    y = X @ beta + rng.standard_normal(2 * n)
    seen = np.where(rng.uniform(size=X.shape) < 0.4, np.nan, X)
    model = AdaptiveRegressor(ConditionalMean(), lam=1e-6).fit(seen[:n], y[:n])
    found, best = model.predict(seen[n:]), np.empty(n)
    M = np.isnan(seen[n:])
    for pattern in np.unique(M, axis=0):
        rows = np.flatnonzero((M == pattern).all(axis=1))
        m, o = pattern, ~pattern
        gain = Sigma[np.ix_(m, o)] @ np.linalg.pinv(Sigma[np.ix_(o, o)])
        expected = np.tile(mu, (len(rows), 1))
        expected[:, o] = seen[n:][rows][:, o]
        expected[:, m] = mu[m] + (expected[:, o] - mu[o]) @ gain.T
        best[rows] = expected @ beta
    r2 = [1 - np.mean((y[n:] - f) ** 2) / np.var(y[n:]) for f in (found, best)]
    assert r2[1] - r2[0] < 0.005
    assert r2[1] > 0.5


@pytest.mark.slow
def test_dependent_features_of_the_paper():
    """Features of rank 5 in 10 dimensions."""
    data = paper_instance(800, "mcar", "linear", 0.6, 1)
    scores = {
        name: AdaptiveRegressorCV(name, random_state=0).fit(data.X_train, data.y_train).score(data.X_test, data.y_test)
        for name in ("affine", "conditional_mean")
    }
    assert scores["conditional_mean"] > scores["affine"] + 0.08


def test_the_law_is_learned_from_training_rows_alone(make_rows, monkeypatch):
    X, y = make_rows(n=100, d=3)
    seen = []
    original = module.fit_law
    monkeypatch.setattr(module, "fit_law", lambda rows, *rest: seen.append(len(rows)) or original(rows, *rest))
    AdaptiveRegressorCV(ConditionalMean(), cv=5, random_state=0).fit(X, y)
    assert sorted(set(seen)) == [80, 100]
    assert seen.count(80) >= 5


def test_a_censored_law_has_no_coefficients(make_rows):
    X, y = make_rows()
    model = AdaptiveRegressor(ConditionalMean("censored")).fit(X, y)
    assert np.isfinite(model.predict(X)).all()
    with pytest.raises(AttributeError, match="not linear in x"):
        model.coef_at([0, 1, 0])


def test_count_and_errors(make_rows):
    assert coefficient_count(ConditionalMean(), 5) == 11
    X, y = make_rows()
    for broken, words in ((ConditionalMean("normal"), "law must be"), (ConditionalMean(prior=-1), "prior must be")):
        with pytest.raises(ValueError, match=words):
            AdaptiveRegressor(broken).fit(X, y)


def test_printed_names(make_rows):
    X, y = make_rows()
    assert " (E[x0] - 1.13)" in AdaptiveRegressor(ConditionalMean()).fit(X, y).to_text()
    assert " E[x0]" in AdaptiveRegressor(ConditionalMean(), center=False).fit(X, y).to_text()


@pytest.mark.parametrize("offset", [0.0, 4.25e7, 1e9])
def test_a_missing_value_at_the_mean_is_a_zero_of_the_authors_penalties(make_rows, offset):
    """Whatever the rounding of the mean; without correlations there is no other expectation than the mean."""
    X, y = make_rows(n=60, d=2)
    missing = np.isnan(X).any(axis=1)
    X = np.where(missing[:, None], np.nan, X + offset)
    for s in np.random.default_rng(0).uniform(1, 3, size=(5, 60)):
        model = AdaptiveRegressor(ConditionalMean(), lam=30.0, penalty_weights="authors").fit(X, y, s)
        weights = penalty_weights(model.design_, X, s, kind="authors", adaptive_penalty=1.0, standardise=False)[0]
        np.testing.assert_allclose(weights[-2:], (1.0 + s @ missing / s.sum()) / s.sum(), rtol=1e-12)
        assert verify(model, X, y, s)
