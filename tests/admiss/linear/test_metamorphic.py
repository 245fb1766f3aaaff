"""The same problem written differently has the same solution."""

import numpy as np
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from admiss import AdaptiveRegressor

NAMES = ["static", "affine_intercept", "affine", "polynomial", "fully_adaptive"]
QUICK = settings(max_examples=15, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])


@st.composite
def problems(draw):
    rng = np.random.default_rng(draw(st.integers(0, 10_000)))
    n, d = draw(st.integers(12, 40)), draw(st.integers(1, 4))
    X = rng.normal(size=(n, d)) * 10.0 ** rng.integers(-2, 3, size=d)
    y = rng.normal(size=n) + np.nan_to_num(X).sum(axis=1) / np.abs(X).max()
    X[rng.uniform(size=X.shape) < draw(st.floats(0, 0.6))] = np.nan
    X[0] = np.arange(1.0, d + 1)
    lam, ratio = draw(st.sampled_from([0.05, 1.0, 20.0])), draw(st.sampled_from([0.0, 0.5, 0.9]))
    return X, y, AdaptiveRegressor(draw(st.sampled_from(NAMES)), lam=lam, l1_ratio=ratio), rng


def fit(model, X, y, **weights):
    fitted = AdaptiveRegressor(**model.get_params()).fit(X, y, **weights)
    assert fitted.certificate_.gap <= 1e-7 * max(fitted.certificate_.objective, np.var(y))
    return fitted


def assert_same(found, expected):
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5)


@QUICK
@given(problems())
def test_duplicated_rows_halve_the_penalty(problem):
    """Twice every row doubles every n_k: lambda / n_k stays with twice the lambda."""
    X, y, model, _ = problem
    expected = fit(model, X, y).predict(X)
    doubled = AdaptiveRegressor(**{**model.get_params(), "lam": 2 * model.lam})
    assert_same(fit(doubled, np.repeat(X, 2, axis=0), np.repeat(y, 2)).predict(X), expected)


@QUICK
@given(problems())
def test_a_feature_that_is_always_the_same(problem):
    """The free intercept already contains a feature that is constant and never missing.

    Affine and polynomial weights give it corrections, which repeat the indicators and share their penalty.
    """
    X, y, model, _ = problem
    assume(model.adaptivity not in ("affine", "polynomial"))
    more = np.column_stack([np.full(len(y), 3.0), X])
    assert_same(fit(model, more, y).predict(more), fit(model, X, y).predict(X))
