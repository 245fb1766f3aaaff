"""Estimates of noise, range and bias against data whose truth is known."""

import numpy as np
import pytest
from sklearn.linear_model import LinearRegression
from sklearn.model_selection import ShuffleSplit

from admiss.bounds.estimates import estimate_bias, estimate_noise, estimate_range
from admiss.bounds.taylor import all_patterns, bias_pair, draw_truth, parity_truth

# Standard errors that a right estimate is off by at most: exceeded once in 16,000 normal draws.
ERRORS = 4


def adaptive_sample(weights, n, sigma, seed):
    """Rows of a truth of Assumption 2.1: x = +-1 and M independent, each pattern equally likely."""
    rng = np.random.default_rng(seed)
    d = len(weights)
    places = rng.integers(2**d, size=n)
    X = rng.choice([-1.0, 1.0], (n, d))
    y = np.einsum("ij,ji->i", X, weights[:, places]) + sigma * rng.normal(size=n)
    X[all_patterns(d)[places] == 1] = np.nan
    return X, y


def smooth_sample(n, seed):
    """A signal that is not linear, noise that depends on x; E Var(Y | X, M), with x_0 missing in 3 of 10 rows."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (n, 3))
    y = np.sin(2 * X[:, 0]) * X[:, 1] + X[:, 2] + 0.5 * (1 + X[:, 1]) * rng.normal(size=n)
    X[rng.uniform(size=n) < 0.3, 0] = np.nan
    mean_square_of_sine = 0.5 - np.sin(4) / 8
    return X, y, 0.25 * 4 / 3 + 0.3 * mean_square_of_sine / 3


def test_noise_of_a_smooth_signal():
    X, y, sigma2 = smooth_sample(4000, 0)
    noise = estimate_noise(X, y, random_state=0)
    assert abs(noise.value - sigma2) < ERRORS * noise.standard_error
    assert noise.standard_error < 0.06 * sigma2
    # neighbours, and not the affine model that is taken off first, find the rest of the signal
    constant = estimate_noise(np.nan_to_num(X), y, model=LinearRegression(), random_state=0)
    assert abs(constant.value - noise.value) < ERRORS * constant.standard_error


def test_standard_error_of_the_noise():
    runs = [estimate_noise(*smooth_sample(300, seed)[:2], random_state=seed) for seed in range(60)]
    spread = np.std([run.value for run in runs], ddof=1)
    claimed = np.sqrt(np.mean([run.standard_error**2 for run in runs]))
    # the standard deviation of 60 heavy-tailed numbers is known to about 15%; squared losses have a kurtosis
    assert 0.6 < claimed / spread < 1.7


def test_noise_errs_from_above():
    rng = np.random.default_rng(1)
    X = rng.uniform(-1, 1, (400, 6))
    y = np.sin(9 * X).sum(axis=1)
    noise = estimate_noise(X, y, random_state=0)
    assert noise.value > 0.5  # no noise at all, but no neighbour is near
    assert "from above" in noise.note


def test_noise_where_features_tell_nothing():
    rng = np.random.default_rng(2)
    y = rng.normal(size=1000)
    for X in (np.full((1000, 2), np.nan), np.ones((1000, 2)), np.where(rng.uniform(size=(1000, 2)) < 0.5, np.nan, 1.0)):
        noise = estimate_noise(X, y, model=_Zero(), random_state=0)
        assert abs(noise.value - np.var(y)) < ERRORS * noise.standard_error
        assert noise.standard_error < 0.12  # ties are broken: not all rows are compared with the same one


class _Zero:
    def get_params(self, deep=True):
        return {}

    def fit(self, X, y):
        return self

    def predict(self, X):
        return np.zeros(len(X))


def test_rows_without_neighbours_are_told_or_refused():
    X, y, _ = smooth_sample(200, 3)
    X[0] = np.nan  # the only row of this pattern
    assert "1 of 200 rows are alone" in estimate_noise(X, y, random_state=0).note
    M = all_patterns(7).astype(bool)
    with pytest.raises(ValueError, match="at least 10 are needed: use more rows or fewer features"):
        estimate_noise(np.where(M, np.nan, 1.0), np.arange(128.0))


def test_folds_hold_out_every_row_once():
    X, y, _ = smooth_sample(100, 4)
    with pytest.raises(ValueError, match="cv must hold out every row exactly once"):
        estimate_noise(X, y, cv=ShuffleSplit(2, random_state=0))


def test_same_seed_same_estimate():
    X, y, _ = smooth_sample(300, 5)
    for estimate in (
        estimate_noise,
        lambda X, y, random_state: estimate_bias(X, y, "static", random_state=random_state),
    ):
        assert estimate(X, y, random_state=3) == estimate(X, y, random_state=3)


def test_range_says_what_it_promises():
    rng = np.random.default_rng(6)
    signal = rng.uniform(-1, 1, 20_000) ** 3
    for noise in (0.0, 0.1, 1.0):
        level = estimate_range(signal + noise * rng.standard_t(3, 20_000), share=0.02).value
        assert np.mean(np.abs(signal) > level) <= 0.02
    without = estimate_range(signal, share=0.02)
    assert without.value == pytest.approx(0.99**3, abs=ERRORS * without.standard_error)


def test_standard_error_of_the_range():
    runs = [estimate_range(np.random.default_rng(seed).normal(size=2000), share=0.05) for seed in range(200)]
    spread = np.std([run.value for run in runs], ddof=1)  # known to 5%
    assert 0.8 < np.mean([run.standard_error for run in runs]) / spread < 1.25


def test_range_around_a_centre():
    y = np.random.default_rng(7).normal(size=1000)
    assert estimate_range(y + 50, centre=50.0).value == pytest.approx(estimate_range(y).value)


@pytest.mark.parametrize(("kind", "t"), [("gaussian", 0), ("signs", 1), ("parity", 0)])
def test_bias_under_the_assumption(kind, t):
    weights = draw_truth(kind, 3, 1.0, random_state=1)
    exact, bound = bias_pair(weights, t)
    X, y = adaptive_sample(weights, 4000, 0.3, 0)
    estimate = estimate_bias(X, y, ("polynomial", t), random_state=0)
    # 20 coefficients of the fully adaptive class, at most 13 of the others, at risks of at most 1 + 0.09
    assert abs(estimate.value - exact) < ERRORS * estimate.standard_error + 20 * 1.09 / 3200
    assert exact <= bound + 1e-9
    assert "20 coefficients" in estimate.note


def test_bias_without_the_assumption():
    weights = parity_truth(3)
    X, y = adaptive_sample(weights, 4000, 0.3, 1)
    exact, _ = bias_pair(weights, 1)
    assert exact == pytest.approx(0.5)
    with_assumption = estimate_bias(X, y, "affine", random_state=0)
    without = estimate_bias(X, y, "affine", assumption=False, random_state=0)
    for estimate in (with_assumption, without):
        assert abs(estimate.value - exact) < ERRORS * estimate.standard_error + 0.01
    # a signal that is not linear within patterns is a bias for every class, which the fully adaptive one cannot see
    X, y, _ = smooth_sample(4000, 8)
    blind = estimate_bias(X, y, "affine", random_state=0)
    seen = estimate_bias(X, y, "affine", assumption=False, random_state=0)
    assert abs(blind.value) < 0.02
    assert seen.value > ERRORS * seen.standard_error


def test_class_that_holds_the_truth_has_no_bias():
    X, y = adaptive_sample(parity_truth(3), 2000, 0.3, 2)
    own = estimate_bias(X, y, "fully_adaptive", random_state=0)
    assert (own.value, own.standard_error) == (0.0, 0.0)
    assert abs(estimate_bias(X, y, ("polynomial", 2), random_state=0).value) < 0.01


def test_patterns_with_few_rows():
    X, y = adaptive_sample(parity_truth(3), 2000, 0.3, 3)
    few = np.full((3, 3), np.nan)
    few[:, 0] = 1.0
    X = np.vstack([X[~(np.isnan(X) == [False, True, True]).all(axis=1)], few])
    y = np.append(y[: len(X) - 3], [1e3, -1e3, 0.0])
    assert f"3 of {len(X):,} rows, of patterns with too few of them, are left out" in estimate_bias(X, y, "static").note
    X, y = adaptive_sample(parity_truth(6), 300, 0.3, 4)
    with pytest.raises(ValueError, match="the fully adaptive class cannot be estimated"):
        estimate_bias(X, y, "static")
    assert "sigma" in estimate_bias(X, y, "static", assumption=False).note


def test_truncation():
    X, y = adaptive_sample(parity_truth(3), 400, 0.3, 5)
    y[0] = 1e6
    wild, tame = (estimate_bias(X, y, "affine", L=L, random_state=0) for L in (None, 1.0))
    assert abs(tame.value) < abs(wild.value) / 10


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: estimate_range([1.0, 2.0]), "use a share of 1 or more, or more rows"),
        (lambda: estimate_range(np.ones(1000), share=1.5), "share must be between 0 and 1"),
        (lambda: estimate_bias(np.ones((9, 1)), np.ones(9), "static", L=-1.0), "L must be a positive number"),
        (lambda: estimate_bias(np.ones((9, 1)), np.ones(9), "stattic"), "stattic"),
        (lambda: estimate_bias(np.ones((9, 1)), np.ones(9), "finite"), "partition"),
        (lambda: estimate_noise(np.full((9, 1), np.inf), np.ones(9)), "infinity"),
    ],
)
def test_clear_errors(call, words):
    with pytest.raises(ValueError, match=words):
        call()
