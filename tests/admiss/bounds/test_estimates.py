"""Estimates of noise, range and bias against data whose truth is known."""

from functools import partial

import numpy as np
import pytest
from sklearn.linear_model import LinearRegression
from sklearn.model_selection import ShuffleSplit

from admiss import AdaptiveRegressor
from admiss.adaptivity import Affine, FullyAdaptive, Polynomial, Static
from admiss.bounds.counts import all_patterns
from admiss.bounds.estimates import _least_squares, estimate_bias, estimate_noise, estimate_range
from experiments.studies.bounds.population import draw_truth, parity_truth
from tests.admiss.bounds.lemma_1 import bias_pair

# Tolerance in standard errors: exceeded once in 16,000 normal draws.
ERRORS = 4


def adaptive_sample(weights, n, sigma, seed):
    """Rows of a truth of Assumption 2.1: x = +-1 and M independent, each pattern equally likely."""
    rng = np.random.default_rng(seed)
    d = len(weights)
    codes = rng.integers(2**d, size=n)
    X = rng.choice([-1.0, 1.0], (n, d))
    y = np.einsum("ij,ji->i", X, weights[:, codes]) + sigma * rng.normal(size=n)
    X[all_patterns(d)[codes] == 1] = np.nan
    return X, y


def smooth_sample(n, seed):
    """A nonlinear signal with noise that depends on x, and E Var(Y | X, M); x_0 is missing in 3 of 10 rows."""
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
    # neighbours, not the affine model that is subtracted first, find the rest of the signal
    constant = estimate_noise(np.nan_to_num(X), y, model=LinearRegression(), random_state=0)
    assert abs(constant.value - noise.value) < ERRORS * constant.standard_error


def test_standard_error_of_the_noise():
    runs = [estimate_noise(*smooth_sample(300, seed)[:2], random_state=seed) for seed in range(60)]
    spread = np.std([run.value for run in runs], ddof=1)
    claimed = np.sqrt(np.mean([run.standard_error**2 for run in runs]))
    # the standard deviation of 60 heavy-tailed numbers is known to about 15%
    assert 0.6 < claimed / spread < 1.7


def test_noise_errs_from_above():
    rng = np.random.default_rng(1)
    X = rng.uniform(-1, 1, (400, 6))
    y = np.sin(9 * X).sum(axis=1)
    noise = estimate_noise(X, y, random_state=0)
    assert noise.value > 0.5  # there is no noise, but neighbours are distant
    assert "from above" in noise.note


def test_noise_without_informative_features():
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


def test_rows_without_neighbours_are_reported_or_refused():
    X, y, _ = smooth_sample(200, 3)
    X[0] = np.nan  # the only row of this pattern
    assert "1 of 200 rows are alone" in estimate_noise(X, y, random_state=0).note
    M = all_patterns(7).astype(bool)
    with pytest.raises(ValueError, match="at least 10"):
        estimate_noise(np.where(M, np.nan, 1.0), np.arange(128.0))


def test_folds_hold_out_every_row_once():
    X, y, _ = smooth_sample(100, 4)
    with pytest.raises(ValueError, match="cv must"):
        estimate_noise(X, y, cv=ShuffleSplit(2, random_state=0))


def test_same_seed_same_estimate():
    X, y, _ = smooth_sample(300, 5)
    for estimate in (
        estimate_noise,
        lambda X, y, random_state: estimate_bias(X, y, "static", random_state=random_state),
    ):
        assert estimate(X, y, random_state=3) == estimate(X, y, random_state=3)


def test_range_holds_in_the_stated_share_of_rows():
    rng = np.random.default_rng(6)
    signal = rng.uniform(-1, 1, 20_000) ** 3
    for noise in (0.0, 0.1, 1.0):
        level = estimate_range(signal + noise * rng.standard_t(3, 20_000), share=0.02).value
        assert np.mean(np.abs(signal) > level) <= 0.02
    without = estimate_range(signal, share=0.02)
    assert without.value == pytest.approx(0.99**3, abs=ERRORS * without.standard_error)


@pytest.mark.parametrize(("n", "share"), [(200, 0.05), (1000, 0.01), (2000, 0.05)])
@pytest.mark.parametrize("law", ["normal", "uniform", "student"])
def test_standard_error_of_the_range(n, share, law):
    # the first two sizes are the smallest that are allowed for their shares
    rng = np.random.default_rng(9)
    rows = (800, n)
    samples = {"normal": rng.normal, "uniform": rng.uniform, "student": partial(rng.standard_t, 3)}[law](size=rows)
    runs = [estimate_range(y, share=share) for y in samples]
    # The spread of 800 values of kurtosis up to 6 is known to 4%, the mean of standard errors that vary by 60% to 2%,
    # and interpolation in the tail is off by up to 10%. Without interpolation the standard error would be off by 40%
    # for Student variables and the smallest sizes.
    ratio = np.mean([run.standard_error for run in runs]) / np.std([run.value for run in runs], ddof=1)
    assert 0.8 < ratio < 1.25


def test_range_with_the_fewest_rows():
    y = np.random.default_rng(8).normal(size=1000)
    assert estimate_range(y, share=0.01).value > 2
    with pytest.raises(ValueError, match="share of 0.01 .* 1,112 rows"):
        estimate_range(y, share=0.009)
    with pytest.raises(ValueError, match="5 of 2 values .* use 1,000 rows"):
        estimate_range(y[:2])


def test_range_around_a_centre():
    y = np.random.default_rng(7).normal(size=1000)
    plain, moved = estimate_range(y), estimate_range(y - 50, centre=-50.0)
    assert moved.value == pytest.approx(plain.value)
    assert moved.standard_error == pytest.approx(plain.standard_error)
    assert plain.note.startswith("|f*| is larger in at most 1% of rows")
    assert "centre" not in plain.note
    assert moved.note.startswith("|f* - centre| is larger in at most 1% of rows")
    assert f"L >= value + |centre| = {plain.value + 50:.4g}" in moved.note


def test_bias_has_no_interval():
    X, y = adaptive_sample(parity_truth(3), 400, 0.3, 6)
    for assumption in (True, False):
        text = str(estimate_bias(X, y, "affine", assumption=assumption, random_state=0))
        assert "not an interval" in text
    # no signal: the static class has no bias, and fewer coefficients than the class it is compared with
    values = []
    for seed in (0, 1):
        X, y = adaptive_sample(np.zeros((3, 8)), 400, 1.0, seed)
        values.append(estimate_bias(X, y, "static", random_state=0).value)
    assert min(values) < 0


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
    # a signal that is nonlinear within patterns is a bias for every class, invisible to the fully adaptive one
    X, y, _ = smooth_sample(4000, 8)
    blind = estimate_bias(X, y, "affine", random_state=0)
    seen = estimate_bias(X, y, "affine", assumption=False, random_state=0)
    assert abs(blind.value) < 0.02
    assert seen.value > ERRORS * seen.standard_error


def test_a_class_that_contains_the_truth_has_no_bias():
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
    assert f"3 of {len(X):,} rows" in estimate_bias(X, y, "static").note
    X, y = adaptive_sample(parity_truth(6), 300, 0.3, 4)
    with pytest.raises(ValueError, match="assumption=False"):
        estimate_bias(X, y, "static")
    assert "sigma" in estimate_bias(X, y, "static", assumption=False).note


def test_truncation():
    X, y = adaptive_sample(parity_truth(3), 400, 0.3, 5)
    y[0] = 1e6
    wild, tame = (estimate_bias(X, y, "affine", L=L, random_state=0) for L in (None, 1.0))
    assert abs(tame.value) < abs(wild.value) / 10


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *(("share", value) for value in (1.5, 0, "x", np.nan, None)),
        *(("centre", value) for value in (np.nan, np.inf, "a", None)),
        *(("L", value) for value in (-1.0, 0, np.nan, "a")),
        *(("rows_per_coefficient", value) for value in (-1, 0, 2.5, "a")),
    ],
)
def test_parameters_are_refused_by_name(name, value):
    of_range = name in ("share", "centre")
    call = (
        partial(estimate_range, np.ones(1000)) if of_range else partial(estimate_bias, np.eye(9), np.ones(9), "static")
    )
    with pytest.raises(ValueError, match=f"^{name} must be"):
        call(**{name: value})


def test_classes_and_features_are_refused():
    for adaptivity, words in (("stattic", "stattic"), ("finite", "partition")):
        with pytest.raises(ValueError, match=words):
            estimate_bias(np.ones((9, 1)), np.ones(9), adaptivity)
    with pytest.raises(ValueError, match="infinity"):
        estimate_noise(np.full((9, 1), np.inf), np.ones(9))


@pytest.mark.parametrize("adaptivity", ["static", "affine_intercept", "affine"])
def test_collinear_features_change_nothing(adaptivity):
    """Indicators of all levels of a category are collinear with the intercept; one of them can be dropped."""
    rng = np.random.RandomState(0)
    level = rng.randint(3, size=600)
    x = np.where(rng.uniform(size=600) < 0.3, np.nan, 1000 + rng.normal(size=600))
    y = level + np.nan_to_num(x, nan=1000.5) - 1000 + 0.3 * rng.normal(size=600)
    full = np.column_stack([np.eye(3)[level], x])
    first, second = (estimate_bias(X, y, adaptivity, random_state=0) for X in (full, full[:, 1:]))
    assert first.value == pytest.approx(second.value, abs=1e-9)
    assert first.standard_error == pytest.approx(second.standard_error, abs=1e-9)


def test_least_squares_agree_with_the_estimator():
    rng = np.random.RandomState(1)
    X = rng.normal(size=(400, 3))
    X[:, :2][rng.uniform(size=(400, 2)) < 0.3] = np.nan
    y = np.nan_to_num(X).sum(axis=1) + np.isnan(X[:, 0]) + rng.normal(size=400)
    for adaptivity in (Static(), Affine(), Polynomial(2), FullyAdaptive()):
        expected = AdaptiveRegressor(adaptivity, lam=0, center=False).fit(X[:300], y[:300]).predict(X[300:])
        np.testing.assert_allclose(_least_squares(adaptivity, X[:300], y[:300], X[300:]), expected, atol=1e-6)
