"""Published classes: frequent patterns, avoided features, and steps of binned features."""

import cvxpy as cp
import numpy as np
import pytest
from sklearn.linear_model import Lasso

from admiss import AdaptiveClassifier, AdaptiveClassifierCV, AdaptiveRegressor, reliance, verify
from admiss.adaptivity import BinnedAffine, FrequentPatterns, MissingnessAvoiding, SharedPatterns
from admiss.bounds import BoundSetting, coefficient_count, generalization_bound
from admiss.patterns import PatternTable

PUBLISHED = [SharedPatterns(), FrequentPatterns(), MissingnessAvoiding(), BinnedAffine()]


def make_rows(n=150, seed=0):
    rng = np.random.default_rng(seed)
    values = rng.normal(size=(n, 4)) @ np.array([[1, 0.5, 0, 0], [0, 1, 0.5, 0], [0, 0, 1, 0], [0, 0, 0, 1]])
    M = rng.uniform(size=(n, 4)) < [0.4, 0.2, 0.0, 0.05]
    y = values @ [1.0, 2.0, -1.0, 0.5] + M @ [1.0, 0.0, 0.0, 2.0] + 0.3 * rng.normal(size=n)
    return np.where(M, np.nan, values), y


# what all have in common


@pytest.mark.parametrize("adaptivity", PUBLISHED, ids=repr)
@pytest.mark.parametrize("weights", ["count", "authors"])
def test_the_certificate_is_verified_from_the_definition(adaptivity, weights):
    X, y = make_rows(n=60)
    options = {"lam": 0.7, "l1_ratio": 0.5, "penalty_weights": weights}
    found = verify(AdaptiveRegressor(adaptivity, **options).fit(X, y), X, y)
    assert found.verified, str(found)


@pytest.mark.parametrize("adaptivity", PUBLISHED, ids=repr)
def test_thousands_of_patterns_and_classes(adaptivity):
    rng = np.random.default_rng(0)
    X = np.where(rng.uniform(size=(3000, 20)) < 0.5, np.nan, rng.normal(size=(3000, 20)))
    labels = np.where(np.nansum(X[:, :3], axis=1) > 0, "high", "low")
    assert len(PatternTable.of(np.isnan(X)).patterns) > 2900
    search = AdaptiveClassifierCV(adaptivity, n_lambdas=3, l1_ratios=[1.0], adaptive_penalties=[1.0], cv=2)
    assert search.fit(X[:1500], labels[:1500]).score(X[1500:], labels[1500:]) > 0.8


@pytest.mark.parametrize(("adaptivity", "d", "n", "expected"), [
    ("shared_patterns", 3, 1e9, 20), ("shared_patterns", 3, 2, 7 + 4), ("frequent_patterns", 3, 1e9, 20),
    ("frequent_patterns", 3, 20, 7 + 4), ("frequent_patterns", 3, 3, 4), ("missingness_avoiding", 3, 50, 7),
    ("binned_affine", 3, 1e9, 25), ("binned_affine", 3, 4, 13), ("shared_patterns", 40, 1e9, 1041),
])  # fmt: skip
def test_coefficients_by_number_of_rows(adaptivity, d, n, expected):
    assert coefficient_count(adaptivity, d, n=n) == expected
    bound = generalization_bound(BoundSetting(d, sigma2=1.0, L=1.0, bias=0.1), max(n, 2), adaptivity)
    assert bound.p == coefficient_count(adaptivity, d, n=max(n, 2))


def test_table_1_has_no_such_classes():
    with pytest.raises(ValueError, match="Table 1 has no count for FrequentPatterns"):
        coefficient_count("frequent_patterns", 3, count="table")


# frequent patterns


def test_every_pattern_is_frequent_or_none_is():
    X, y = make_rows()
    for own, other in ((FrequentPatterns(1), "fully_adaptive"), (FrequentPatterns(1000), "static")):
        models = [AdaptiveRegressor(a, lam=0.5).fit(X, y) for a in (own, other)]
        np.testing.assert_allclose(*(model.predict(X) for model in models), atol=1e-8)


def test_frequent_patterns_are_regressions_of_their_rows_and_the_others_one_together():
    X, y = make_rows()
    table = PatternTable.of(np.isnan(X))
    assert sorted(table.counts) == [1, 2, 4, 13, 19, 43, 68]
    model = AdaptiveRegressor(FrequentPatterns(15), lam=0.0).fit(X, y)
    is_rare = (table.counts < 15)[table.codes]
    groups = [*(np.flatnonzero(table.codes == p) for p in np.flatnonzero(table.counts >= 15)), np.flatnonzero(is_rare)]
    centred = X - model.design_.centre
    for rows in groups:
        A = np.column_stack([np.ones(len(rows)), np.nan_to_num(centred[rows])])
        expected = A @ np.linalg.lstsq(A, y[rows], rcond=None)[0]
        np.testing.assert_allclose(model.predict(X[rows]), expected, atol=1e-7)
    assert model.design_.adaptivity.names("abcd")[-1] == "any other pattern"
    of_rare = model.coef_at([1, 1, 0, 0])  # a rare pattern, and an unseen one
    np.testing.assert_allclose(model.coef_at([1, 1, 0, 1]), of_rare * [1, 1, 1, 0], atol=1e-12)


def test_too_few_rare_rows_join_the_nearest_frequent_pattern():
    X = make_rows()[0]
    fitted = FrequentPatterns(12).fit(X, np.isnan(X))
    assert not fitted.has_rare_
    nearest = fitted.basis(np.array([[1.0, 1.0, 0.0, 1.0]])).toarray()[0]
    assert fitted.names("abcd")[int(nearest.argmax())] == "missing a, b"


# avoided features


@pytest.mark.parametrize(("alpha", "beta"), [(0.01, 1.0), (0.1, 30.0)])
def test_the_lasso_that_avoids_missing_values(alpha, beta):
    """As published: the lasso of imputed features divided by their penalties."""
    X, y = make_rows()
    n, missing = len(y), np.isnan(X).sum(axis=0)
    Z = np.nan_to_num((X - np.nanmean(X, axis=0)) / np.nanstd(X, axis=0))
    share = (missing + beta) / n
    published = Lasso(alpha=alpha, tol=1e-12, max_iter=100_000).fit(Z / share, y)
    own = MissingnessAvoiding(strength=n / beta, indicators=False)
    model = AdaptiveRegressor(own, lam=2 * alpha * beta, l1_ratio=1.0).fit(X, y)
    np.testing.assert_allclose(model.predict(X), published.predict(Z / share), atol=1e-6)
    half = np.mean((y - published.predict(Z / share)) ** 2) / 2 + alpha * np.abs(published.coef_).sum()
    assert model.certificate_.status == "optimal"
    assert model.certificate_.objective == pytest.approx(2 * half, rel=1e-9)


def test_the_program_with_indicators():
    X, y = make_rows()
    r, n, strength, lam = np.isnan(X).mean(axis=0), len(y), 5.0, 0.5
    model = AdaptiveRegressor(MissingnessAvoiding(strength), lam=lam, l1_ratio=1.0).fit(X, y)
    Z = np.nan_to_num((X - model.design_.centre) / model.design_.scale)
    w, b, b_0 = cp.Variable(4), cp.Variable(4), cp.Variable()
    grown, rate = 1 + strength * r, np.where(r > 0, r, 1.0)
    penalty = lam / n * (grown @ cp.abs(w) + (grown / rate) @ cp.abs(b))
    risk = cp.sum_squares(y - b_0 - Z @ w - np.isnan(X).astype(float) @ b) / n
    assert model.certificate_.objective == pytest.approx(
        cp.Problem(cp.Minimize(risk + penalty)).solve(solver="CLARABEL"), rel=1e-7
    )


def test_reliance_falls_with_the_strength():
    X, y = make_rows()
    found = [
        reliance(AdaptiveRegressor(MissingnessAvoiding(s), lam=20.0, l1_ratio=1.0).fit(X, y), X) for s in (0, 3, 1e4)
    ]
    assert found == sorted(found, reverse=True)
    assert found[0] > 0.4
    assert found[-1] == 0.0
    assert np.isfinite(AdaptiveRegressor("missingness_avoiding", lam=0.1).fit(X, y).imputation_).all()


# steps


def test_thresholds_lie_between_quantiles():
    x = np.array([1.0, 1.0, 1.0, 2.0, 3.0, 4.0, 10.0, np.nan])[:, None]
    fitted = BinnedAffine(n_bins=3).fit(x, np.isnan(x))
    assert fitted.thresholds_.tolist() == [1.5, 3.5]
    assert fitted.names(["a"]) == ["1", "a missing", "a > 1.5", "a > 3.5"]
    weighted = BinnedAffine(n_bins=3).fit(x[2:], np.isnan(x[2:]), np.array([3.0, 1, 1, 1, 1, 1]))
    assert weighted.thresholds_.tolist() == [1.5, 3.5]
    few = BinnedAffine(n_bins=50).fit(x, np.isnan(x))
    assert few.thresholds_.tolist() == [1.5, 2.5, 3.5, 7.0]
    near = 1e6 + np.array([[0.0], [0.001], [0.002]])
    assert len(set(BinnedAffine().fit(near, np.isnan(near)).names(["a"]))) == 3


def test_increasing_transformations_change_nothing():
    X, y = make_rows()
    model = AdaptiveRegressor("binned_affine", lam=0.3, l1_ratio=0.5).fit(X, y)
    other = AdaptiveRegressor("binned_affine", lam=0.3, l1_ratio=0.5).fit(np.exp(X) * 1e6, y)
    np.testing.assert_allclose(model.predict(X), other.predict(np.exp(X) * 1e6), atol=1e-8)
    assert model.certificate_.objective == pytest.approx(other.certificate_.objective, rel=1e-12)


def test_steps_are_a_lasso_of_indicators():
    X, y = make_rows()
    lam, n = 0.5, len(y)
    model = AdaptiveRegressor(BinnedAffine(4), lam=lam, l1_ratio=1.0, adaptive_penalty=1.0).fit(X, y)
    columns, counts = [], []
    for x in X.T:
        seen = np.sort(x[~np.isnan(x)])
        for q in (1, 2, 3):
            k = int(np.ceil(q * len(seen) / 4))
            columns.append(np.nan_to_num(x, nan=-np.inf) > (seen[k - 1] + seen[k]) / 2)
            counts.append(len(seen))
    missable = np.isnan(X).any(axis=0)
    A = np.column_stack([*columns, np.isnan(X)[:, missable]]).astype(float)
    counts = np.append(counts, np.isnan(X).sum(axis=0)[missable])
    w, b = cp.Variable(A.shape[1]), cp.Variable()
    value = cp.Problem(cp.Minimize(cp.sum_squares(y - b - A @ w) / n + (lam / counts) @ cp.abs(w))).solve("CLARABEL")
    assert model.certificate_.objective == pytest.approx(value, rel=1e-7)
    table = model.coef_table()
    assert table.n_rows == 1 + A.shape[1]
    assert set(table["feature"]) == {"(intercept)", "x0", "x1", "x2", "x3"}


def test_steps_have_no_weights_at_a_pattern():
    X, y = make_rows()
    model = AdaptiveClassifier("binned_affine", lam=0.3).fit(X, y > 0)
    with pytest.raises(AttributeError, match="are not linear in x at a pattern"):
        model.coef_at([0, 0, 0, 0])
    assert "[x0 > " in model.to_text()
