"""Expected features: the transformer, and the ridge on top."""

import numpy as np
import pandas as pd
import pytest
from scipy.stats import norm
from sklearn.linear_model import Ridge

from admiss import ExpectedFeatures, ExpectedFeaturesRegressor
from admiss.datasets import paper_instance
from admiss.laws import fit_law


def test_blocks(make_rows):
    X, _ = make_rows(n=60, d=3)
    X[:, 1] = np.nan_to_num(X[:, 1])
    transformer = ExpectedFeatures(n_random=5, random_state=0).fit(X)
    expected, missing, random = transformer.blocks(X)
    law = transformer.law_
    np.testing.assert_allclose(expected * law.scale + law.location, law.expect(X), atol=1e-12)
    np.testing.assert_array_equal(missing, np.isnan(X[:, [0, 2]]))
    inner = expected @ transformer.directions_ + transformer.offsets_
    np.testing.assert_allclose(random, np.maximum(inner, 0) * np.sqrt(3 / 5))
    assert transformer.get_feature_names_out().tolist()[:5] == ["x0", "x1", "x2", "x0 missing", "x2 missing"]
    variances = np.einsum("jr,jk,kr->r", transformer.directions_, law.standard_covariance, transformer.directions_)
    np.testing.assert_allclose(variances, 1.0)


def test_expected_relu_against_draws(make_rows):
    X, _ = make_rows(n=150, d=3, fraction=0.5)
    transformer = ExpectedFeatures(n_random=6, expected_relu=True, random_state=0).fit(X)
    law = transformer.law_
    x = law.standardise(X)[:20]
    found = transformer.blocks(X)[2][:20] / np.sqrt(3 / 6)
    rng = np.random.default_rng(0)
    centre = (law.mean - law.location) / law.scale
    Sigma = law.standard_covariance
    for row, value in zip(x, found, strict=True):
        m, o = np.isnan(row), ~np.isnan(row)
        gain = Sigma[np.ix_(m, o)] @ np.linalg.pinv(Sigma[np.ix_(o, o)])
        draws = np.tile(row, (40_000, 1))
        C = Sigma[np.ix_(m, m)] - gain @ Sigma[np.ix_(o, m)]
        draws[:, m] = rng.multivariate_normal(centre[m] + gain @ (row[o] - centre[o]), C, 40_000)
        plain = np.maximum(draws @ transformer.directions_ + transformer.offsets_, 0).mean(axis=0)
        np.testing.assert_allclose(value, plain, atol=0.03)


def test_expected_relu_is_the_formula_of_a_half_gaussian():
    """One missing feature: E relu(t + s z) = t Phi(t / s) + s phi(t / s)."""
    X = np.array([[1.0], [2.0], [4.0], [np.nan]])
    transformer = ExpectedFeatures(n_random=3, expected_relu=True, random_state=0).fit(X)
    law, a, b = transformer.law_, transformer.directions_[0], transformer.offsets_
    t, s = a * law.mu[0] + b, np.abs(a) * np.sqrt(law.S[0, 0])
    np.testing.assert_allclose(
        transformer.blocks(X)[2][3] / np.sqrt(1 / 3), t * norm.cdf(t / s) + s * norm.pdf(t / s), atol=1e-10
    )


def test_without_random_features_it_is_a_ridge_on_expected_values(make_rows):
    X, y = make_rows(n=100, d=3)
    model = ExpectedFeaturesRegressor(n_random=0).fit(X, y)
    expected, missing, _ = model.transformer_.blocks(X)
    F = np.hstack([expected, model.ridge_.block_weights[1] * missing])
    lam = model.ridge_.share * np.sum((F - F.mean(axis=0)) ** 2) / F.shape[1]
    plain = Ridge(alpha=lam).fit(F, y).predict(F)
    np.testing.assert_allclose(model.predict(X), np.clip(plain, y.min(), y.max()), rtol=1e-6)


@pytest.mark.parametrize("cv", [None, 3])
def test_error_is_that_of_unseen_rows(cv):
    data = paper_instance(400, "mcar", "nn", 0.3, 2)
    model = ExpectedFeaturesRegressor(cv=cv, random_state=0).fit(data.X_train, data.y_train)
    assert model.error_ == pytest.approx(np.mean((data.y_test - model.predict(data.X_test)) ** 2), rel=0.15)


def test_non_linear_gain():
    data = paper_instance(800, "censoring", "nn", 0.6, 1)
    scores = {
        (law, n): ExpectedFeaturesRegressor(n, law, random_state=0)
        .fit(data.X_train, data.y_train)
        .score(data.X_test, data.y_test)
        for law in ("gaussian", "censored")
        for n in (0, 256)
    }
    assert scores["censored", 256] > scores["censored", 0] + 0.1
    assert scores["censored", 256] > scores["gaussian", 256] + 0.05


def test_the_expected_relu_of_a_censored_law_is_refused(make_rows):
    with pytest.raises(ValueError, match="closed form"):
        ExpectedFeaturesRegressor(law="censored", expected_relu=True).fit(*make_rows())


def test_an_array_after_a_frame_gives_one_warning(make_rows):
    X, y = make_rows()
    model = ExpectedFeaturesRegressor(8, random_state=0).fit(pd.DataFrame(X, columns=list("abc")), y)
    with pytest.warns(UserWarning, match="does not have valid feature names") as warned:
        model.predict(X)
    assert len(warned) == 1


def test_folds_learn_everything_from_their_training_rows(make_rows):
    """The held-out error from transformers that are fitted by hand on the training rows of each fold."""
    X, y = make_rows(n=120, d=3, fraction=0.5)
    folds = [(np.arange(60, 120), np.arange(60)), (np.arange(60), np.arange(60, 120))]
    model = ExpectedFeaturesRegressor(0, cv=folds, random_state=0).fit(X, y)
    g, total = model.ridge_.block_weights, 0.0
    for train, test in folds:
        transformer = ExpectedFeatures(0).fit(X[train])
        F, F_test = (
            np.hstack([g[0] * block[0], g[1] * block[1]]) for block in map(transformer.blocks, (X[train], X[test]))
        )
        lam = model.ridge_.share * np.sum((F - F.mean(axis=0)) ** 2) / F.shape[1]
        total += np.sum((y[test] - Ridge(alpha=lam).fit(F, y[train]).predict(F_test)) ** 2)
    assert model.error_ == pytest.approx(total / len(y), rel=1e-6)


@pytest.mark.parametrize("unit", [2.0**-400, 2.0**-3, 2.0**400])
@pytest.mark.parametrize("kind", ["gaussian", "censored"])
def test_units_of_weights_change_the_prior_only(unit, kind, make_rows):
    X, _ = make_rows()
    weights = np.random.default_rng(0).uniform(0.5, 2.0, size=len(X))
    law, other = fit_law(X, weights, kind, 0.5), fit_law(X, unit * weights, kind, 0.5 * unit)
    assert np.array_equal(law.parameters(), other.parameters())
    assert np.array_equal(law.history * unit, other.history)
