"""Laws of features: expectations against formulas, EM against its objective, censored moments against quadrature."""

import numpy as np
import pytest
from scipy.stats import multivariate_normal, truncnorm

import admiss.laws.fitting as fitting
from admiss.laws import Law, fit_law
from admiss.laws.law import expectations
from admiss.patterns import PatternTable


def gaussian_rows(n=300, d=5, share=0.3, complete=(), rank=None, seed=0):
    rng = np.random.default_rng(seed)
    factors = rng.standard_normal((d, rank or d))
    X = rng.standard_normal((n, rank or d)) @ factors.T + rng.standard_normal(d)
    M = rng.uniform(size=X.shape) < share
    M[:, list(complete)] = False
    return np.where(M, np.nan, X), X


def plain_objective(law, X, weights, prior):
    """The penalised log-likelihood, row by row from its definition."""
    standard = law.standardise(X)
    z, V = standard[:, ~law.missable], standard[:, law.missable]
    total = 0.0
    for v, mean, s in zip(V, law.mu + z @ law.B.T, weights, strict=True):
        o = ~np.isnan(v)
        if o.any():
            total += s * multivariate_normal(mean[o], law.S[np.ix_(o, o)], allow_singular=True).logpdf(v[o])
    scatter = np.eye(len(law.mu)) + law.B @ law.B.T
    return total - 0.5 * prior * (np.linalg.slogdet(law.S)[1] + np.trace(np.linalg.solve(law.S, scatter)))


def test_expectations_are_those_of_the_joint_gaussian():
    X, _ = gaussian_rows(complete=(1,))
    law = fit_law(X, np.ones(len(X)), prior=1.0)
    mean, Sigma = law.mean, law.covariance
    for x, found in zip(X[:50], law.expect(X)[:50], strict=True):
        m, o = np.isnan(x), ~np.isnan(x)
        expected = x.copy()
        expected[m] = mean[m] + Sigma[np.ix_(m, o)] @ np.linalg.solve(Sigma[np.ix_(o, o)], x[o] - mean[o])
        np.testing.assert_allclose(found, expected, atol=1e-8)


def test_covariances_are_summed():
    X, _ = gaussian_rows(n=40)
    weights = np.random.default_rng(1).uniform(0.5, 2, len(X))
    law = fit_law(X, np.ones(len(X)), prior=1.0)
    V = law.standardise(X)
    _, found, _ = expectations(V, np.tile(law.mu, (len(X), 1)), weights, PatternTable.of(np.isnan(V)), law)
    expected = np.zeros_like(found)
    for v, s in zip(V, weights, strict=True):
        m, o = np.isnan(v), ~np.isnan(v)
        S = law.S
        C = S[np.ix_(m, m)] - S[np.ix_(m, o)] @ np.linalg.pinv(S[np.ix_(o, o)]) @ S[np.ix_(o, m)]
        expected[np.ix_(m, m)] += s * C
    np.testing.assert_allclose(found, expected, atol=1e-8)


@pytest.mark.parametrize(
    "case",
    [
        {},
        {"share": 0.7},
        {"complete": (0, 3)},
        {"rank": 2, "d": 6},
        {"n": 12, "d": 20, "complete": tuple(range(15))},
    ],
)
def test_no_step_lowers_the_objective(case):
    X, _ = gaussian_rows(**case)
    X = X[:, ~np.isnan(X).all(axis=0)]
    law = fit_law(X, np.ones(len(X)), prior=0.1)
    assert len(law.history) > 2
    assert np.diff(law.history).min() >= -1e-9 * np.abs(law.history).max()


def test_the_objective_is_stationary():
    """The objective does not grow in random directions from the law."""
    X, _ = gaussian_rows(n=120, d=4, complete=(2,))
    weights = np.random.default_rng(2).uniform(0.5, 2, len(X))
    law = fit_law(X, weights, prior=2.0)
    best = plain_objective(law, X, weights, 2.0)
    assert best == pytest.approx(law.history[-1], abs=1e-3)
    rng = np.random.default_rng(3)
    for _ in range(20):
        direction = rng.standard_normal(len(law.parameters()))
        moved = law.with_parameters(law.parameters() + 1e-2 * direction / np.linalg.norm(direction))
        assert plain_objective(moved, X, weights, 2.0) < best + 1e-4


@pytest.mark.parametrize("kind", ["gaussian", "censored"])
@pytest.mark.parametrize(("n", "d"), [(200, 5), (60, 20)])
def test_expected_values_are_near_those_of_a_longer_search(n, d, kind, monkeypatch):
    X, _ = gaussian_rows(n=n, d=d, rank=d // 2, seed=5)
    law = fit_law(X, np.ones(n), kind, prior=1.0)
    monkeypatch.setattr(fitting, "MOVE", 1e-7)
    monkeypatch.setattr(fitting, "MOST_STEPS", 3000)
    longer = fit_law(X, np.ones(n), kind, prior=1.0 + 1e-12)  # not the law in the cache
    distance = (law.expect(X) - longer.expect(X)) / law.scale
    assert np.sqrt(np.mean(distance[np.isnan(X)] ** 2)) < 20 * 3e-3


def test_wide_tables_take_few_steps():
    X, _ = gaussian_rows(n=60, d=50, rank=5)
    assert len(fit_law(X, np.ones(60)).history) < 80


def test_one_incomplete_feature_is_least_squares_on_its_rows():
    X, _ = gaussian_rows(n=200, d=4, complete=(0, 1, 2))
    law = fit_law(X, np.ones(len(X)), prior=0.0)
    seen = ~np.isnan(X[:, 3])
    A = np.column_stack([np.ones(seen.sum()), X[seen, :3]])
    w = np.linalg.lstsq(A, X[seen, 3], rcond=None)[0]
    predicted = np.column_stack([np.ones((~seen).sum()), X[~seen, :3]]) @ w
    np.testing.assert_allclose(law.expect(X)[~seen, 3], predicted, atol=1e-3)


def test_complete_rows_give_sample_moments():
    _, X = gaussian_rows()
    law = fit_law(X, np.ones(len(X)), prior=0.0)
    np.testing.assert_allclose(law.mean, X.mean(axis=0), atol=1e-10)
    np.testing.assert_allclose(law.covariance, np.cov(X.T, bias=True), atol=1e-10)


@pytest.mark.parametrize(("kind", "tolerance"), [("gaussian", 1e-4), ("censored", 0.02)])
def test_weights_are_copies(kind, tolerance):
    """Up to the ends of EM and, in a censored law, of expectation propagation."""
    X, _ = gaussian_rows(n=80, d=3)
    s = np.random.default_rng(0).integers(1, 4, len(X))
    weighted = fit_law(X, s.astype(float), kind, prior=1.0)
    copied = fit_law(np.repeat(X, s, axis=0), np.ones(s.sum()), kind, prior=1.0)
    assert weighted.side.tolist() == copied.side.tolist()
    np.testing.assert_allclose(weighted.mean, copied.mean, atol=tolerance)
    np.testing.assert_allclose(weighted.covariance, copied.covariance, rtol=10 * tolerance, atol=tolerance)


def half_line_law(S, side, limit):
    v = len(S)
    return Law(
        np.zeros(v), np.ones(v), np.ones(v, dtype=bool), np.zeros(v), np.zeros((v, 0)), S, np.zeros((0, 0)),
        np.asarray(side, dtype=float), np.asarray(limit, dtype=float), np.empty(0),
    )  # fmt: skip


@pytest.mark.parametrize("limit", [-5.0, -0.5, 0.0, 1.0, 4.0, 20.0, 60.0])
@pytest.mark.parametrize("side", [1.0, -1.0])
def test_one_censored_entry_is_a_truncated_gaussian(limit, side):
    law = half_line_law(np.array([[2.0, 1.2], [1.2, 1.5]]), [side, 0], [side * limit, 0])
    found = law.expect(np.array([[np.nan, 0.7]]))[0, 0]
    mean, deviation = 1.2 / 1.5 * 0.7, np.sqrt(2.0 - 1.2**2 / 1.5)
    centre = side * mean
    expected = side * truncnorm.mean((limit - centre) / deviation, np.inf, loc=centre, scale=deviation)
    assert found == pytest.approx(expected, rel=1e-3, abs=1e-3)


def test_censored_entries_together_against_quadrature():
    S = np.array([[1.0, 0.6, 0.3], [0.6, 1.0, 0.5], [0.3, 0.5, 1.0]])
    law = half_line_law(S, [1, -1, 0], [0.3, 0.2, 0])
    found = law.expect(np.array([[np.nan, np.nan, 0.4]]))[0, :2]
    mean, C = S[:2, 2] * 0.4, S[:2, :2] - np.outer(S[:2, 2], S[:2, 2])
    grid = np.linspace(-7, 7, 801)
    A, B = np.meshgrid(grid, grid, indexing="ij")
    density = multivariate_normal(mean, C).pdf(np.dstack([A, B])) * (A > 0.3) * (B < 0.2)
    expected = np.array([np.sum(A * density), np.sum(B * density)]) / density.sum()
    np.testing.assert_allclose(found, expected, atol=0.02)


def test_a_censored_law_finds_what_was_censored():
    rng = np.random.default_rng(0)
    X = rng.multivariate_normal([1.0, -2.0, 0.0], [[1.0, 0.7, 0.2], [0.7, 2.0, 0.3], [0.2, 0.3, 1.0]], 3000)
    cut = np.array([1.2, -2.5, np.inf])
    M = np.column_stack([X[:, 0] > cut[0], X[:, 1] < cut[1], np.zeros(len(X), dtype=bool)])
    seen = np.where(M, np.nan, X)
    law = fit_law(seen, np.ones(len(X)), "censored")
    gaussian = fit_law(seen, np.ones(len(X)), "gaussian")
    assert law.side.tolist() == [1.0, -1.0]
    np.testing.assert_allclose(law.mean, [1.0, -2.0, 0.0], atol=0.1)
    np.testing.assert_allclose(np.sqrt(np.diag(law.covariance)), [1.0, np.sqrt(2.0), 1.0], atol=0.1)
    error = {kind: np.mean((fit.expect(seen) - X)[M] ** 2) for kind, fit in (("c", law), ("g", gaussian))}
    assert error["c"] < 0.5 * error["g"]


def test_laws_are_cached_by_their_rows(monkeypatch):
    X, _ = gaussian_rows(seed=9)
    fits = []
    original = fitting._gaussian
    monkeypatch.setattr(fitting, "_gaussian", lambda *arguments: fits.append(1) or original(*arguments))
    s = np.ones(len(X))
    first = fit_law(X, s)
    assert fit_law(X.copy(), s) is first
    with pytest.raises(ValueError, match="read-only"):
        first.mu[:] = 0
    assert len(fits) == 1
    changed = X.copy()
    changed[0, 0] = 0.25
    assert fit_law(changed, s) is not first
    assert fit_law(X, s, prior=3.0) is not first
    assert fit_law(X, 2 * s) is not first
    assert len(fits) == 4


def test_nothing_missing_and_nothing_observed_in_a_row():
    X, full = gaussian_rows(n=50)
    for kind in ("gaussian", "censored"):
        assert np.array_equal(fit_law(full, np.ones(50), kind).expect(full), full)
        law = fit_law(X, np.ones(50), kind)
        empty = law.expect(np.full((1, X.shape[1]), np.nan))
        assert np.isfinite(empty).all()
    np.testing.assert_allclose(fit_law(X, np.ones(50)).expect(np.full((1, 5), np.nan))[0], fit_law(X, np.ones(50)).mean)


def test_observed_values_are_predicted_as_if_they_were_missing():
    """By hiding each feature in turn; the last two features depend on each other."""
    rng = np.random.default_rng(12)
    X = rng.normal(size=(80, 5)) + rng.normal(size=(80, 1))
    X[rng.random(X.shape) < 0.3] = np.nan
    X = np.column_stack([rng.normal(size=80), X, 2.0 * X[:, 4] + 1.0])
    law = fit_law(X, np.ones(80))
    predicted = fitting._predictions(law, X)
    for k, j in enumerate(np.flatnonzero(law.missable)):
        hidden = X.copy()
        hidden[:, j] = np.nan
        np.testing.assert_allclose(predicted[:, k], law.expect_standard(hidden)[:, j], rtol=0, atol=1e-9)
